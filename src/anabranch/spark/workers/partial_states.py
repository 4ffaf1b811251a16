"""Partial states of keys: made from rows and merged, vectorised over all keys of a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from anabranch.aggregates import ALL, Aggregate, Groups, StateColumn, Types, merge_states
from anabranch.spark.columns.key_columns import normal
from anabranch.spark.columns.types import array_of
from anabranch.spark.workers.call import Call
from anabranch.spark.workers.own_aggregate import native_of, result_type_of

TUPLES = "__anabranch_tuples"


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate of a query: the name of its result, its state for the types at hand, and the columns it reads."""

    name: str
    aggregate: Aggregate
    columns: tuple[StateColumn, ...]
    # In the DataFrame, whose names may differ in case from those that the aggregate has; default: they do not.
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.reads:
            object.__setattr__(self, "reads", self.aggregate.inputs)

    @property
    def states(self) -> list[str]:
        """Names of the state columns in the DataFrame."""
        # A key may have any name but these.
        return [f"__anabranch_{self.name}__{column.name}" for column in self.columns]

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own aggregate, which is not taken at its word."""
        return type(self.aggregate) not in ALL

    def add(self, groups: Groups, table: pa.Table) -> tuple[pa.Array, ...]:
        """State of each group from tuples."""
        inputs = [array_of(table[name]) for name in self.reads]
        return self._states("add", groups.n, self.aggregate.add, groups, *inputs)

    def merge(self, groups: Groups, states: tuple[pa.Array, ...]) -> tuple[pa.Array, ...]:
        """State of each group from partial states."""
        return self._states("merge", groups.n, merge_states, self.aggregate, self.columns, groups, states)

    def result(self, states: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
        """What the user sees of these states, of this type."""
        if not self.is_own:
            return self.aggregate.result(*states)
        call = Call(self.name, self.aggregate, "result", len(states[0]))
        return call.array(call(self.aggregate.result, *states), self.name, kind)

    def _states(self, name: str, n: int, method: Callable[..., Any], *args: object) -> tuple[pa.Array, ...]:
        if not self.is_own:
            return tuple(method(*args))
        call = Call(self.name, self.aggregate, name, n)
        return call.states(call(method, *args), self.columns)


@dataclass(frozen=True)
class PartialStates:
    """From rows or partial states to partial states: what a worker and a merging task compute."""

    keys: tuple[str, ...]
    bounds: tuple[BoundAggregate, ...]
    # What states that outlive a batch are marked with; see `anabranch.spark.merging.fingerprint`.
    fingerprint: tuple[tuple[int, int], ...] = ()

    def add(self, table: pa.Table) -> pa.Table:
        """One row per key: its columns and the states of all aggregates."""
        groups, keys = Groups.of(normal(table, self.keys), self.keys)
        for bound in self.bounds:
            for name, state in zip(bound.states, bound.add(groups, table), strict=True):
                keys = keys.append_column(name, state)
        return keys.append_column(TUPLES, groups.count())

    def merge(self, partials: pa.Table) -> pa.Table:
        """One row per key from several."""
        groups, keys = Groups.of(partials, self.keys)
        for bound in self.bounds:
            states = tuple(array_of(partials[name]) for name in bound.states)
            for name, state in zip(bound.states, bound.merge(groups, states), strict=True):
                keys = keys.append_column(name, state)
        return keys.append_column(TUPLES, groups.sum(array_of(partials[TUPLES])))

    def warm_up(self, types: Types) -> None:
        """Compile the aggregates' kernels for these columns once, before many Python workers would.

        Ours get rows. A user's own may expect values that only real rows have, so they get none; a mistake that shows
        without rows ends the query here.
        """
        own = tuple(bound for bound in self.bounds if bound.is_own)
        ours = tuple(bound for bound in self.bounds if not bound.is_own)
        replace(self, bounds=ours)._try(types, 2)
        replace(self, bounds=own)._try(types, 0)

    def _try(self, types: Types, n: int) -> None:
        """Call all that tasks will call, with so many rows."""
        merged = self.merge(pa.concat_tables([self.add(_sample(types, n))] * 2))
        for bound in self.bounds:
            if native_of(bound.name, bound.aggregate, types, bound.columns) is None:
                states = [array_of(merged[name]) for name in bound.states]
                bound.result(states, result_type_of(bound.name, bound.aggregate, types))

    @property
    def columns(self) -> list[str]:
        """Names of the columns of partial states, in order."""
        return [*self.keys, *(name for bound in self.bounds for name in bound.states), TUPLES]

    @property
    def sorts(self) -> bool:
        """Whether the order of arrival would show in a state."""
        return any(bound.aggregate.order_sensitive for bound in self.bounds)

    @property
    def at_once(self) -> bool:
        """Whether it would show in a state how the rows were cut into tables."""
        return self.sorts or any(bound.aggregate.split_sensitive for bound in self.bounds)


def _sample(types: Types, n: int) -> pa.Table:
    """At most two rows of these types: numbers, and nulls for all else."""
    table = {}
    for name, kind in types.items():
        is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
        table[name] = pa.array([1, 2][:n]).cast(kind) if is_number else pa.nulls(n, kind)
    return pa.table(table)
