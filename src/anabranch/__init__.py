"""Keyed, stateful work on skewed data, balanced on Apache Spark.

Subpackages load when first used, so that ``import anabranch`` stays cheap: numba, pyarrow and Spark are only
imported by the parts that need them.

Examples
--------
>>> from anabranch import groupings, hashing
>>> router = groupings.PartialKeyGrouping().build(n_workers=4)
>>> router.route(hashing.hash_keys(["to", "be", "or", "not", "to", "be"])).tolist()
[3, 2, 2, 0, 3, 1]
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch import (
        aggregates,
        apps,
        chain,
        errors,
        groupings,
        hashing,
        metrics,
        predictors,
        report,
        simulate,
        sketches,
        spark,
        streams,
    )

__version__ = "0.1.0"

__all__ = [
    "aggregates",
    "apps",
    "chain",
    "errors",
    "groupings",
    "hashing",
    "metrics",
    "predictors",
    "report",
    "simulate",
    "sketches",
    "spark",
    "streams",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
