"""Hash families: how a key's hash becomes its candidate workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from anabranch.arrays import I32, U64
from anabranch.hashing.xxhash64 import SPARK_SEED, hash_long
from anabranch.kernels import njit


class HashFamily(ABC):
    """Gives a key its first two candidate workers; they fix its whole candidate sequence (`next_candidate`)."""

    @abstractmethod
    def first(self, keys: U64, n_workers: int, seed: int) -> I32:
        """Home worker of each key."""

    @abstractmethod
    def pairs(self, keys: U64, n_workers: int, seed: int) -> tuple[I32, I32]:
        """First and second candidate of each key."""


@dataclass(frozen=True)
class MultiplyShift(HashFamily):
    """The default family: two independent halves of the 64-bit hash, scaled to the number of workers.

    The first candidate is ``(high 32 bits × n_workers) >> 32``, which Spark can compute natively from ``xxhash64``
    and which is several times faster than a modulo. The second is at a distance of 1 … n_workers − 1 taken from the
    low 32 bits, so the two are distinct and every ordered pair is equally likely. Seed 0 uses the hash as it is;
    another seed hashes it once more, as ``xxhash64(seed, hash)`` in Spark.

    Guarantees
    ----------
    The candidates of a key are distinct while there are workers left.

    Examples
    --------
    >>> import numpy as np
    >>> first, second = MultiplyShift().pairs(np.array([0, 2**63 + 5], dtype=np.uint64), n_workers=10, seed=0)
    >>> first.tolist(), second.tolist()
    ([0, 5], [1, 6])

    References
    ----------
    Mitzenmacher, "Balanced allocations and double hashing" (2014): candidates first + i·distance balance as well as
    independent ones.
    """

    def first(self, keys: U64, n_workers: int, seed: int) -> I32:
        """Home worker of each key."""
        out = np.empty(len(keys), dtype=np.int32)
        _first(reseed(keys, seed), np.uint64(n_workers), out)
        return out

    def pairs(self, keys: U64, n_workers: int, seed: int) -> tuple[I32, I32]:
        """First and second candidate of each key."""
        first = np.empty(len(keys), dtype=np.int32)
        second = np.empty(len(keys), dtype=np.int32)
        _pairs(reseed(keys, seed), np.uint64(n_workers), first, second)
        return first, second


def reseed(keys: U64, seed: int) -> U64:
    """Hash the hashes once more under `seed`; seed 0 returns them as they are."""
    if seed == 0:
        return keys
    out = np.empty(len(keys), dtype=np.uint64)
    _reseed(keys, np.uint64(seed & 0xFFFFFFFFFFFFFFFF), out)
    return out


@njit(cache=True)
def _reseed(keys: U64, seed: np.uint64, out: U64) -> None:
    mixed = hash_long(seed, np.uint64(SPARK_SEED))
    for i in range(len(keys)):
        out[i] = hash_long(keys[i], mixed)


@njit(cache=True)
def _first(keys: U64, n_workers: np.uint64, out: I32) -> None:
    for i in range(len(keys)):
        out[i] = np.int32(((keys[i] >> np.uint64(32)) * n_workers) >> np.uint64(32))


@njit(cache=True)
def _pairs(keys: U64, n_workers: np.uint64, first: I32, second: I32) -> None:
    if n_workers == np.uint64(1):
        first[:] = 0
        second[:] = 0
        return
    n = np.int32(n_workers)
    distances = n_workers - np.uint64(1)
    for i in range(len(keys)):
        a = np.int32(((keys[i] >> np.uint64(32)) * n_workers) >> np.uint64(32))
        distance = np.int32(((keys[i] & np.uint64(0xFFFFFFFF)) * distances) >> np.uint64(32)) + np.int32(1)
        b = a + distance
        first[i] = a
        second[i] = b - n if b >= n else b


@njit(cache=True, inline="always")
def next_candidate(candidate: int, start: int, distance: int, n_workers: int) -> tuple[int, int]:
    """The candidate after `candidate`, and where its lap began.

    Steps of `distance` visit a coset of the workers; a step that would come back to `start` moves on to the next coset
    instead, so that the sequence passes every worker once.
    """
    candidate += distance
    if candidate >= n_workers:
        candidate -= n_workers
    if candidate == start:
        candidate = start + 1 if start + 1 < n_workers else 0
        start = candidate
    return candidate, start


@njit(cache=True)
def candidate_sequence(first: int, second: int, n_workers: int, out: I32) -> None:
    """Fill `out` (at most n_workers long) with the candidate sequence that begins with `first` and `second`."""
    distance = (second - first) % n_workers
    if distance == 0:
        distance = 1
    candidate, start = first, first
    for i in range(len(out)):
        out[i] = candidate
        candidate, start = next_candidate(candidate, start, distance, n_workers)
