"""Sums of doubles as integers, which can be added in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.aggregates.aggregate import StateColumn
from anabranch.aggregates.groups import Groups
from anabranch.aggregates.limbs import add_doubles, add_products, carry
from anabranch.aggregates.sums import double_sums, integer_sums


@dataclass(frozen=True)
class FixedPoint:
    """Holds sums of doubles exactly: Σ limb[j] · 2^(32 j + unit), one int64 column a limb.

    Floating-point sums depend on the order of their terms; these do not, and Spark's ``sum`` of each column merges
    them. One more column, a double, takes what has no place in the limbs: infinities, NaN, and finite values that are
    too large or too fine.

    Guarantees
    ----------
    The sum of values that are 0 or multiples of 2^unit below 2^(unit + 32 n_limbs) is the exact one, rounded once, in
    whatever order and however split: with the default every double from 2^-75 (3e-23) up to 2^128 (3e38). The sum of
    other finite values is right up to the rounding of doubles, and depends on how they were split.

    There is room for 2^31 tuples a group.

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
        return self.n_limbs + 1

    def columns(self) -> tuple[StateColumn, ...]:
        """Columns of the state."""
        limbs = [StateColumn(f"{self.name}_{j}", pa.int64(), "sum") for j in range(self.n_limbs)]
        return (*limbs, StateColumn(f"{self.name}_beyond", pa.float64(), "sum"))

    def sum(self, groups: Groups, values: pa.Array) -> tuple[pa.Array, ...]:
        """State of each group; null where all values are null."""
        present, (doubles,) = groups.present(values)
        limbs, beyond = add_doubles(present.codes, _doubles(doubles), groups.n, (self.unit, self.n_limbs))
        return self._state(present, limbs, (beyond, _doubles(doubles)[beyond]))

    def sum_products(self, groups: Groups, x: pa.Array, y: pa.Array) -> tuple[pa.Array, ...]:
        """State of each group's Σ x·y; null where x or y is always null. Products are not rounded."""
        present, columns = groups.present(x, y)
        a, b = (_doubles(column) for column in columns)
        limbs, beyond = add_products(present.codes, a, b, groups.n, (self.unit, self.n_limbs))
        with np.errstate(over="ignore", invalid="ignore"):
            return self._state(present, limbs, (beyond, a[beyond] * b[beyond]))

    def merge(self, groups: Groups, states: Iterable[pa.Array]) -> tuple[pa.Array, ...]:
        """One state a group from partial states, with carries done: the same as if there had been no parts."""
        *limbs, beyond = states
        present, (*limbs, beyond) = groups.present(*limbs, beyond)
        sums = [integer_sums(present.codes, limb.to_numpy(), groups.n) for limb in limbs]
        rest = np.flatnonzero(beyond.to_numpy())
        return self._state(present, carry(np.stack(sums, axis=1)), (rest, beyond.to_numpy()[rest]))

    def integers(self, states: Iterable[pa.Array]) -> NDArray[np.object_]:
        """Sum of the limbs of each group in units of 2^unit, as Python's integers; 0 where the state is null."""
        *limbs, _ = states
        total = np.zeros(len(limbs[0]), np.object_)
        for limb in reversed(limbs):
            total = (total << 32) + limb.fill_null(0).to_numpy().astype(np.object_)
        return total

    def beyond(self, states: Iterable[pa.Array]) -> NDArray[np.float64]:
        """Sum of each group's values without a place in the limbs; 0 where the state is null."""
        *_, beyond = states
        doubles: NDArray[np.float64] = beyond.fill_null(0.0).to_numpy()
        return doubles

    def totals(self, states: Iterable[pa.Array]) -> NDArray[np.float64]:
        """Sum of each group, rounded to the nearest double."""
        states = tuple(states)
        return quotients(self.integers(states), 1, self.unit) + self.beyond(states)

    def _state(
        self, groups: Groups, limbs: NDArray[np.int64], beyond: tuple[NDArray[np.int64], NDArray[np.float64]]
    ) -> tuple[pa.Array, ...]:
        rows, values = beyond
        sums = double_sums(groups.codes[rows], values, groups.n)
        empty = groups.count().to_numpy() == 0
        mask = empty if empty.any() else None
        return (*(pa.array(np.ascontiguousarray(limb), mask=mask) for limb in limbs.T), pa.array(sums, mask=mask))


def quotients(
    numerators: NDArray[np.object_], denominators: NDArray[np.object_] | int, exponent: int
) -> NDArray[np.float64]:
    """Numerator · 2^exponent / denominator, rounded once: Python divides integers so."""
    scaled = (numerators << exponent) if exponent > 0 else numerators
    # Zero over a negative number would be −0.0.
    return np.asarray(scaled / (denominators << max(0, -exponent)), np.float64) + 0.0


def _doubles(values: pa.Array) -> NDArray[np.float64]:
    # Spark casts a bigint to double likewise, to the nearest.
    doubles: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
    return doubles
