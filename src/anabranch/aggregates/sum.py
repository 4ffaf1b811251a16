"""How much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.encoding.binned import FixedPoint
from anabranch.aggregates.encoding.halves import DecimalHalves, IntegerHalves
from anabranch.aggregates.encoding.sums import MAX_PRECISION, summed
from anabranch.aggregates.groups import Groups
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class Sum(ColumnAggregate):
    """Adds up a column, doubles as well, whatever the order of the tuples.

    When to use it
    --------------
    For amounts, volumes and durations. A column of doubles has a wider state than one of integers or decimals (twelve
    columns), which makes its sum exact: choose the narrower type where the data has one.

    Guarantees
    ----------
    Equals Spark's ``sum``, also in type: bigint for integers, double for floats, a decimal of ten more digits, at most
    38, for decimals. Where the sum itself has too many digits it is what Spark makes of it: an error that names the
    column under ANSI; else an integer is wrapped around, and a decimal is null. No partial sum overflows.

    A sum of doubles does not depend on their order, nor on how they were split. It is the exact sum, rounded once,
    while they are 0 or between 2^-75 (3e-23) and 2^128 (3e38). Where some are not, each of those counts up to an error
    of 2^-52 times the largest of them. No partial sum overflows: the sum is ±inf because it is beyond doubles itself,
    or because an infinity is among the values, and NaN because a NaN or both infinities are.

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

    _doubles: ClassVar[FixedPoint] = FixedPoint("sum")
    _integers: ClassVar[IntegerHalves] = IntegerHalves()
    _long_decimals: ClassVar[DecimalHalves] = DecimalHalves()

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        type_ = self.result_type(types)
        if pa.types.is_floating(type_):
            return self._doubles.columns()
        if pa.types.is_integer(type_):
            return self._integers.columns()
        # Ten digits to spare are enough for any sum.
        return self._long_decimals.columns() if _is_long(types[self.value]) else (StateColumn("sum", type_, "sum"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        (values,) = columns
        if pa.types.is_floating(values.type):
            return self._doubles.sum(groups, values)
        if pa.types.is_integer(values.type):
            return self._integers.sum(groups, values)
        return self._long_decimals.sum(groups, values) if _is_long(values.type) else (groups.sum(values),)

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        if len(states) == 1:
            return (groups.sum(states[0]).cast(states[0].type),)
        if len(states) > 2:
            return self._doubles.merge(groups, states)
        return (self._long_decimals if pa.types.is_decimal(states[1].type) else self._integers).merge(groups, *states)

    def result(self, *states: pa.Array) -> pa.Array:
        if len(states) == 1:
            return states[0]
        if len(states) == 2:
            return super().result(*states) if pa.types.is_decimal(states[1].type) else self._integers.whole(*states)
        return pa.array(self._doubles.totals(states), mask=states[0].is_null().to_numpy(zero_copy_only=False))

    def native_result(self, types: Types) -> str | None:
        type_ = self.result_type(types)
        if pa.types.is_floating(type_):
            return None
        if pa.types.is_integer(type_):
            return self._integers.sql(self.value)
        if _is_long(types[self.value]):
            return self._long_decimals.sql(self.value, type_.scale)
        # Spark's own sum of the partial sums has ten digits more.
        return f"CAST({{sum}} AS DECIMAL({type_.precision}, {type_.scale}))"

    def result_type(self, types: Types) -> pa.DataType:
        type_ = types[self.value]
        if pa.types.is_signed_integer(type_):
            return pa.int64()
        if pa.types.is_floating(type_):
            return pa.float64()
        if pa.types.is_decimal(type_):
            return summed(type_)
        raise ConfigError(f"Sum needs a column of numbers, '{self.value}' is {type_}; cast it first")


def _is_long(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type_) and type_.precision > MAX_PRECISION - 10)
