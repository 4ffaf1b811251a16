"""The simulator: sources, edge, workers and aggregator in one process, on virtual time."""

from anabranch.simulate.lower_bound import LowerBound, ReplicationBound, bound
from anabranch.simulate.result import METRICS, Result, Windows
from anabranch.simulate.run import simulate
from anabranch.simulate.settings import Change, Settings
from anabranch.simulate.sweeps import Cell, sweep

__all__ = [
    "METRICS",
    "Cell",
    "Change",
    "LowerBound",
    "ReplicationBound",
    "Result",
    "Settings",
    "Windows",
    "bound",
    "simulate",
    "sweep",
]


def __dir__() -> list[str]:
    return sorted(__all__)
