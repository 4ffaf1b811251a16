"""Sums of the doubles that have no place in the limbs: their leading bits, as integers on the grid of the largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.aggregates.aggregate import StateColumn
from anabranch.arrays import F64, I64, Bools

# Exponents of a bin. A sum of a bin's digits is exact for 2^(53 - 26) of them.
_WIDTH = 26
# Bins that are kept: 53 bits at least, since the first may have only one.
_KEPT = 3
# Exponents between two bins in a state: far enough that what a lower bin leaves in a column rounds to 0 in a higher
# one, and near enough that no bin of doubles overflows or gets subnormal.
_STEP = 19
# The top of no values, below every bin of a double: those are 2^-1074 or more.
NOTHING = -45
# Exponent of the finest bit that a state can tell.
FINEST = _WIDTH * (NOTHING + 1 - _KEPT)


@dataclass(frozen=True)
class LeadingBits:
    """Holds sums of doubles of any size by their leading bits, one int64 column and three of doubles.

    Bin b holds the bits from 2^(26 b) on. A double is cut into digits, one per bin; the digits of a bin are added up as
    integers. Only the three bins from the largest value downwards are kept. ``top`` is the first of them, and bin b is
    in the column b modulo 3, scaled. So Spark's ``max`` and ``sum`` merge states: where a part had a lower top, its low
    bins leave less than half a unit of the bin that is kept in the same column, and that is rounded off.

    Guarantees
    ----------
    The sum does not depend on the order of the values, nor on how they were split, whatever their size. Each value is
    off by less than 2^-52 times the largest one. No partial sum overflows: a sum is ±inf because it is beyond doubles
    itself, or because such a value is among its terms, and NaN because a NaN or both infinities are.

    There is room for 2^27 values of a group; with more, the last bits may depend on the order.

    Parameters
    ----------
    name
        Prefix of the columns.

    References
    ----------
    Ahrens, Demmel and Nguyen, "Algorithms for efficient reproducible floating point summation" (TOMS 2020), section 4.
    There each bin of an accumulator has a double as well; here a column has all bins that are equal modulo 3, so that a
    merge by columns needs no shift.
    """

    name: str

    @property
    def width(self) -> int:
        """Number of columns."""
        return 1 + _KEPT

    def columns(self) -> tuple[StateColumn, ...]:
        """Columns of the state."""
        digits = [StateColumn(f"{self.name}_lead_{j}", pa.float64(), "sum") for j in range(_KEPT)]
        return (StateColumn(f"{self.name}_top", pa.int64(), "max"), *digits)

    def sum(self, codes: I64, values: F64, n: int) -> tuple[NDArray[np.generic], ...]:
        """State of each group."""
        if not len(values):
            return _nothing(n)
        special = np.where(np.isfinite(values), 0.0, values)
        finite = np.where(np.isfinite(values), values, 0.0)
        tops = np.where(finite == 0, NOTHING, (np.frexp(finite)[1].astype(np.int64) - 1) // _WIDTH)
        digits = np.empty((_KEPT, len(values)))
        for j in range(_KEPT):
            digits[j] = np.trunc(np.ldexp(finite, -_WIDTH * (tops - j)))
            finite = finite - np.ldexp(digits[j], _WIDTH * (tops - j))
        return _encode(*_gather(codes, tops, digits, n), _specials(codes, special, n))

    def merge(self, codes: I64, states: Sequence[NDArray[np.generic]], n: int) -> tuple[NDArray[np.generic], ...]:
        """State of each group from those of its parts."""
        rows = np.flatnonzero(self.holds(states))
        if not len(rows):
            return _nothing(n)
        codes = codes[rows]
        tops, digits, special = _decode([column[rows] for column in states])
        return _encode(*_gather(codes, tops, digits, n), _specials(codes, special, n))

    def holds(self, states: Sequence[NDArray[np.generic]]) -> Bools:
        """Whether a state has seen a value."""
        tops, first, *_ = states
        held: Bools = (np.asarray(tops) > NOTHING) | (np.asarray(first) != 0)
        return held

    def integers(self, states: Sequence[NDArray[np.generic]]) -> NDArray[np.object_]:
        """Sum of each group in units of 2^`FINEST`, as Python's integers; without infinities and NaN."""
        tops, digits, _ = _decode(states)
        total = np.zeros(len(tops), np.object_)
        for j, column in enumerate(digits):
            shifts = (_WIDTH * (tops - j) - FINEST).astype(np.object_)
            total += column.astype(np.int64).astype(np.object_) << shifts
        return total

    def special(self, states: Sequence[NDArray[np.generic]]) -> F64:
        """±inf or NaN where the sum is that, else 0."""
        return _decode(states)[2]


def _nothing(n: int) -> tuple[NDArray[np.generic], ...]:
    return (np.full(n, NOTHING, np.int64), *np.zeros((_KEPT, n)))


def _gather(codes: I64, tops: I64, digits: F64, n: int) -> tuple[I64, F64]:
    """Tops and digits of each group from those of its parts."""
    highest = np.full(n, NOTHING, np.int64)
    np.maximum.at(highest, codes, tops)
    sums = np.zeros(_KEPT * n)
    for j in range(_KEPT):
        place = highest[codes] - tops + j
        kept = place < _KEPT
        sums += np.bincount(place[kept] * n + codes[kept], digits[j][kept], _KEPT * n)
    return highest, sums.reshape(_KEPT, n)


def _specials(codes: I64, special: F64, n: int) -> F64:
    rows = np.flatnonzero(special)
    with np.errstate(invalid="ignore"):
        sums = np.bincount(codes[rows], special[rows], n)
    # There is only one NaN.
    return np.where(np.isnan(sums), np.nan, sums)


def _encode(tops: I64, digits: F64, special: F64) -> tuple[NDArray[np.generic], ...]:
    columns, rows = np.empty_like(digits), np.arange(len(tops))
    for j in range(_KEPT):
        columns[(tops - j) % _KEPT, rows] = np.ldexp(digits[j], _STEP * (tops - j))
    columns[0] = np.where(special == 0, columns[0], special)
    return (tops, *columns)


def _decode(states: Sequence[NDArray[np.generic]]) -> tuple[I64, F64, F64]:
    """Tops, digits and what is not a number; the last one of a sum is in its first column."""
    tops, first = np.asarray(states[0], np.int64), np.asarray(states[1], np.float64)
    special = np.where(np.isfinite(first), 0.0, first)
    columns = np.array([np.where(special == 0, first, 0.0), *states[2:]], np.float64)
    rows, digits = np.arange(len(tops)), np.empty_like(columns)
    for j in range(_KEPT):
        digits[j] = np.rint(np.ldexp(columns[(tops - j) % _KEPT, rows], -_STEP * (tops - j)))
    return tops, digits, special
