"""The consistent-hash ring with virtual nodes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import ConfigError
from anabranch.hashing.xxhash64 import SPARK_SEED, hash_long
from anabranch.kernels import njit

_INDEX_BITS_MAX = 20


class HashRing:
    """Workers on a ring of hashes, each at many points; a key belongs to the next point clockwise.

    Guarantees
    ----------
    Adding a worker moves keys only to it; removing one moves only its own keys. The candidates of a key are distinct.

    Parameters
    ----------
    workers
        Worker numbers, or how many of them.
    virtual_nodes
        Points a worker; more of them make the arcs more even.
    seed
        Another seed, another ring.

    Examples
    --------
    >>> import numpy as np
    >>> keys = np.arange(1000, dtype=np.uint64) << np.uint64(54)
    >>> ring = HashRing(4)
    >>> before = ring.lookup(keys)
    >>> ring.remove(2)
    >>> moved = ring.lookup(keys) != before
    >>> bool((before[moved] == 2).all())
    True

    References
    ----------
    Karger et al., "Consistent hashing and random trees" (STOC 1997); FISH, section 4.3.
    """

    def __init__(self, workers: int | Iterable[int], *, virtual_nodes: int = 100, seed: int = 0) -> None:
        if virtual_nodes < 1:
            raise ConfigError(f"virtual_nodes must be at least 1, got {virtual_nodes}")
        self.virtual_nodes = virtual_nodes
        self.seed = seed
        self._workers = sorted(set(range(workers) if isinstance(workers, int) else workers))
        if not self._workers:
            raise ConfigError("a ring needs at least one worker, got none")
        self._rebuild()

    @property
    def workers(self) -> list[int]:
        """Worker numbers on the ring, ascending."""
        return list(self._workers)

    def add(self, worker: int) -> None:
        """Put `worker` on the ring: it takes arcs from the others."""
        if worker in self._workers:
            raise ConfigError(f"worker {worker} is on the ring already")
        self._workers = sorted([*self._workers, worker])
        self._rebuild()

    def remove(self, worker: int) -> None:
        """Take `worker` off the ring: its arcs go to their clockwise neighbours."""
        if worker not in self._workers:
            raise ConfigError(f"worker {worker} is not on the ring; on it are {self._workers}")
        if len(self._workers) == 1:
            raise ConfigError(f"worker {worker} is the last one on the ring; add another before removing it")
        self._workers.remove(worker)
        self._rebuild()

    def lookup(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Home worker of each key hash."""
        out = np.empty(len(keys), dtype=np.int32)
        _lookup(keys, self.points, self.owners, self.index, out)
        return out

    def candidates(self, keys: NDArray[np.uint64], choices: int) -> NDArray[np.int32]:
        """The next `choices` distinct workers clockwise of each key; at most as many as there are workers."""
        if choices < 1:
            raise ConfigError(f"choices must be at least 1, got {choices}")
        out = np.empty((len(keys), min(choices, len(self._workers))), dtype=np.int32)
        _candidates(keys, self.points, self.owners, self.index, out)
        return out

    def _rebuild(self) -> None:
        owners = np.repeat(np.array(self._workers, dtype=np.int32), self.virtual_nodes)
        nodes = np.tile(np.arange(self.virtual_nodes, dtype=np.uint64), len(self._workers))
        points = _points(owners, nodes, np.uint64(self.seed & 0xFFFFFFFFFFFFFFFF))
        order = np.lexsort((owners, points))
        self.points = points[order]
        self.owners = owners[order]
        bits = min(_INDEX_BITS_MAX, max(1, len(points).bit_length()))
        buckets = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        self.index = np.searchsorted(self.points, buckets).astype(np.int32)


@njit(cache=True)
def _points(owners: NDArray[np.int32], nodes: NDArray[np.uint64], seed: np.uint64) -> NDArray[np.uint64]:
    points = np.empty(len(owners), dtype=np.uint64)
    start = hash_long(seed, np.uint64(SPARK_SEED))
    for i in range(len(owners)):
        points[i] = hash_long(nodes[i], hash_long(np.uint64(owners[i]), start))
    return points


@njit(cache=True, inline="always")
def ring_position(key: np.uint64, points: NDArray[np.uint64], index: NDArray[np.int32], shift: np.uint64) -> int:
    """Position of the first point at or after `key`, 0 when it wraps around; `shift` is 64 − log2(len(index))."""
    at = index[key >> shift]
    while at < len(points) and points[at] < key:
        at += 1
    return at if at < len(points) else 0


@njit(cache=True, inline="always")
def index_shift(index: NDArray[np.int32]) -> np.uint64:
    """The `shift` of `ring_position`."""
    bits = 0
    while (1 << bits) < len(index):
        bits += 1
    return np.uint64(64 - bits)


@njit(cache=True)
def _lookup(
    keys: NDArray[np.uint64],
    points: NDArray[np.uint64],
    owners: NDArray[np.int32],
    index: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    shift = index_shift(index)
    for i in range(len(keys)):
        out[i] = owners[ring_position(keys[i], points, index, shift)]


@njit(cache=True)
def _candidates(
    keys: NDArray[np.uint64],
    points: NDArray[np.uint64],
    owners: NDArray[np.int32],
    index: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    shift = index_shift(index)
    for i in range(len(keys)):
        at = ring_position(keys[i], points, index, shift)
        found = 0
        while found < out.shape[1]:
            worker = owners[at]
            seen = False
            for j in range(found):
                seen |= out[i, j] == worker
            if not seen:
                out[i, found] = worker
                found += 1
            at = at + 1 if at + 1 < len(points) else 0
