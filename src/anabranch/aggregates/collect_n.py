"""A few of the values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.encoding.lists import explode, leading
from anabranch.aggregates.encoding.order import ordered, sort_within
from anabranch.aggregates.groups import Groups
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class CollectN(ColumnAggregate):
    """Keeps the n smallest values of a column, in ascending order.

    When to use it
    --------------
    For the earliest timestamps of a key, a few examples of its values, or all values where a key has no more than n.
    Spark's ``collect_list`` keeps them all, in no particular order.

    Guarantees
    ----------
    Equals Spark's ``slice(sort_array(collect_list(value)), 1, n)``: duplicates are kept and nulls left out.

    Parameters
    ----------
    value
        Column of numbers, times, strings, binaries or booleans.
    n
        Most values kept, at least 1.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1, 1, 2]}), ["key"])
    >>> CollectN("price", 2).add(groups, pa.array([5, 3, 4, None]))[0].to_pylist()
    [[3, 4], []]
    """

    n: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ConfigError(f"n must be at least 1, got {self.n}; use Count where no value is needed")

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("values", self.result_type(types)),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        present, (values,) = groups.present(*columns)
        integers, back = ordered(values)
        ends, integers = sort_within(present.codes, integers, groups.n)
        chosen, offsets = leading(np.repeat(np.arange(groups.n), np.diff(ends)), groups.n, self.n)
        return (pa.ListArray.from_arrays(offsets, back(integers[chosen])),)

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        codes, values = explode(groups, states[0])
        return self.add(Groups(codes, groups.n), values)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.list_(self.orderable(types))
