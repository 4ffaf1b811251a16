"""Pair counts: the most frequent pairs of keys in bounded memory."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import U64
from anabranch.chain.planning.pairs import Pairs, hash_pairs
from anabranch.containers import ordered_counters, slot_table
from anabranch.kernels import njit
from anabranch.sketches import SpaceSaving
from anabranch.sketches.space_saving import Summary, enter


class PairCounts:
    """Counts of the most frequent pairs of keys, never too low, too high by at most total / capacity.

    When to use it: in a worker of a stateful operator, for every tuple that it sends on: the key it came by, and the
    key it goes on with.

    Guarantees
    ----------
    - A pair's counter is at least its true count and exceeds it by at most total / capacity.
    - Every pair with more than total / capacity occurrences is among `pairs`, whose counts are never too high.
    - With as many counters as there are pairs, all counts are exact.

    Parameters
    ----------
    capacity
        Pairs that have a counter at a time.

    Examples
    --------
    >>> import numpy as np
    >>> counts = PairCounts(capacity=10)
    >>> counts.update(np.array([1, 1, 2], dtype=np.uint64), np.array([5, 5, 6], dtype=np.uint64))
    >>> found = counts.pairs()
    >>> found.first.tolist(), found.second.tolist(), found.counts.tolist()
    ([1, 2], [5, 6], [2, 1])

    References
    ----------
    Caneill et al., "Locality-aware routing in stateful streaming applications" (Middleware 2016), §3.2. A pair is
    counted under a 64-bit hash of its two hashes. The paper plans with the estimates; ours leaves out what may be
    error, or rare pairs that took over a counter would look frequent.
    """

    def __init__(self, capacity: int = 1_000_000) -> None:
        self.sketch = SpaceSaving(capacity)
        self.first = np.zeros(capacity, dtype=np.uint64)
        self.second = np.zeros(capacity, dtype=np.uint64)

    @property
    def capacity(self) -> int:
        """Number of counters."""
        return self.sketch.capacity

    @property
    def total(self) -> int:
        """Tuples counted."""
        return self.sketch.total

    def update(self, first: U64, second: U64) -> None:
        """Count the pair of each tuple once."""
        pairs = hash_pairs(first, second)
        _update(self.sketch.summary, self.first, self.second, pairs, first, second)
        self.sketch.total += len(pairs)

    def pairs(self) -> Pairs:
        """The pairs that have occurred for certain, and how often at least, heaviest first."""
        certain = self.sketch.summary.count - self.sketch.summary.error
        slots = np.flatnonzero(certain > 0)
        found = Pairs(self.first[slots], self.second[slots], certain[slots], self.total)
        return found.top(len(found))


@njit(cache=True)
def _update(summary: Summary, first: U64, second: U64, new: U64, new_first: U64, new_second: U64) -> None:
    """Count each pair; what a counter stands for is written when the pair takes it over."""
    count, order, items, blocks, free, keys, error, table, where = summary
    for i in range(len(new)):
        at = slot_table.place_of(new[i], keys, table)
        slot = table[at] - 1
        if slot < 0:
            slot = enter(count, order, keys, error, table, where, new[i], at)
            first[slot] = new_first[i]
            second[slot] = new_second[i]
        ordered_counters.increment(count, order, items, blocks, free, slot, 1)
