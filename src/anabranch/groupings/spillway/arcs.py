"""Arcs of the hash space: which worker is home to which part of it."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64, U64
from anabranch.hashing.xxhash64 import SPARK_SEED, hash_long
from anabranch.kernels import njit

# Arcs per worker, at least.
_EACH = 64
_MASK = 0xFFFFFFFFFFFFFFFF


def even(weights: F64) -> I32:
    """Worker of each arc, by weight; with equal weights homes are those of `MultiplyShift.first`.

    Examples
    --------
    >>> np.bincount(even(np.array([1.0, 3.0]))).tolist()
    [32, 96]
    """
    shares = _shares(weights, _EACH * len(weights))
    return np.repeat(np.arange(len(weights), dtype=np.int32), shares)


def moved(arcs: I32, new_index: I32, weights: F64) -> I32:
    """The arcs after a change of workers; only those change hands that must.

    Parameters
    ----------
    arcs
        Worker of each arc before.
    new_index
        Index that each worker has now, −1 for one that is gone.
    weights
        Of the workers now.

    Examples
    --------
    >>> before = even(np.ones(4))
    >>> after = moved(before, np.array([0, 1, -1, 2], dtype=np.int32), np.ones(3))
    >>> np.bincount(after).tolist(), int((after != np.array([0, 1, 9, 2])[before]).sum())
    ([86, 85, 85], 64)
    """
    n = len(weights)
    if len(arcs) < _EACH * n // 4:
        # Finer arcs lie where the coarse ones lay.
        arcs = np.repeat(arcs, -(-_EACH * n // len(arcs)))
    out = new_index[arcs].astype(np.int32)
    due = _shares(weights, len(out))
    free = np.flatnonzero(out < 0).tolist()
    for worker in range(n):
        mine = np.flatnonzero(out == worker)
        free += mine[due[worker] :].tolist()
        due[worker] -= min(len(mine), int(due[worker]))
    out[np.array(free, dtype=np.int64)] = np.repeat(np.arange(n, dtype=np.int32), due)
    return out


def _shares(weights: F64, total: int) -> I64:
    """`total` in whole parts by weight, by largest remainder."""
    exact = weights / weights.sum() * total
    parts: I64 = np.floor(exact).astype(np.int64)
    short = total - int(parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:short]] += 1
    return parts


def find_homes(keys: U64, arcs: I32, n_workers: int, seed: int, homes: I32, steps: I32) -> None:
    """Write the home of each key, and the step in which it tries other workers."""
    # A Python integer beyond 63 bits would take numba's slow way into a kernel.
    mixed = np.uint64(hash_long(np.uint64(seed & _MASK), np.uint64(SPARK_SEED)))
    _find_homes(keys, arcs, n_workers, mixed, seed != 0, homes, steps)


@njit(cache=True)
def _find_homes(keys: U64, arcs: I32, n_workers: int, seed: np.uint64, seeded: bool, homes: I32, steps: I32) -> None:
    low, others = np.uint64(0xFFFFFFFF), np.uint64(max(1, n_workers - 1))
    for j in range(len(keys)):
        mixed = hash_long(keys[j], seed) if seeded else keys[j]
        homes[j] = arcs[int(((mixed >> np.uint64(32)) * np.uint64(len(arcs))) >> np.uint64(32))]
        steps[j] = np.int32(((mixed & low) * others) >> np.uint64(32)) + np.int32(1)
