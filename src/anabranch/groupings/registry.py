"""Groupings by name, as the command line spells them: ``partial-key(choices=3)``."""

from __future__ import annotations

from anabranch.groupings.grouping import Grouping
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
from anabranch.groupings.schemes.table import TableGrouping
from anabranch.groupings.spillway.spillway import Spillway
from anabranch.names import Catalogue

GROUPINGS: Catalogue[type[Grouping], Grouping] = Catalogue(
    "grouping",
    (
        Spillway,
        KeyGrouping,
        ShuffleGrouping,
        StaticTwoChoices,
        OnlineGreedy,
        OfflineGreedy,
        PartialKeyGrouping,
        DChoices,
        WChoices,
        ConsistentGrouping,
        DStream,
        Fish,
        DynamicKeyGrouping,
        DistributionAwareKeyGrouping,
        TableGrouping,
    ),
    "partial-key(choices=3)",
)
names, named = GROUPINGS.names, GROUPINGS.named


def parse(text: str) -> Grouping:
    """Grouping from its name and, in brackets, parameters.

    Examples
    --------
    >>> parse("partial-key(choices=3)").choices
    3
    """
    return GROUPINGS.parse(text)
