"""How an application's tuples are spread over workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

from pyspark.sql import DataFrame

from anabranch.errors import ConfigError
from anabranch.groupings import Grouping, Spillway
from anabranch.spark import Balanced, balance
from anabranch.spark.settings import Edge, Regime

DEFAULT_GROUPING = Spillway()
# Columns that a source adds to tell its rows apart have names that begin like this.
ROW = "__anabranch_row_"


@dataclass(frozen=True)
class Balancing:
    """The options of `anabranch.spark.balance`, without the data; see there for what they mean.

    `work_us` is a delay of so many microseconds per row, for trials.
    """

    grouping: Grouping = field(default=DEFAULT_GROUPING)
    n_workers: int = 16
    edge: str | None = None
    ledger: str | None = None
    regime: str = "batch"
    flush_every: int = 1
    work_us: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_workers < 1:
            raise ConfigError(f"n_workers must be at least 1, got {self.n_workers}")

    def balance(self, tuples: DataFrame, key: str) -> Balanced:
        """Spread these tuples by this key."""
        balanced = balance(
            tuples,
            key=key,
            grouping=self.grouping,
            n_workers=self.n_workers,
            edge=cast(Edge | None, self.edge),
            ledger=self.ledger,
            regime=cast(Regime, self.regime),
            flush_every=self.flush_every,
            seed=self.seed,
            row_id=row_columns(tuples) if self.edge == "planned" else (),
        )
        return emulating(balanced, self.work_us)

    def identity(self) -> dict[str, Any]:
        """What a checkpoint is bound to: with other values its states would be read wrongly."""
        resident = {"workers": self.n_workers} if self.regime == "resident" else {}
        return {"regime": self.regime, **resident}

    def routing(self) -> dict[str, Any]:
        """What routes depend on, and what the ledger has learned for them, but no answer."""
        return {
            "grouping": self.grouping.name,
            "parameters": {name: str(value) for name, value in self.grouping.parameters().items()},
            "workers": self.n_workers,
            "edge": self.edge or "adaptive",
            "seed": self.seed,
        }


def emulating(balanced: Balanced, work_us: float) -> Balanced:
    """The same with workers that take so many microseconds per row, for trials: a delay."""
    return replace(balanced, settings=replace(balanced.settings, work_us=work_us))


def row_columns(rows: DataFrame) -> list[str]:
    """Columns that tell the rows of a source apart, such as the partition and offset of a record."""
    return [name for name in rows.columns if name.startswith(ROW)]
