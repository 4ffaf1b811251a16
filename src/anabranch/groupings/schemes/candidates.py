"""Candidate workers of a key from the consistent-hash ring or by modulo, with the long lists of hot keys cached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import I32, U64
from anabranch.hashing import HashRing
from anabranch.hashing.family import candidate_sequence, reseed
from anabranch.hashing.ring import index_shift, ring_position
from anabranch.kernels import njit

_LINES = 256


class Lines(NamedTuple):
    """Long candidate lists that kernels keep: the lists, whose each is, how long it is, and the ring's owners."""

    lists: I32
    keys: U64
    sizes: I32
    owners: I32


class Candidates:
    """First, second and further candidates of keys, as indexes of the workers alive.

    On the ring the candidates of a key are the next distinct workers clockwise; by modulo they are a candidate sequence
    whose first and whose distance are remainders of the hash. (The default hash family scales the hash instead, which
    leaves half of the keys where they were when a worker comes.)

    Parameters
    ----------
    workers
        Worker numbers alive.
    kind
        "ring" or "modulo".
    virtual_nodes, seed
        As for `HashRing`.
    """

    def __init__(self, workers: I32, kind: str, virtual_nodes: int, seed: int) -> None:
        self.n_workers = len(workers)
        self.seed = seed
        self.ring: HashRing | None = None
        owners = np.zeros(0, dtype=np.int32)
        if kind == "ring":
            self.ring = HashRing(workers.tolist(), virtual_nodes=virtual_nodes, seed=seed)
            owners = np.searchsorted(workers, self.ring.owners).astype(np.int32)
            self._second = _second_owners(owners)
        self._owners = owners
        self.lines = Lines(
            lists=np.zeros((_LINES, self.n_workers), dtype=np.int32),
            keys=np.zeros(_LINES, dtype=np.uint64),
            sizes=np.zeros(_LINES, dtype=np.int32),
            owners=owners,
        )

    def pairs(self, keys: U64) -> tuple[I32, I32, I32]:
        """First and second candidate of each key, and its place on the ring."""
        if self.ring is None:
            first = np.zeros(len(keys), dtype=np.int32)
            second = np.zeros(len(keys), dtype=np.int32)
            if self.n_workers > 1:
                _modulo_pairs(reseed(keys, self.seed), np.uint64(self.n_workers), first, second)
            return first, second, np.zeros(len(keys), dtype=np.int32)
        places = np.empty(len(keys), dtype=np.int32)
        _places(reseed(keys, self.seed), self.ring.points, self.ring.index, places)
        return self._owners[places], self._second[places], places


@njit(cache=True)
def _modulo_pairs(keys: U64, n_workers: np.uint64, first: I32, second: I32) -> None:
    for i in range(len(keys)):
        a = (keys[i] >> np.uint64(32)) % n_workers
        distance = (keys[i] & np.uint64(0xFFFFFFFF)) % (n_workers - np.uint64(1)) + np.uint64(1)
        first[i] = np.int32(a)
        second[i] = np.int32((a + distance) % n_workers)


@njit(cache=True)
def _places(keys: U64, points: U64, index: I32, out: I32) -> None:
    shift = index_shift(index)
    for i in range(len(keys)):
        out[i] = ring_position(keys[i], points, index, shift)


@njit(cache=True)
def _second_owners(owners: I32) -> I32:
    """The first owner clockwise of each point that is another than the point's own; the same if there is no other."""
    n = len(owners)
    out = np.empty(n, dtype=np.int32)
    for i in range(n):
        j = i
        for step in range(1, n):
            j = (i + step) % n
            if owners[j] != owners[i]:
                break
        out[i] = owners[j]
    return out


@njit(cache=True)
def fill_line(line: I32, d: int, first: int, second: int, place: int, owners: I32, n_workers: int) -> None:
    """Write the first `d` candidates into `line`."""
    if len(owners) == 0:
        candidate_sequence(first, second, n_workers, line[:d])
        return
    seen = np.zeros(n_workers, dtype=np.bool_)
    found = 0
    at = place
    while found < d:
        worker = owners[at]
        if not seen[worker]:
            seen[worker] = True
            line[found] = worker
            found += 1
        at = at + 1 if at + 1 < len(owners) else 0
