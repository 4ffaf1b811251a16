"""Slots: integers that Spark's hash partitioning sends where we want them."""

from __future__ import annotations

from collections import Counter

_MASK = 0xFFFFFFFF
_SEED = 42


# Slots are spread over so many partitions, and so evenly over any number that divides it. They must not depend on the
# session's own number of partitions: a query that restarts with another one would not find its states again.
SPREAD = 64


def slots_of(n: int, n_partitions: int = SPREAD) -> list[int]:
    """Distinct integers; the i-th lies on partition i modulo `n_partitions`.

    Stateful operators insist on Spark's own partitioning, pmod(murmur3(slot), partitions).
    """
    found: dict[int, list[int]] = {i: [] for i in range(n_partitions)}
    wanted = Counter(i % n_partitions for i in range(n))
    candidate = 0
    while any(len(found[i]) < times for i, times in wanted.items()):
        found[partition_of(candidate, n_partitions)].append(candidate)
        candidate += 1
    return [found[i % n_partitions].pop(0) for i in range(n)]


def partition_of(number: int, n_partitions: int) -> int:
    """Partition to which Spark's hash partitioning sends an integer."""
    return _signed(_murmur3(number)) % n_partitions


def _murmur3(number: int) -> int:
    """Spark's ``hash`` of one integer: Murmur3_x86_32 with seed 42."""
    k = (number * 0xCC9E2D51) & _MASK
    k = (_rotate(k, 15) * 0x1B873593) & _MASK
    h = (_rotate(_SEED ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    return h ^ (h >> 16)


def _rotate(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & _MASK


def _signed(x: int) -> int:
    return x - (1 << 32) if x >= 1 << 31 else x
