"""The consistent-hash ring with virtual nodes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from anabranch.arrays import I32, U64
from anabranch.errors import ConfigError
from anabranch.hashing.xxhash64 import SPARK_SEED, hash_long
from anabranch.kernels import njit

_INDEX_BITS_MAX = 20


class HashRing:
    """Workers on a ring of hashes, each at many points; a key belongs to the next point clockwise.

    Guarantees
    ----------
    A ring with one worker more gives keys only to that worker; a ring with one worker fewer moves only that worker's
    keys.

    Parameters
    ----------
    workers
        Worker numbers, or how many of them.
    virtual_nodes
        Points per worker; more of them make the arcs more even.
    seed
        Another seed, another ring.

    Examples
    --------
    >>> ring = HashRing([0, 1, 3], virtual_nodes=2)
    >>> ring.owners.tolist()
    [0, 3, 3, 0, 1, 1]

    References
    ----------
    Karger et al., "Consistent hashing and random trees" (STOC 1997); FISH, section 4.3.
    """

    def __init__(self, workers: int | Iterable[int], *, virtual_nodes: int = 100, seed: int = 0) -> None:
        if virtual_nodes < 1:
            raise ConfigError(f"virtual_nodes must be at least 1, got {virtual_nodes}")
        alive = sorted(set(range(workers) if isinstance(workers, int) else workers))
        if not alive:
            raise ConfigError("a ring needs at least one worker, got none")
        owners = np.repeat(np.array(alive, dtype=np.int32), virtual_nodes)
        nodes = np.tile(np.arange(virtual_nodes, dtype=np.uint64), len(alive))
        points = _points(owners, nodes, np.uint64(seed & 0xFFFFFFFFFFFFFFFF))
        order = np.lexsort((owners, points))
        self.points = points[order]
        self.owners = owners[order]
        bits = min(_INDEX_BITS_MAX, max(1, len(points).bit_length()))
        buckets = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        self.index = np.searchsorted(self.points, buckets).astype(np.int32)


@njit(cache=True)
def _points(owners: I32, nodes: U64, seed: np.uint64) -> U64:
    points = np.empty(len(owners), dtype=np.uint64)
    start = hash_long(seed, np.uint64(SPARK_SEED))
    for i in range(len(owners)):
        points[i] = hash_long(nodes[i], hash_long(np.uint64(owners[i]), start))
    return points


@njit(cache=True, inline="always")
def ring_position(key: np.uint64, points: U64, index: I32, shift: np.uint64) -> int:
    """Position of the first point at or after `key`, 0 when it wraps around; `shift` is 64 − log2(len(index))."""
    at = index[key >> shift]
    while at < len(points) and points[at] < key:
        at += 1
    return at if at < len(points) else 0


@njit(cache=True, inline="always")
def index_shift(index: I32) -> np.uint64:
    """The `shift` of `ring_position`."""
    bits = 0
    while (1 << bits) < len(index):
        bits += 1
    return np.uint64(64 - bits)
