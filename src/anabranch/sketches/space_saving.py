"""SpaceSaving: the heaviest keys of a stream in bounded memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.containers import ordered_counters, slot_table
from anabranch.containers.ordered_counters import OrderedCounters
from anabranch.errors import ConfigError
from anabranch.kernels import njit


class Summary(NamedTuple):
    """Flat arrays of a SpaceSaving sketch, for kernels.

    The first five are `OrderedCounters`. Slot s counts `keys[s]`, too high by at most `error[s]`; the open-addressing
    `table` holds slot + 1, and `where[s]` is the place of slot s in it.
    """

    count: I64  # type: ignore[assignment]  # hides tuple.count, which nothing here needs
    order: I32
    items: I32
    blocks: I32
    free: I32
    keys: U64
    error: I64
    table: I32
    where: I32


class SpaceSaving:
    """Counts of the heaviest keys, never too low, too high by at most total / capacity.

    When to use it: to find keys with more than 1 / capacity of a stream without a counter for every key.

    Guarantees
    ----------
    - A key's estimate is at least its true count, and exceeds it by at most its error, which is at most
      total / capacity.
    - Every key with more than total / capacity occurrences is monitored.
    - Merging keeps both: errors add up.

    Parameters
    ----------
    capacity
        Number of counters.

    Examples
    --------
    >>> import numpy as np
    >>> sketch = SpaceSaving(capacity=2)
    >>> sketch.update(np.array([7, 7, 8, 7, 9], dtype=np.uint64))
    >>> keys, counts, errors = sketch.top(1)
    >>> int(keys[0]), int(counts[0]), int(errors[0])
    (7, 3, 0)

    References
    ----------
    Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams" (ICDT 2005);
    merging after Berinde et al., "Space-optimal heavy hitters with strong error bounds" (TODS 2010).
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ConfigError(f"capacity must be at least 1, got {capacity}")
        self.total = 0
        self.summary = Summary(
            *ordered_counters.zeros(capacity),
            keys=np.zeros(capacity, dtype=np.uint64),
            error=np.zeros(capacity, dtype=np.int64),
            table=slot_table.empty(capacity),
            where=np.zeros(capacity, dtype=np.int32),
        )

    @property
    def capacity(self) -> int:
        """Number of counters."""
        return len(self.summary.count)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def update(self, keys: U64, counts: I64 | None = None) -> None:
        """Count each key once, or `counts[i]` ≥ 1 times."""
        if counts is not None:
            _check_counts(keys, counts)
        amounts = np.zeros(0, dtype=np.int64) if counts is None else counts.astype(np.int64)
        _update(*self.summary, keys, amounts)
        self.total += len(keys) if counts is None else int(amounts.sum())

    def estimate(self, keys: U64) -> I64:
        """Upper bound of each key's count."""
        out = np.empty(len(keys), dtype=np.int64)
        summary = self.summary
        _estimate(summary.count, summary.order, summary.keys, summary.table, keys, out)
        return out

    def top(self, n: int | None = None) -> tuple[U64, I64, I64]:
        """Keys, counts and errors of the `n` heaviest (all if None), heaviest first."""
        count = self.summary.count
        used = int(np.count_nonzero(count))
        slots = self.summary.order[::-1][: used if n is None else min(n, used)]
        return self.summary.keys[slots], count[slots], self.summary.error[slots]

    def merge(self, other: SpaceSaving) -> None:
        """Add another sketch's stream to this one; the other must have at least as many counters.

        A smaller one cannot bound the keys it has dropped for the counters that would stay free here.
        """
        if other.capacity < self.capacity:
            raise ConfigError(
                f"a sketch of {self.capacity} counters cannot take in one of {other.capacity}; swap the two"
            )
        keys, counts, errors = _pooled(self, other)
        total = self.total + other.total
        kept = np.lexsort((keys, -counts))[: self.capacity]
        self.load(keys[kept], counts[kept], errors[kept], total)

    def load(self, keys: U64, counts: I64, errors: I64, total: int) -> None:
        """Become a sketch of these counters (at most `capacity`)."""
        n = len(keys)
        if n > self.capacity:
            raise ConfigError(f"at most {self.capacity} counters fit, got {n}; raise capacity")
        _check_counts(keys, counts)
        count = np.zeros(self.capacity, dtype=np.int64)
        count[:n] = counts
        self.summary.keys[:n] = keys
        self.summary.error[:n] = errors
        self.summary.error[n:] = 0
        self.total = total
        ordered_counters.assign(OrderedCounters(*self.summary[:5]), count)
        slot_table.fill(self.summary.keys, self.summary.table, self.summary.where, n)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its state by name, for snapshots."""
        return {**self.summary._asdict(), "total": np.array([self.total], dtype=np.int64)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over arrays that `arrays` named."""
        self.summary = Summary(*(arrays[name] for name in Summary._fields))
        self.total = int(arrays["total"][0])


def _check_counts(keys: U64, counts: I64) -> None:
    if len(counts) != len(keys):
        raise ConfigError(f"keys and counts must be equally long, got {len(keys)} and {len(counts)}")
    if len(counts) and counts.min() < 1:
        raise ConfigError(f"counts must be at least 1, got {counts.min()}")


def _pooled(a: SpaceSaving, b: SpaceSaving) -> tuple[U64, I64, I64]:
    """Counters of both; a key that one of them lacks gets that one's smallest count, as count and as error."""
    keys_a, counts_a, errors_a = a.top()
    keys_b, counts_b, errors_b = b.top()
    keys = np.union1d(keys_a, keys_b)
    counts = np.zeros(len(keys), dtype=np.int64)
    errors = np.zeros(len(keys), dtype=np.int64)
    for own, own_counts, own_errors, sketch in ((keys_a, counts_a, errors_a, a), (keys_b, counts_b, errors_b, b)):
        floor = int(sketch.summary.count.min())
        at = np.searchsorted(keys, own)
        missing = np.ones(len(keys), dtype=bool)
        missing[at] = False
        counts[at] += own_counts
        errors[at] += own_errors
        counts[missing] += floor
        errors[missing] += floor
    return keys, counts, errors


@njit(cache=True)
def enter(count: I64, order: I32, keys: U64, error: I64, table: I32, where: I32, key: np.uint64, at: int) -> int:
    """The slot of a key not monitored, in the table's place `at`: the smallest counter gives way to it."""
    slot = order[0]
    previous = where[slot]
    table[at] = slot + 1
    where[slot] = at
    keys[slot] = key
    error[slot] = count[slot]
    if count[slot] > 0:
        slot_table.delete(previous, keys, table, where)
    return int(slot)


@njit(cache=True)
def _update(
    count: I64,
    order: I32,
    items: I32,
    blocks: I32,
    free: I32,
    keys: U64,
    error: I64,
    table: I32,
    where: I32,
    new: U64,
    amounts: I64,
) -> None:
    """Count each key `amounts[i]` times, or once where `amounts` is empty."""
    for i in range(len(new)):
        at = slot_table.place_of(new[i], keys, table)
        slot = table[at] - 1
        if slot < 0:
            slot = enter(count, order, keys, error, table, where, new[i], at)
        amount = amounts[i] if len(amounts) else 1
        ordered_counters.increment(count, order, items, blocks, free, slot, amount)


@njit(cache=True)
def _estimate(count: I64, order: I32, keys: U64, table: I32, asked: U64, out: I64) -> None:
    for i in range(len(asked)):
        slot = table[slot_table.place_of(asked[i], keys, table)] - 1
        out[i] = count[slot] if slot >= 0 else count[order[0]]
