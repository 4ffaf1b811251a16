"""Locality: correlated keys of operators in a row on the same server."""

from anabranch.locality.graph import KeyGraph
from anabranch.locality.manager import Decision, Manager
from anabranch.locality.pair_counts import PairCounts
from anabranch.locality.pairs import Pairs
from anabranch.locality.placement import Placement
from anabranch.locality.planner import METHODS, plan
from anabranch.locality.seats import Seats
from anabranch.locality.servers import Servers

__all__ = ["METHODS", "Decision", "KeyGraph", "Manager", "PairCounts", "Pairs", "Placement", "Seats", "Servers", "plan"]


def __dir__() -> list[str]:
    return sorted(__all__)
