"""Operators in a row, each with its own key: correlated keys share servers, so that tuples stay where they are.

`place` and `Manager` make routing tables, `simulate_chain` says what they are worth, and `chain` runs operators in a
row on Spark. Only what runs on Spark needs PySpark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anabranch.chain.planning import (
    METHODS,
    Decision,
    KeyGraph,
    Manager,
    PairCounts,
    Pairs,
    Placement,
    Seats,
    Servers,
    place,
)
from anabranch.chain.simulation.result import CHAIN_METRICS, ChainResult, Period
from anabranch.chain.simulation.run import simulate_chain
from anabranch.chain.simulation.settings import ChainSettings

if TYPE_CHECKING:
    from anabranch.chain.spark.chain import Chain, answers_of, chain
    from anabranch.chain.spark.metrics import chain_metrics
    from anabranch.chain.spark.settings import Reconfiguration

__all__ = [
    "CHAIN_METRICS",
    "METHODS",
    "Chain",
    "ChainResult",
    "ChainSettings",
    "Decision",
    "KeyGraph",
    "Manager",
    "PairCounts",
    "Pairs",
    "Period",
    "Placement",
    "Reconfiguration",
    "Seats",
    "Servers",
    "answers_of",
    "chain",
    "chain_metrics",
    "place",
    "simulate_chain",
]

# They need PySpark, and so are imported on first use.
_ON_SPARK = {
    "Chain": "chain",
    "answers_of": "chain",
    "chain": "chain",
    "Reconfiguration": "settings",
    "chain_metrics": "metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"anabranch.chain.spark.{_ON_SPARK[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
