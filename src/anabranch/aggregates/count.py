"""How many."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from anabranch.aggregates.aggregate import Aggregate, StateColumn, Types
from anabranch.aggregates.groups import Groups


@dataclass(frozen=True)
class Count(Aggregate):
    """Counts the tuples of a key, or those whose value is not null.

    When to use it
    --------------
    For word counts, hits and votes; ``Count("price")`` is SQL's ``count(price)``.

    Guarantees
    ----------
    Equals Spark's ``count``.

    Parameters
    ----------
    value
        Column whose nulls are not counted; None counts every tuple.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"word": ["a", "b", "a"]}), ["word"])
    >>> Count().add(groups)[0].to_pylist()
    [2, 1]
    """

    value: str | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return () if self.value is None else (self.value,)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("count", pa.int64(), "sum"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.count(*columns),)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.int64()
