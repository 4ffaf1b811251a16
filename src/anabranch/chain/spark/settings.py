"""How a chain of operators runs on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from anabranch.chain.planning import Manager, Placement
from anabranch.chain.spark.step import Step
from anabranch.errors import ConfigError
from anabranch.spark.workers.declared import declared
from anabranch.spark.workers.partial_states import PartialStates

Function = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Reconfiguration:
    """When and how the tables of a running chain change.

    Parameters
    ----------
    every
        Micro-batches from one decision to the next, a period.
    history, fade
        Periods whose pairs a plan is made from; each counts `fade` times as much as the next. The paper has 1; keys
        that come back after longer than a period need more.
    capacity
        Counters of pairs that a worker has in a batch.
    manager
        Plans and decides; its number of servers and its seed are those of the chain. With ``split=True`` hot keys are
        split, except those of stateful steps: a partial state with every worker, and tuples that stay on their host.
    n_servers
        None: servers are the hosts that the workers report. A number, for trials on one machine: worker w counts as
        being on server w modulo this.
    """

    every: int = 10
    history: int = 1
    fade: float = 0.8
    capacity: int = 100_000
    manager: Manager = field(default_factory=lambda: Manager(1, method="greedy"))
    n_servers: int | None = None

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ConfigError(f"every must be at least 1 batch, got {self.every}")
        if self.history < 1:
            raise ConfigError(f"history must be at least 1 period, got {self.history}")
        if not 0 < self.fade <= 1:
            raise ConfigError(f"fade must be above 0 and at most 1, got {self.fade}; 1 counts all periods alike")
        if self.capacity < 1:
            raise ConfigError(f"capacity must be at least 1 counter, got {self.capacity}")
        if self.n_servers is not None and self.n_servers < 1:
            raise ConfigError(f"n_servers must be at least 1, got {self.n_servers}; None takes the hosts there are")


@dataclass(frozen=True)
class TaskSettings:
    """What the tasks of a chain need to know besides its operators, checked and picklable; see `chain`."""

    n_operators: int
    n_workers: int
    ledger: str | None = None
    flush_every: int = 1
    seed: int = 0
    reconfiguration: Reconfiguration = field(default_factory=Reconfiguration)
    placement: Placement | None = None
    # Operators whose states are in one place, and for which tables must be those that there are: stateful steps.
    steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.n_operators < 2:
            raise ConfigError(
                f"a chain has at least two operators, got {self.n_operators}; add one with .then(…), or use balance"
            )
        if self.n_workers < 1:
            raise ConfigError(f"n_workers must be at least 1, got {self.n_workers}")
        if self.flush_every < 1:
            raise ConfigError(f"flush_every must be at least 1 batch, got {self.flush_every}")
        servers = self.reconfiguration.n_servers
        if servers is not None and servers > self.n_workers:
            raise ConfigError(f"n_servers must be at most n_workers = {self.n_workers}, got {servers}")
        if self.placement is not None:
            self._check(self.placement)

    def _check(self, placement: Placement) -> None:
        if len(placement.tables) != self.n_operators or placement.n_servers != self.n_workers:
            raise ConfigError(
                f"placement must be for {self.n_operators} operators on {self.n_workers} workers, got one for "
                f"{len(placement.tables)} on {placement.n_servers}; make it with n_servers={self.n_workers}"
            )
        for operator in self.steps:
            if len(placement.tables[operator].split_keys):
                raise ConfigError(
                    f"placement must not split keys of the stateful step {operator}, whose states cannot be merged; "
                    "make it with split=False, or the numbers of the other operators"
                )

    def first_placement(self) -> Placement:
        """In force until the manager decides otherwise: the one given, or every key by hash."""
        return self.placement or Placement.hashed(self.n_operators, self.n_workers, self.seed)


@dataclass(frozen=True)
class Operator:
    """One stateful operator, with what becomes of a tuple on its way to the next.

    Parameters
    ----------
    name
        Of its answers.
    partial_states
        Its keys and aggregates.
    columns
        Of the tuples that it gets.
    between
        Stateless steps that its workers run before they send a tuple on, each with the schema of what it returns.
    step
        What a stateful step computes, which has no aggregates; None for all other operators.
    """

    name: str
    partial_states: PartialStates
    columns: tuple[str, ...]
    between: tuple[tuple[Function, pa.Schema], ...] = ()
    step: Step | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Key columns."""
        return self.partial_states.keys

    def onward(self, tuples: pa.Table) -> pa.Table:
        """The tuples as the next operator gets them, with columns that it may not need."""
        for func, schema in self.between:
            # Types are made those that were declared: later steps, and Spark, take them for granted.
            tuples = declared(func(tuples), schema, f"the map after operator {self.name}")
        return tuples


def identity(settings: TaskSettings, operators: tuple[Operator, ...]) -> dict[str, Any]:
    """What must stay the same as long as a query lives."""
    states = [
        None if one.step is None else [f"{field.name} {field.type}" for field in one.step.states] for one in operators
    ]
    return {
        "chain": [operator.name for operator in operators],
        "keys": [list(operator.keys) for operator in operators],
        "n_workers": settings.n_workers,
        "seed": settings.seed,
        "states": states,
    }
