"""How much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from anabranch.aggregates.aggregate import Aggregate, StateColumn, Types
from anabranch.aggregates.binned import FixedPoint
from anabranch.aggregates.groups import Groups
from anabranch.aggregates.sums import summed
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class Sum(Aggregate):
    """Adds up a column, doubles as well, whatever the order of the tuples.

    When to use it
    --------------
    For amounts, volumes and durations. A column of doubles has a wider state than one of integers or decimals (nine
    columns), which makes its sum exact: choose the narrower type where the data has one.

    Guarantees
    ----------
    Equals Spark's ``sum``, also in type: bigint for integers, double for floats, a decimal of ten more digits for
    decimals. An overflow of integers or decimals is an InputError.

    A sum of doubles is the exact sum, rounded once, while they are 0 or between 2^-75 (3e-23) and 2^128 (3e38); others
    are added up to rounding.

    Parameters
    ----------
    value
        Column of numbers. Nulls are left out; where all are null the sum is null.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1, 1]}), ["key"])
    >>> total = Sum("price")
    >>> total.result(*total.add(groups, pa.array([1e16, 1.0, -1e16]))).to_pylist()
    [1.0]
    """

    value: str
    _doubles: ClassVar[FixedPoint] = FixedPoint("sum")

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.value,)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        type_ = types[self.value]
        if pa.types.is_floating(type_):
            return self._doubles.columns()
        return (StateColumn("sum", self.result_type(types), "sum"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        (values,) = columns
        return self._doubles.sum(groups, values) if pa.types.is_floating(values.type) else (groups.sum(values),)

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        if len(states) == 1:
            return (groups.sum(states[0]).cast(states[0].type),)
        return self._doubles.merge(groups, states)

    def result(self, *states: pa.Array) -> pa.Array:
        if len(states) == 1:
            return states[0]
        return pa.array(self._doubles.totals(states), mask=states[0].is_null().to_numpy(zero_copy_only=False))

    def native_result(self, types: Types) -> str | None:
        type_ = self.result_type(types)
        if pa.types.is_floating(type_):
            return None
        # Spark's own sum of the partial sums has ten digits more.
        return f"CAST({{sum}} AS DECIMAL({type_.precision}, {type_.scale}))" if pa.types.is_decimal(type_) else "{sum}"

    def result_type(self, types: Types) -> pa.DataType:
        type_ = types[self.value]
        if pa.types.is_signed_integer(type_):
            return pa.int64()
        if pa.types.is_floating(type_):
            return pa.float64()
        if pa.types.is_decimal(type_):
            return summed(type_)
        raise ConfigError(f"Sum needs a column of numbers, '{self.value}' is {type_}; cast it first")
