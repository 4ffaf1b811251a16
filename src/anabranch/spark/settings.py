"""How one balanced query runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from anabranch.errors import ConfigError
from anabranch.groupings import Grouping

Edge = Literal["adaptive", "planned", "local"]
Regime = Literal["batch", "resident"]
HASH, WORKER = "__anabranch_hash", "__anabranch_worker"


@dataclass(frozen=True)
class QuerySettings:
    """Everything that tasks need to know, checked and picklable; see `balance` for the parameters."""

    grouping: Grouping
    n_workers: int
    edge: Edge
    ledger: str | None = None
    regime: Regime = "batch"
    flush_every: int = 1
    seed: int = 0
    # For trials: a delay of so many microseconds per row.
    work_us: float = 0.0
    keys: tuple[str, ...] = field(default=())
    row_id: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not isinstance(self.n_workers, int) or self.n_workers < 1:
            raise ConfigError(f"n_workers must be a whole number, at least 1, got {self.n_workers!r}")
        if self.edge not in get_args(Edge):
            raise ConfigError(f"edge must be one of {', '.join(get_args(Edge))}, got {self.edge!r}")
        if self.regime not in get_args(Regime):
            raise ConfigError(f"regime must be one of {', '.join(get_args(Regime))}, got {self.regime!r}")
        if self.flush_every < 1:
            raise ConfigError(f"flush_every must be at least 1 batch, got {self.flush_every}")
        if self.flush_every > 1 and self.regime == "batch":
            raise ConfigError('flush_every is for regime="resident"; the batch regime flushes every batch')
        if not -(2**63) <= self.seed < 2**63:
            raise ConfigError(f"seed must fit 64 bits with a sign, as Spark's numbers do, got {self.seed}")
        if self.work_us < 0:
            raise ConfigError(f"work_us must not be negative, got {self.work_us}")
        self._check_edge()

    def _check_edge(self) -> None:
        name = self.grouping.name
        if self.edge == "planned" and not self.grouping.has_table():
            raise ConfigError(
                f"{name} chooses tuple by tuple and cannot be written as a table, which the planned edge needs; "
                'use edge="adaptive", or a grouping such as w-choices'
            )
        if self.row_id and self.edge != "planned":
            raise ConfigError(
                f"row_id is for the planned edge; the {self.edge} edge repeats itself without it, so leave it out"
            )
        if self.edge == "local" and self.regime == "resident":
            raise ConfigError("the local edge has no workers for states to live on; use the batch regime with it")

    @property
    def needs_plan(self) -> bool:
        """Whether the planned edge has to learn something before it is more than hashing."""
        return self.edge == "planned" and self.grouping.learns

    def identity(self) -> dict[str, Any]:
        """What must stay the same as long as a query lives."""
        return {
            "grouping": self.grouping.name,
            "parameters": self.grouping.parameters(),
            "n_workers": self.n_workers,
            "edge": self.edge,
            "regime": self.regime,
            "seed": self.seed,
            "keys": list(self.keys),
        }
