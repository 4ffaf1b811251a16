"""How an application's tuples are spread over workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from anabranch.errors import ConfigError
from anabranch.groupings import Grouping, Spillway
from anabranch.spark import Balanced, balance

DEFAULT_GROUPING = Spillway()
# Columns that a source adds to tell its rows apart have names that begin like this.
ROW = "__anabranch_row_"


@dataclass(frozen=True)
class Balancing:
    """The options of `anabranch.spark.balance`, without the data; see there for what they mean."""

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
        return balance(
            tuples,
            key=key,
            grouping=self.grouping,
            n_workers=self.n_workers,
            edge=self.edge,
            ledger=self.ledger,
            regime=self.regime,
            flush_every=self.flush_every,
            work_us=self.work_us,
            seed=self.seed,
            deal_by=row_columns(tuples) if self.edge == "planned" else (),
        )

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


def row_columns(rows: DataFrame) -> list[str]:
    """Columns that tell the rows of a source apart, such as the partition and offset of a record."""
    return [name for name in rows.columns if name.startswith(ROW)]
