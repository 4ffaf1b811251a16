"""Counting Bloom filter: a set of keys that can forget."""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import U16, U64, Bools
from anabranch.errors import ConfigError
from anabranch.kernels import njit

_FULL = np.uint16(65_535)
_HIGH = np.uint64(32)


class CountingBloomFilter:
    """A set of key hashes in a few bits a key, with deletion.

    When to use it: to ask for every tuple whether its key is among the hot ones.

    Guarantees
    ----------
    - A key that was appended, and not deleted as often, is contained.
    - A key that was not is contained with probability at most `false_positive_rate` while at most `capacity` keys are
      in the filter.
    - No counter is ever negative: a key that the filter does not contain cannot be deleted.

    Parameters
    ----------
    capacity
        Keys it is sized for.
    false_positive_rate
        Chance that a key which is not in it seems to be.

    Examples
    --------
    >>> import numpy as np
    >>> hot = CountingBloomFilter(capacity=100, false_positive_rate=1e-4)
    >>> key = np.array([2**63 + 7], dtype=np.uint64)
    >>> hot.append(key); bool(hot.contains(key)[0])
    True
    >>> hot.delete(key); bool(hot.contains(key)[0])
    False

    References
    ----------
    Fan et al., "Summary cache" (2000); DStream, section III-B. The reference code has 16 cells and 4 hashes, which
    mislabels up to a quarter of the tuples.
    """

    def __init__(self, capacity: int = 200, false_positive_rate: float = 1e-4) -> None:
        if capacity < 1:
            raise ConfigError(f"capacity must be at least 1, got {capacity}")
        if not 0 < false_positive_rate < 1:
            raise ConfigError(f"false_positive_rate must be between 0 and 1, got {false_positive_rate}")
        self.capacity = capacity
        self.false_positive_rate = false_positive_rate
        self.n_hashes = max(1, round(-math.log2(false_positive_rate)))
        # One key more than asked for, because some sets of keys fill more cells than others. A power of two makes the
        # cell a mask away.
        needed = -self.n_hashes * (capacity + 1) / math.log1p(-(false_positive_rate ** (1 / self.n_hashes)))
        self.cells = np.zeros(1 << math.ceil(math.log2(max(needed, 8))), dtype=np.uint16)

    @property
    def nbytes(self) -> int:
        """Bytes of its counters."""
        return self.cells.nbytes

    def append(self, keys: U64) -> None:
        """Put keys in."""
        for key in keys:
            append(self.cells, self.n_hashes, key)

    def delete(self, keys: U64) -> None:
        """Take keys out; those that are not in it are left alone."""
        for key in keys:
            delete(self.cells, self.n_hashes, key)

    def contains(self, keys: U64) -> Bools:
        """Whether each key seems to be in it."""
        out = np.empty(len(keys), dtype=np.bool_)
        _contains(self.cells, self.n_hashes, keys, out)
        return out


@njit(cache=True, inline="always")
def _next(key: np.uint64) -> np.uint64:
    """The number whose high bits are the next cell of a key.

    Cells at equal distances would be cheaper, but in a small filter two keys are then too likely to have the same ones.
    """
    return key * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@njit(cache=True, inline="always")
def contains(cells: U16, n_hashes: int, key: np.uint64) -> bool:
    """Whether `key` seems to be in the filter."""
    mask = np.uint64(len(cells) - 1)
    for _ in range(n_hashes):
        if cells[(key >> _HIGH) & mask] == 0:
            return False
        key = _next(key)
    return True


@njit(cache=True)
def append(cells: U16, n_hashes: int, key: np.uint64) -> None:
    """Put `key` in; a counter that is full stays full."""
    mask = np.uint64(len(cells) - 1)
    for _ in range(n_hashes):
        at = (key >> _HIGH) & mask
        if cells[at] < _FULL:
            cells[at] += np.uint16(1)
        key = _next(key)


@njit(cache=True)
def delete(cells: U16, n_hashes: int, key: np.uint64) -> None:
    """Take `key` out, if it is in."""
    if not contains(cells, n_hashes, key):
        return
    mask = np.uint64(len(cells) - 1)
    for _ in range(n_hashes):
        at = (key >> _HIGH) & mask
        if 0 < cells[at] < _FULL:
            cells[at] -= np.uint16(1)
        key = _next(key)


@njit(cache=True)
def _contains(cells: U16, n_hashes: int, keys: U64, out: Bools) -> None:
    for i in range(len(keys)):
        out[i] = contains(cells, n_hashes, keys[i])
