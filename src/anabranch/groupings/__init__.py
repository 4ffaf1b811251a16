"""Groupings: policies that send each tuple to one of the workers."""

from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Report, Table
from anabranch.groupings.registry import named, names, parse
from anabranch.groupings.schemes.consistent import ConsistentGrouping
from anabranch.groupings.schemes.distribution_aware import DistributionAwareKeyGrouping
from anabranch.groupings.schemes.dstream import DStream
from anabranch.groupings.schemes.dynamic_key import DynamicKeyGrouping
from anabranch.groupings.schemes.fish import Fish
from anabranch.groupings.schemes.head import DChoices, WChoices
from anabranch.groupings.schemes.key import KeyGrouping
from anabranch.groupings.schemes.offline_greedy import OfflineGreedy
from anabranch.groupings.schemes.online_greedy import OnlineGreedy
from anabranch.groupings.schemes.partial_key import PartialKeyGrouping
from anabranch.groupings.schemes.shuffle import ShuffleGrouping
from anabranch.groupings.schemes.static_two_choices import StaticTwoChoices
from anabranch.groupings.schemes.table import TableGrouping, TableRouter
from anabranch.groupings.spillway.spillway import Spillway

__all__ = [
    "ConsistentGrouping",
    "DChoices",
    "DStream",
    "DistributionAwareKeyGrouping",
    "DynamicKeyGrouping",
    "Fish",
    "Grouping",
    "KeyGrouping",
    "OfflineGreedy",
    "OnlineGreedy",
    "PartialKeyGrouping",
    "Plan",
    "Report",
    "Router",
    "ShuffleGrouping",
    "Spillway",
    "StaticTwoChoices",
    "Table",
    "TableGrouping",
    "TableRouter",
    "WChoices",
    "named",
    "names",
    "parse",
]


def __dir__() -> list[str]:
    return sorted(__all__)
