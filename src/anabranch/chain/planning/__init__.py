"""Routing tables that keep correlated keys of operators in a row on one server."""

from anabranch.chain.planning.graph import KeyGraph
from anabranch.chain.planning.manager import Decision, Manager
from anabranch.chain.planning.pair_counts import PairCounts
from anabranch.chain.planning.pairs import Pairs
from anabranch.chain.planning.placement import Placement
from anabranch.chain.planning.planner import METHODS, place
from anabranch.chain.planning.seats import Seats
from anabranch.chain.planning.servers import Servers

__all__ = [
    "METHODS",
    "Decision",
    "KeyGraph",
    "Manager",
    "PairCounts",
    "Pairs",
    "Placement",
    "Seats",
    "Servers",
    "place",
]


def __dir__() -> list[str]:
    return sorted(__all__)
