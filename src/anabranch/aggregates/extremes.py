"""The smallest and the largest value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.groups import Groups


@dataclass(frozen=True)
class _Extreme(ColumnAggregate):
    _merge: ClassVar[str]

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn(self._merge, self.result_type(types), self._merge),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (getattr(groups, self._merge)(*columns),)

    def result_type(self, types: Types) -> pa.DataType:
        return self.orderable(types)


@dataclass(frozen=True)
class Min(_Extreme):
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

    _merge: ClassVar[str] = "min"


@dataclass(frozen=True)
class Max(_Extreme):
    """Keeps the largest value of a column, of the types that `Min` takes and in the same order.

    Guarantees
    ----------
    Equals Spark's ``max``.

    Parameters
    ----------
    value
        Column, as for `Min`.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1, 2]}), ["key"])
    >>> Max("price").add(groups, pa.array([3.5, float("nan"), None]))[0].to_pylist()
    [nan, None]
    """

    _merge: ClassVar[str] = "max"
