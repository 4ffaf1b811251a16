"""The largest value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from anabranch.aggregates.aggregate import Aggregate, StateColumn, Types
from anabranch.aggregates.encoding.order import is_orderable
from anabranch.aggregates.groups import Groups
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class Max(Aggregate):
    """Keeps the largest value of a column.

    When to use it
    --------------
    For numbers, decimals, dates, timestamps, strings, binaries and booleans.

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

    value: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.value,)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("max", self.result_type(types), "max"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.max(*columns),)

    def result_type(self, types: Types) -> pa.DataType:
        type_ = types[self.value]
        if not is_orderable(type_):
            rule = "Max needs a column of numbers, times, strings, binaries or booleans"
            raise ConfigError(f"{rule}, '{self.value}' is {type_}; name one of its fields")
        return type_
