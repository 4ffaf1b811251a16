"""The smallest and the largest value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.groups import Groups


@dataclass(frozen=True)
class Min(ColumnAggregate):
    """Keeps the smallest value of a column.

    When to use it
    --------------
    For numbers, decimals, dates, timestamps, strings, binaries and booleans.

    Guarantees
    ----------
    Equals Spark's ``min``: NaN is larger than any number, and strings are compared by their bytes.

    Parameters
    ----------
    value
        Column. Nulls are left out; where all are null the result is null.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1, 2]}), ["key"])
    >>> Min("name").add(groups, pa.array(["b", "a", None]))[0].to_pylist()
    ['a', None]
    """

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("min", self.result_type(types), "min"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.min(*columns),)

    def result_type(self, types: Types) -> pa.DataType:
        return self.orderable(types)


@dataclass(frozen=True)
class Max(ColumnAggregate):
    """Keeps the largest value of a column; for the rest, see `Min`.

    Guarantees
    ----------
    Equals Spark's ``max``: NaN is larger than any number, and strings are compared by their bytes.

    Parameters
    ----------
    value
        Column. Nulls are left out; where all are null the result is null.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1, 2]}), ["key"])
    >>> Max("name").add(groups, pa.array(["b", "a", None]))[0].to_pylist()
    ['b', None]
    """

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("max", self.result_type(types), "max"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.max(*columns),)

    def result_type(self, types: Types) -> pa.DataType:
        return self.orderable(types)
