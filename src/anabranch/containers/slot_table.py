"""The hash table of a sketch with a fixed number of slots: key → slot, open addressing, no tombstones.

`keys[s]` is the key of slot s, `table` holds slot + 1 (0 is empty) and `where[s]` is the place of slot s in it.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, U64
from anabranch.kernels import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def empty(capacity: int) -> I32:
    """A table with room for `capacity` slots, at most a quarter full."""
    size = 4
    while size < 4 * capacity:
        size *= 2
    return np.zeros(size, dtype=np.int32)


@njit(cache=True, inline="always")
def home(key: np.uint64, mask: int) -> int:
    """Where probing for `key` begins in an open-addressing table of mask + 1 places."""
    return int((key * _GOLDEN) >> np.uint64(32)) & mask


@njit(cache=True, inline="always")
def place_of(key: np.uint64, keys: U64, table: I32) -> int:
    """Where `key` is in the table, or the empty place where it belongs."""
    mask = len(table) - 1
    at = home(key, mask)
    while table[at] != 0 and keys[table[at] - 1] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, inline="always")
def delete(gap: int, keys: U64, table: I32, where: I32) -> None:
    """Empty the place `gap`; keys behind it move up, so that probing never meets a tombstone."""
    mask = len(table) - 1
    at = gap
    while True:
        at = (at + 1) & mask
        slot = table[at] - 1
        if slot < 0:
            break
        if ((at - home(keys[slot], mask)) & mask) >= ((at - gap) & mask):
            table[gap] = slot + 1
            where[slot] = gap
            gap = at
    table[gap] = 0


@njit(cache=True)
def fill(keys: U64, table: I32, where: I32, n: int) -> None:
    """Empty the table and enter the first `n` slots, whose keys are distinct."""
    table[:] = 0
    for slot in range(n):
        at = place_of(keys[slot], keys, table)
        table[at] = slot + 1
        where[slot] = at
