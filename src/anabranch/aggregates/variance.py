"""How far values are spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.encoding.binned import FixedPoint, quotients
from anabranch.aggregates.groups import Groups
from anabranch.arrays import F64


@dataclass(frozen=True)
class Variance(ColumnAggregate):
    """Measures the spread of a column: the mean of squared distances from the mean.

    When to use it
    --------------
    For volatility and quality control. Its square root is the standard deviation.

    Guarantees
    ----------
    Equals Spark's ``var_samp``, or ``var_pop``, up to the rounding that Spark does and this class does not: Σ x and
    Σ x² are exact, and the result is rounded once, while values are 0 or between 2^-44 (6e-14) and 2^63 (9e18). Of
    other values the same digits are summed as by `Sum`, and the result may lose digits where the spread is much smaller
    than the mean. A square that is itself beyond doubles is infinite.

    Parameters
    ----------
    value
        Column of numbers; nulls are left out.
    population
        Divide by the number of values n, not by n − 1. Where there is nothing to divide by the result is null.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1, 1]}), ["key"])
    >>> variance = Variance("price")
    >>> variance.result(*variance.add(groups, pa.array([1e9 + 1, 1e9 + 2, 1e9 + 3]))).to_pylist()
    [1.0]
    """

    population: bool = False
    result_only: ClassVar[tuple[str, ...]] = ("population",)
    _squares: ClassVar[FixedPoint] = FixedPoint("square", unit=-192, n_limbs=10)
    _sums: ClassVar[FixedPoint] = FixedPoint("sum")

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        self.result_type(types)
        return (*self._squares.columns(), *self._sums.columns(), StateColumn("count", pa.int64(), "sum"))

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        (values,) = columns
        squares, sums = self._squares.sum_products(groups, values, values), self._sums.sum(groups, values)
        return (*squares, *sums, groups.count(values))

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        squares, sums, count = self._split(states)
        return (*self._squares.merge(groups, squares), *self._sums.merge(groups, sums), groups.sum(count))

    def result(self, *states: pa.Array) -> pa.Array:
        squares, sums, count = self._split(states)
        n = count.fill_null(0).to_numpy()
        divisors = n if self.population else n - 1
        empty = (n == 0) | (divisors == 0)
        n, divisors = (np.where(empty, 1, ints).astype(np.object_) for ints in (n, divisors))
        variances = self._finite(squares, sums, n, n * divisors)
        square, total = self._squares.special(squares), self._sums.special(sums)
        infinite = np.where((total != 0) | np.isnan(square), np.nan, np.inf)
        return pa.array(np.where((square == 0) & (total == 0), variances, infinite), mask=empty)

    def result_type(self, types: Types) -> pa.DataType:
        self.integers_or_floats(types)
        return pa.float64()

    def _split(self, states: tuple[pa.Array, ...]) -> tuple[tuple[pa.Array, ...], tuple[pa.Array, ...], pa.Array]:
        return states[: self._squares.width], states[self._squares.width : -1], states[-1]

    def _finite(
        self,
        squares: tuple[pa.Array, ...],
        sums: tuple[pa.Array, ...],
        n: NDArray[np.object_],
        divisors: NDArray[np.object_],
    ) -> F64:
        """(n Σ x² − (Σ x)²) / divisor."""
        square, square_unit = self._squares.exact(squares)
        total, unit = self._sums.exact(sums)
        finest = min(square_unit, 2 * unit)
        spread = (n * square << (square_unit - finest)) - (total**2 << (2 * unit - finest))
        # What was rounded may make the difference of two equal numbers negative.
        return quotients(np.maximum(spread, 0), divisors, finest)
