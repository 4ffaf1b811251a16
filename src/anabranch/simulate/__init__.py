"""The simulator: sources, edge, workers and aggregator in one process, on virtual time."""

from anabranch.simulate.bound import Bound, ReplicationBound, bound
from anabranch.simulate.chain import simulate_chain
from anabranch.simulate.chain_result import CHAIN_METRICS, ChainResult, Period
from anabranch.simulate.chain_settings import ChainSettings
from anabranch.simulate.result import METRICS, Result, Windows
from anabranch.simulate.run import simulate
from anabranch.simulate.settings import Change, Settings
from anabranch.simulate.sweep import Cell, sweep

__all__ = [
    "CHAIN_METRICS",
    "METRICS",
    "Bound",
    "Cell",
    "ChainResult",
    "ChainSettings",
    "Change",
    "Period",
    "ReplicationBound",
    "Result",
    "Settings",
    "Windows",
    "bound",
    "simulate",
    "simulate_chain",
    "sweep",
]


def __dir__() -> list[str]:
    return sorted(__all__)
