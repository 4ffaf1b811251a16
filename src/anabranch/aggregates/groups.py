"""Which group each row belongs to, and what can be said of a group whatever the order of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.aggregates.encoding.order import ordered
from anabranch.aggregates.encoding.sums import decimal_sums, double_sums, integer_sums
from anabranch.aggregates.factorise import factorise, first_rows
from anabranch.arrays import I64, Bools
from anabranch.errors import ConfigError
from anabranch.kernels import njit


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows that belong together: the group of row i is ``codes[i]``, one of 0 … n − 1.

    Guarantees
    ----------
    What `count`, `sum`, `min` and `max` return has one entry per group and does not depend on the order of rows.

    Parameters
    ----------
    codes
        One entry per row.
    n
        Number of groups; a group may have no row.

    Examples
    --------
    >>> table = pa.table({"word": ["a", "b", "a"], "length": [3, 5, 4]})
    >>> groups, keys = Groups.of(table, ["word"])
    >>> keys["word"].to_pylist(), groups.sum(table["length"].combine_chunks()).to_pylist()
    (['a', 'b'], [7, 5])
    """

    codes: I64
    n: int

    @classmethod
    def of(cls, table: pa.Table, keys: Sequence[str]) -> tuple[Groups, pa.Table]:
        """Group the rows that are equal in the key columns; null is a key of its own.

        Returns
        -------
        groups
            The groups, numbered in the order of their first rows.
        keys
            The key columns, one row per group.
        """
        chosen = table.select(list(keys))
        codes, n = factorise([_whole(column) for column in chosen.columns], table.num_rows)
        return cls(codes, n), chosen.take(pa.array(first_rows(codes, n)))

    def count(self, values: pa.Array | None = None) -> pa.Array:
        """Rows of each group, or those whose value is not null."""
        codes = self.codes if values is None else self._present(values)[0]
        return pa.array(np.bincount(codes, minlength=self.n), pa.int64())

    def sum(self, values: pa.Array) -> pa.Array:
        """Sum of each group; null where all values are null.

        Integers give int64, and an InputError where that overflows; decimals have ten more digits, at most 38; doubles
        are added from the smallest to the largest, so that the order of rows does not matter.
        """
        codes, present = self._present(values)
        if pa.types.is_signed_integer(values.type):
            sums = pa.array(integer_sums(codes, present.cast(pa.int64()).to_numpy(), self.n))
        elif pa.types.is_decimal(values.type):
            sums = decimal_sums(codes, present, self.n)
        elif pa.types.is_floating(values.type):
            sums = pa.array(double_sums(codes, present.cast(pa.float64()).to_numpy(), self.n))
        else:
            raise ConfigError(f"sum needs integers, decimals or floats, got {values.type}; cast the column first")
        return self.blank(sums, values)

    def min(self, values: pa.Array) -> pa.Array:
        """Smallest value of each group in Spark's order; null where all values are null."""
        codes, present = self._present(values)
        integers, back = ordered(present)
        smallest, seen = _smallest(codes, integers, self.n)
        return _scatter(back(smallest[seen]), seen)

    def max(self, values: pa.Array) -> pa.Array:
        """Largest value of each group in Spark's order; null where all values are null."""
        codes, present = self._present(values)
        integers, back = ordered(present)
        # The complement reverses the order without overflow.
        smallest, seen = _smallest(codes, ~integers, self.n)
        return _scatter(back(~smallest[seen]), seen)

    def blank(self, results: pa.Array, values: pa.Array) -> pa.Array:
        """Results, with null for each group that has no value other than null."""
        seen = self.count(values).to_numpy() > 0
        return results if seen.all() else pc.if_else(pa.array(seen), results, pa.scalar(None, results.type))

    def present(self, *columns: pa.Array) -> tuple[Groups, tuple[pa.Array, ...]]:
        """The rows in which no column is null, in the same groups."""
        valid = np.ones(len(self.codes), np.bool_)
        for column in columns:
            if column.null_count:
                valid &= column.is_valid().to_numpy(zero_copy_only=False)
        if valid.all():
            return self, columns
        mask = pa.array(valid)
        return Groups(self.codes[valid], self.n), tuple(column.filter(mask) for column in columns)

    def _present(self, values: pa.Array) -> tuple[I64, pa.Array]:
        groups, (present,) = self.present(values)
        return groups.codes, present


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _scatter(values: pa.Array, seen: Bools) -> pa.Array:
    """Values for the groups that were seen, in order, and null for the others."""
    if seen.all():
        return values
    return values.take(pa.array(np.cumsum(seen) - 1, mask=~seen))


@njit(cache=True)
def _smallest(codes: I64, values: I64, n: int) -> tuple[I64, Bools]:
    smallest, seen = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for i in range(len(codes)):
        group = codes[i]
        if not seen[group] or values[i] < smallest[group]:
            smallest[group] = values[i]
            seen[group] = True
    return smallest, seen
