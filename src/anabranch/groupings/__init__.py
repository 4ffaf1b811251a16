"""Groupings: policies that send each tuple to one of the workers."""

from anabranch.groupings.consistent import ConsistentGrouping
from anabranch.groupings.d_choices import DChoices
from anabranch.groupings.distribution_aware import DistributionAwareKeyGrouping
from anabranch.groupings.dstream import DStream
from anabranch.groupings.dynamic_key import DynamicKeyGrouping
from anabranch.groupings.fish import Fish
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.key import KeyGrouping
from anabranch.groupings.named import named, names, parse
from anabranch.groupings.offline_greedy import OfflineGreedy
from anabranch.groupings.online_greedy import OnlineGreedy
from anabranch.groupings.partial_key import PartialKeyGrouping
from anabranch.groupings.plan import Plan, Report, Table
from anabranch.groupings.shuffle import ShuffleGrouping
from anabranch.groupings.spillway import Spillway
from anabranch.groupings.static_two_choices import StaticTwoChoices
from anabranch.groupings.table import TableGrouping, TableRouter
from anabranch.groupings.w_choices import WChoices

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
