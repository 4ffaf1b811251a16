"""Count-Min with dyadic ranges."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from anabranch.arrays import F64, U64
from anabranch.errors import ConfigError
from anabranch.hashing.xxhash64 import hash_long
from anabranch.kernels import njit
from anabranch.predictors.predictor import Predictor, hot_share

# Sixteen children per range: a 64-bit key has 16 levels, where binary ranges would need 64 updates per tuple.
_BITS = 4
_LEVELS = 64 // _BITS


class DyadicCountMin(Predictor):
    """A Count-Min sketch for every length of key prefix; heavy keys are found by descending into heavy prefixes.

    Guarantees
    ----------
    Every key with at least `share` of the (weighted) tuples is found.

    Parameters
    ----------
    share
        Share of the tuples from which a key is hot.
    epsilon, delta
        Error of each sketch as a share of the tuples, and the chance of more.
    growth
        Each tuple weighs this much more than the one before; 1 counts all alike.
    seed
        Seed of the hash functions.

    References
    ----------
    Cormode, Muthukrishnan, "An improved data stream summary" (2005), section 5.2. Ranges have 16 children, not 2, and
    keys are their 64-bit hashes, so that no key set need be known beforehand.
    """

    name = "dyadic-count-min"
    paper = "Cormode, Muthukrishnan 2005"

    def __init__(
        self, share: float, *, epsilon: float | None = None, delta: float = 0.05, growth: float = 1.0, seed: int = 0
    ) -> None:
        if not 0 < share <= 1:
            raise ConfigError(f"share must be above 0 and at most 1, got {share}")
        epsilon = share / 4 if epsilon is None else epsilon
        if not 0 < epsilon < 1 or not 0 < delta < 1:
            raise ConfigError(f"epsilon and delta must be between 0 and 1, got {epsilon} and {delta}")
        if not growth >= 1:
            raise ConfigError(f"growth must be at least 1, got {growth}")
        depth, width = math.ceil(math.log(1 / delta)), math.ceil(math.e / epsilon)
        # At most 1 / share cells of a row are heavy. Where as many as that let more than one child of a range pass that
        # should not, descending multiplies them at every level.
        if (1 << _BITS) * (1 / (share * width)) ** depth >= 1:
            raise ConfigError(
                f"epsilon {epsilon} and delta {delta} are too large to find keys of share {share}; choose smaller ones"
            )
        self.share, self.growth, self.seed = share, growth, seed & 0xFFFFFFFFFFFFFFFF
        self.grids = np.zeros((_LEVELS, depth, width))
        # Weight of the next tuple, and the total of all weights.
        self.weights = np.array([1.0, 0.0])

    @classmethod
    def for_stream(cls, n_workers: int, window: int, seed: int = 0) -> Self:
        """Error of a quarter of the hot share."""
        return cls(hot_share(n_workers), seed=seed)

    def update(self, keys: U64) -> None:
        _update(self.grids, self.weights, keys, self.growth, np.uint64(self.seed))

    def hot_keys(self) -> U64:
        """Descend from the whole key space into every range that is heavy enough."""
        threshold = self.share * self.weights[1]
        if threshold == 0:
            return np.zeros(0, dtype=np.uint64)
        prefixes = np.zeros(1, dtype=np.uint64)
        for level in range(_LEVELS):
            children = (prefixes[:, None] << np.uint64(_BITS)) | np.arange(1 << _BITS, dtype=np.uint64)
            children = children.ravel()
            counts = np.empty(len(children))
            _estimate(self.grids[level], level, children, np.uint64(self.seed), counts)
            prefixes = children[counts >= threshold]
        return prefixes

    @property
    def nbytes(self) -> int:
        return self.grids.nbytes

    @property
    def entries(self) -> int:
        return self.grids.size


@njit(cache=True, inline="always")
def _column(prefix: np.uint64, level: int, row: int, seed: np.uint64, width: int) -> int:
    mixed = hash_long(prefix, seed * np.uint64(4096) + np.uint64(64 * level + row))
    return int(((mixed >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32))


@njit(cache=True)
def _update(grids: F64, weights: F64, keys: U64, growth: float, seed: np.uint64) -> None:
    levels, depth, width = grids.shape
    for i in range(len(keys)):
        for level in range(levels):
            prefix = keys[i] >> np.uint64(64 - _BITS * (level + 1))
            for row in range(depth):
                grids[level, row, _column(prefix, level, row, seed, width)] += weights[0]
        weights[1] += weights[0]
        weights[0] *= growth
        if weights[0] > 1e100:
            grids /= weights[0]
            weights[1] /= weights[0]
            weights[0] = 1.0


@njit(cache=True)
def _estimate(grid: F64, level: int, prefixes: U64, seed: np.uint64, out: F64) -> None:
    depth, width = grid.shape
    for i in range(len(prefixes)):
        least = np.inf
        for row in range(depth):
            least = min(least, grid[row, _column(prefixes[i], level, row, seed, width)])
        out[i] = least
