"""Sums of doubles as integers, which can be added in any order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.aggregates.aggregate import StateColumn
from anabranch.aggregates.encoding.leading import FINEST, NOTHING, LeadingBits
from anabranch.aggregates.encoding.limbs import add_doubles, add_products, carry
from anabranch.aggregates.encoding.sums import integer_sums, nearest_doubles
from anabranch.aggregates.groups import Groups
from anabranch.arrays import F64, I64


@dataclass(frozen=True)
class FixedPoint:
    """Holds sums of doubles exactly: Σ limb[j] · 2^(32 j + unit), one int64 column a limb.

    Floating-point sums depend on the order of their terms; these do not, and Spark's ``sum`` of each column merges
    them. Four more columns, `LeadingBits`, take what has no place in the limbs: infinities, NaN, and finite values that
    are too large or too fine.

    Guarantees
    ----------
    The sum does not depend on the order of values, nor on how they were split.

    It is the exact sum, rounded once, where all values are 0 or multiples of 2^unit below 2^(unit + 32 n_limbs): with
    the default every double from 2^-75 (3e-23) up to 2^128 (3e38). Of the others, each is off by less than 2^-52 times
    the largest one. No partial sum overflows.

    There is room for 2^31 tuples per group.

    Parameters
    ----------
    name
        Prefix of the columns.
    unit
        Exponent of the finest bit.
    n_limbs
        Number of limbs, of 32 bits each.
    """

    name: str
    unit: int = -128
    n_limbs: int = 8

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.n_limbs + self._leading.width

    def columns(self) -> tuple[StateColumn, ...]:
        """Columns of the state."""
        limbs = [StateColumn(f"{self.name}_{j}", pa.int64(), "sum") for j in range(self.n_limbs)]
        return (*limbs, *self._leading.columns())

    def sum(self, groups: Groups, values: pa.Array) -> tuple[pa.Array, ...]:
        """State of each group; null where all values are null."""
        present, (column,) = groups.present(values)
        doubles = doubles_of(column)
        limbs, left = add_doubles(present.codes, doubles, groups.n, (self.unit, self.n_limbs))
        return _state(present, limbs, self._leading.sum(present.codes[left], doubles[left], groups.n))

    def sum_products(self, groups: Groups, x: pa.Array, y: pa.Array) -> tuple[pa.Array, ...]:
        """State of each group's Σ x·y; null where x or y is always null.

        Products are not rounded, unless they have no place in the limbs; those beyond doubles are infinite.
        """
        present, columns = groups.present(x, y)
        a, b = (doubles_of(column) for column in columns)
        limbs, left = add_products(present.codes, a, b, groups.n, (self.unit, self.n_limbs))
        with np.errstate(over="ignore", invalid="ignore"):
            products = a[left] * b[left]
        return _state(present, limbs, self._leading.sum(present.codes[left], products, groups.n))

    def merge(self, groups: Groups, states: Iterable[pa.Array]) -> tuple[pa.Array, ...]:
        """One state per group from partial states, with carries done: the same as if there had been no parts."""
        present, columns = groups.present(*states)
        arrays = [column.to_numpy() for column in columns]
        limbs = [integer_sums(present.codes, limb, groups.n) for limb in arrays[: self.n_limbs]]
        leading = self._leading.merge(present.codes, arrays[self.n_limbs :], groups.n)
        return _state(present, carry(np.stack(limbs, axis=1)), leading)

    def exact(self, states: Sequence[pa.Array]) -> tuple[NDArray[np.object_], int]:
        """Sum of each group as Python's integers, 0 where the state is null; and the exponent of their unit."""
        total = np.zeros(len(states[0]), np.object_)
        for limb in reversed(states[: self.n_limbs]):
            total = (total << 32) + limb.fill_null(0).to_numpy().astype(np.object_)
        leading = self._leading_of(states)
        if not self._leading.holds(leading).any():
            return total, self.unit
        return (total << (self.unit - FINEST)) + self._leading.integers(leading), FINEST

    def special(self, states: Sequence[pa.Array]) -> F64:
        """±inf or NaN where such values make the sum that, else 0."""
        return self._leading.special(self._leading_of(states))

    def totals(self, states: Sequence[pa.Array]) -> F64:
        """Sum of each group, rounded to the nearest double."""
        integers, unit = self.exact(states)
        return finite_or(self.special(states), quotients(integers, 1, unit))

    @property
    def _leading(self) -> LeadingBits:
        return LeadingBits(self.name)

    def _leading_of(self, states: Sequence[pa.Array]) -> list[NDArray[np.generic]]:
        top, *digits = states[self.n_limbs :]
        return [top.fill_null(NOTHING).to_numpy(), *(column.fill_null(0.0).to_numpy() for column in digits)]


def quotients(numerators: NDArray[np.object_], denominators: NDArray[np.object_] | int, exponent: int) -> F64:
    """Numerator · 2^exponent / denominator, rounded once: Python divides integers so. Beyond doubles it is ±inf."""
    scaled = (numerators << exponent) if exponent > 0 else numerators
    divisors = denominators << max(0, -exponent)
    try:
        rounded = scaled / divisors
    except OverflowError:
        rounded = np.frompyfunc(_quotient, 2, 1)(scaled, divisors)
    # Zero over a negative number would be −0.0.
    return np.asarray(rounded, np.float64) + 0.0


def finite_or(special: F64, finite: F64) -> F64:
    """What a sum is: infinities and NaN where it has them."""
    return np.where(special == 0, finite, special)


def doubles_of(values: pa.Array) -> F64:
    """Numbers as the nearest doubles."""
    if pa.types.is_decimal(values.type):
        return nearest_doubles(values)
    # Spark casts a bigint to double likewise, to the nearest.
    doubles: F64 = values.cast(pa.float64(), safe=False).to_numpy()
    return doubles


def _quotient(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator < 0) == (denominator < 0) else -math.inf


def _state(groups: Groups, limbs: I64, leading: Iterable[NDArray[np.generic]]) -> tuple[pa.Array, ...]:
    empty = groups.count().to_numpy() == 0
    mask = empty if empty.any() else None
    return tuple(pa.array(np.ascontiguousarray(column), mask=mask) for column in (*limbs.T, *leading))
