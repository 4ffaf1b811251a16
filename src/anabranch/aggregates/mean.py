"""The average."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.encoding.binned import FixedPoint, finite_or, quotients
from anabranch.aggregates.encoding.sums import summed
from anabranch.aggregates.groups import Groups
from anabranch.arrays import F64, I64, Bools
from anabranch.errors import ConfigError

# With more digits than this the sum of decimals would have no ten digits to spare.
_MAX_DIGITS = 28
# Spark rounds a quotient of decimals here before it rounds it to the scale of the result.
_DIVISION_SCALE = 39


@dataclass(frozen=True)
class Mean(ColumnAggregate):
    """Averages a column: the exact sum over the number of values.

    When to use it
    --------------
    For averages where every tuple counts alike; `WeightedMean` where it does not.

    Guarantees
    ----------
    Equals Spark's ``avg``, also in type: double, or for decimals a decimal of four more digits, rounded half up.

    A mean of doubles is the exact one, rounded once, within the range that `Sum` has. It is finite where all values
    are, even where their sum is beyond doubles.

    Parameters
    ----------
    value
        Column of numbers. Nulls are left out; where all are null the mean is null.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1, 1]}), ["key"])
    >>> mean = Mean("price")
    >>> mean.result(*mean.add(groups, pa.array([0.5, 1.0, None]))).to_pylist()
    [0.75]
    """

    _doubles: ClassVar[FixedPoint] = FixedPoint("sum")

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        self.result_type(types)
        count = StateColumn("count", pa.int64(), "sum")
        if _is_wide(types[self.value]):
            return (*self._doubles.columns(), count)
        decimal = pa.types.is_decimal(types[self.value])
        return (StateColumn("sum", summed(types[self.value]) if decimal else pa.int64(), "sum"), count)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        (values,) = columns
        sums = self._doubles.sum(groups, values) if _is_wide(values.type) else (groups.sum(values),)
        return (*sums, groups.count(values))

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        *sums, count = states
        merged = self._doubles.merge(groups, sums) if len(sums) > 1 else (groups.sum(sums[0]).cast(sums[0].type),)
        return (*merged, groups.sum(count))

    def result(self, *states: pa.Array) -> pa.Array:
        *sums, count = states
        counts = count.fill_null(0).to_numpy()
        empty, counts = counts == 0, np.maximum(counts, 1)
        if pa.types.is_decimal(sums[0].type):
            return _decimal_means(sums[0], counts, empty)
        if len(sums) == 1:
            return pa.array(sums[0].fill_null(0).to_numpy() / counts, mask=empty)
        return pa.array(self._double_means(tuple(sums), counts), mask=empty)

    def result_type(self, types: Types) -> pa.DataType:
        type_ = types[self.value]
        if pa.types.is_signed_integer(type_) or pa.types.is_floating(type_):
            return pa.float64()
        if pa.types.is_decimal(type_) and type_.precision <= _MAX_DIGITS:
            return pa.decimal128(type_.precision + 4, type_.scale + 4)
        rule = f"Mean needs a column of integers, floats or decimals of at most {_MAX_DIGITS} digits"
        raise ConfigError(f"{rule}, '{self.value}' is {type_}; cast it to double or to fewer digits")

    def _double_means(self, sums: tuple[pa.Array, ...], counts: I64) -> F64:
        integers, unit = self._doubles.exact(sums)
        return finite_or(self._doubles.special(sums), quotients(integers, counts.astype(np.object_), unit))


def _is_wide(type_: pa.DataType) -> bool:
    # A sum of bigints may overflow where Spark's average, which adds them as doubles, does not.
    return bool(pa.types.is_floating(type_) or pa.types.is_int64(type_))


def _decimal_means(sums: pa.Array, counts: I64, empty: Bools) -> pa.Array:
    type_ = pa.decimal128(sums.type.precision - 6, sums.type.scale + 4)
    means = [
        None if missing else _mean(total, int(count), type_.scale)
        for total, count, missing in zip(sums.to_pylist(), counts, empty, strict=True)
    ]
    return pa.array(means, type_)


def _mean(total: Decimal, count: int, scale: int) -> Decimal:
    sign, digits, exponent = total.as_tuple()
    magnitude = int("".join(map(str, digits))) * 10 ** (_DIVISION_SCALE + int(exponent))
    finer = 10 ** (_DIVISION_SCALE - scale)
    rounded = _half_up(_half_up(magnitude, count), finer)
    return Decimal((sign, tuple(map(int, str(rounded))), -scale))


def _half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
