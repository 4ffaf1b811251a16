"""Count-Min: an estimate for every key, never too low."""

from __future__ import annotations

import math

import numpy as np

from anabranch.arrays import I64, U64
from anabranch.errors import ConfigError
from anabranch.hashing.xxhash64 import hash_long
from anabranch.kernels import njit


class CountMin:
    """Counts of all keys in a fixed grid, never too low, too high by at most ε · total with probability 1 − δ.

    When to use it: when any key may be asked for, not only the heaviest.

    Guarantees
    ----------
    - An estimate is at least the true count.
    - It exceeds it by more than ε · total with probability at most δ.
    - Merging two sketches of equal shape and seed equals one sketch of both streams.

    Parameters
    ----------
    epsilon
        Error as a share of the tuples.
    delta
        Chance that an estimate is off by more.
    seed
        Seed of the rows' hash functions.

    Examples
    --------
    >>> import numpy as np
    >>> sketch = CountMin(epsilon=0.01, delta=0.01)
    >>> sketch.update(np.array([7, 7, 8], dtype=np.uint64))
    >>> sketch.estimate(np.array([7, 8, 9], dtype=np.uint64)).tolist()
    [2, 1, 0]

    References
    ----------
    Cormode, Muthukrishnan, "An improved data stream summary: the count-min sketch and its applications" (2005).
    """

    def __init__(self, epsilon: float = 0.001, delta: float = 0.01, seed: int = 0) -> None:
        if not 0 < epsilon < 1:
            raise ConfigError(f"epsilon must be between 0 and 1, got {epsilon}")
        if not 0 < delta < 1:
            raise ConfigError(f"delta must be between 0 and 1, got {delta}")
        self.epsilon = epsilon
        self.delta = delta
        self.seed = seed
        width = math.ceil(math.e / epsilon)
        depth = math.ceil(math.log(1 / delta))
        self.grid = np.zeros((depth, width), dtype=np.int64)
        self.total = 0

    @property
    def nbytes(self) -> int:
        """Bytes of its grid."""
        return self.grid.nbytes

    def update(self, keys: U64, counts: I64 | None = None) -> None:
        """Count each key once, or `counts[i]` times."""
        weights = np.ones(len(keys), dtype=np.int64) if counts is None else counts.astype(np.int64)
        if len(weights) != len(keys):
            raise ConfigError(f"keys and counts must be equally long, got {len(keys)} and {len(weights)}")
        if len(weights) and weights.min() < 1:
            raise ConfigError(f"counts must be at least 1, got {weights.min()}")
        _update(self.grid, keys, weights, np.uint64(self.seed & 0xFFFFFFFFFFFFFFFF))
        self.total += int(weights.sum())

    def estimate(self, keys: U64) -> I64:
        """Upper bound of each key's count."""
        out = np.empty(len(keys), dtype=np.int64)
        _estimate(self.grid, keys, np.uint64(self.seed & 0xFFFFFFFFFFFFFFFF), out)
        return out

    def merge(self, other: CountMin) -> None:
        """Add another sketch's stream to this one; both must have the same shape and seed."""
        if self.grid.shape != other.grid.shape or self.seed != other.seed:
            raise ConfigError(
                f"only sketches of equal shape and seed merge, got {self.grid.shape}, seed {self.seed} and "
                f"{other.grid.shape}, seed {other.seed}"
            )
        self.grid += other.grid
        self.total += other.total


@njit(cache=True, inline="always")
def _column(key: np.uint64, row: int, seed: np.uint64, width: int) -> int:
    mixed = hash_long(key, seed + np.uint64(row))
    return int(np.int64(((mixed >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32)))


@njit(cache=True)
def _update(grid: I64, keys: U64, weights: I64, seed: np.uint64) -> None:
    for i in range(len(keys)):
        for row in range(grid.shape[0]):
            grid[row, _column(keys[i], row, seed, grid.shape[1])] += weights[i]


@njit(cache=True)
def _estimate(grid: I64, keys: U64, seed: np.uint64, out: I64) -> None:
    for i in range(len(keys)):
        least = grid[0, _column(keys[i], 0, seed, grid.shape[1])]
        for row in range(1, grid.shape[0]):
            least = min(least, grid[row, _column(keys[i], row, seed, grid.shape[1])])
        out[i] = least
