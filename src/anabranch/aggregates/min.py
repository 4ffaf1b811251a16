"""The smallest value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from anabranch.aggregates.aggregate import Aggregate, StateColumn, Types
from anabranch.aggregates.encoding.order import is_orderable
from anabranch.aggregates.groups import Groups
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class Min(Aggregate):
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

    value: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.value,)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("min", self.result_type(types), "min"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.min(*columns),)

    def result_type(self, types: Types) -> pa.DataType:
        type_ = types[self.value]
        if not is_orderable(type_):
            rule = "Min needs a column of numbers, times, strings, binaries or booleans"
            raise ConfigError(f"{rule}, '{self.value}' is {type_}; name one of its fields")
        return type_
