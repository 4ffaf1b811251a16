"""Exact counts of keys: a growing open-addressing table."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I64, U64
from anabranch.containers.slot_table import home
from anabranch.kernels import njit


class KeyCounts:
    """How often each key occurs: the counting pass of off-line groupings."""

    def __init__(self) -> None:
        self._keys = np.zeros(1024, dtype=np.uint64)
        self._counts = np.zeros(1024, dtype=np.int64)
        self._size = np.zeros(1, dtype=np.int64)

    def update(self, keys: U64) -> None:
        """Count these keys."""
        done = 0
        while done < len(keys):
            if 2 * int(self._size[0]) >= len(self._keys):
                self._grow()
            done = _count(keys, done, self._keys, self._counts, self._size)

    def result(self) -> tuple[U64, I64]:
        """Distinct keys and their counts."""
        used = self._counts > 0
        return self._keys[used], self._counts[used]

    def _grow(self) -> None:
        keys, counts = self.result()
        self._keys = np.zeros(2 * len(self._keys), dtype=np.uint64)
        self._counts = np.zeros(len(self._keys), dtype=np.int64)
        _place(keys, counts, self._keys, self._counts)


@njit(cache=True, inline="always")
def _place_of(key: np.uint64, keys: U64, counts: I64) -> int:
    mask = len(keys) - 1
    at = home(key, mask)
    while counts[at] > 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True)
def _count(new: U64, start: int, keys: U64, counts: I64, size: I64) -> int:
    for i in range(start, len(new)):
        at = _place_of(new[i], keys, counts)
        if counts[at] == 0:
            if 2 * size[0] >= len(keys):
                return i
            size[0] += 1
            keys[at] = new[i]
        counts[at] += 1
    return len(new)


@njit(cache=True)
def _place(keys: U64, counts: I64, to_keys: U64, to_counts: I64) -> None:
    for i in range(len(keys)):
        at = _place_of(keys[i], to_keys, to_counts)
        to_keys[at] = keys[i]
        to_counts[at] = counts[i]
