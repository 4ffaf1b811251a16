"""Exact distinct counts: growing hash sets of 64-bit values."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I64, U64
from anabranch.containers.slot_table import home
from anabranch.kernels import njit


class HashSet:
    """A set of 64-bit hashes in an open-addressing table; kernels insert with `insert` what `reserve` made room for.

    Value 0 marks an empty place, so it is stored as 1.
    """

    def __init__(self, size: int = 1024) -> None:
        self.table = np.zeros(size, dtype=np.uint64)
        self.size = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return int(self.size[0])

    def reserve(self, n: int) -> None:
        """Grow until `n` more values fit."""
        needed = 2 * (len(self) + n)
        if needed <= len(self.table):
            return
        size = len(self.table)
        while size < needed:
            size *= 2
        table = np.zeros(size, dtype=np.uint64)
        _rehash(self.table, table)
        self.table = table

    def clear(self) -> None:
        """Empty it, keeping its room."""
        self.table[:] = 0
        self.size[0] = 0


@njit(cache=True, inline="always")
def insert(table: U64, size: I64, value: np.uint64) -> bool:
    """Put `value` into the set; whether it was new."""
    if value == 0:
        value = np.uint64(1)
    mask = len(table) - 1
    at = home(value, mask)
    while table[at] != 0:
        if table[at] == value:
            return False
        at = (at + 1) & mask
    table[at] = value
    size[0] += 1
    return True


@njit(cache=True)
def _rehash(old: U64, new: U64) -> None:
    unused = np.zeros(1, dtype=np.int64)
    for i in range(len(old)):
        if old[i] != 0:
            insert(new, unused, old[i])
