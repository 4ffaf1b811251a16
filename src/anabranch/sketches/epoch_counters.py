"""Epoch counters: the keys that were frequent of late."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I32, I64, U64
from anabranch.containers import slot_table
from anabranch.errors import ConfigError
from anabranch.kernels import njit

# Cells of `EpochArrays.sums` and `EpochArrays.sizes`.
TOTAL, LARGEST = 0, 1
USED, IN_EPOCH = 0, 1


class EpochArrays(NamedTuple):
    """Flat arrays of the sketch, for kernels.

    Slot s counts `keys[s]` and has `counts[s]`. `heap` holds the slots as a four-way heap by (count, slot) and
    `floors` the counts by which they are ordered: those of some time ago, never above the counts now. Most keys
    never come near the top, and need not be moved. `sums` holds the decayed `TOTAL` and the `LARGEST` count, `sizes`
    the slots that are `USED` and the tuples `IN_EPOCH`, the current one.
    """

    counts: F64
    keys: U64
    table: I32
    where: I32
    heap: I32
    floors: F64
    sums: F64
    sizes: I64


class EpochCounters:
    """Counts of the heaviest recent keys: replace-min within an epoch, decay between epochs.

    When to use it: when yesterday's hot keys must not count as much as today's.

    Guarantees
    ----------
    - At most `capacity` keys are kept; each epoch the counts shrink to `alpha` times themselves.
    - With alpha = 1 an estimate is at least the true count.

    Parameters
    ----------
    capacity
        Number of counters, the paper's K_max.
    epoch
        Tuples per epoch, the paper's N_epoch.
    alpha
        What remains of a count after an epoch; 1 never forgets, 0 forgets all.

    Examples
    --------
    >>> import numpy as np
    >>> sketch = EpochCounters(capacity=10, epoch=4, alpha=0.5)
    >>> sketch.update(np.array([7, 7, 7, 8, 9], dtype=np.uint64))
    >>> sketch.estimate(np.array([7, 8, 9], dtype=np.uint64)).tolist()
    [1.5, 0.5, 1.0]

    References
    ----------
    FISH, section 4.1.1, Algorithm 1. Of several least counts the one in the lowest slot is replaced, which the paper
    leaves open.
    """

    def __init__(self, capacity: int = 1000, epoch: int = 1000, alpha: float = 0.2) -> None:
        if capacity < 1:
            raise ConfigError(f"capacity must be at least 1, got {capacity}")
        if epoch < 1:
            raise ConfigError(f"epoch must be at least 1, got {epoch}")
        if not 0 <= alpha <= 1:
            raise ConfigError(f"alpha must be from 0 to 1, got {alpha}")
        self.epoch = epoch
        self.alpha = alpha
        self.state = EpochArrays(
            counts=np.zeros(capacity),
            keys=np.zeros(capacity, dtype=np.uint64),
            table=slot_table.empty(capacity),
            where=np.zeros(capacity, dtype=np.int32),
            heap=np.zeros(capacity, dtype=np.int32),
            floors=np.zeros(capacity),
            sums=np.zeros(2),
            sizes=np.zeros(2, dtype=np.int64),
        )

    @property
    def capacity(self) -> int:
        """Number of counters."""
        return len(self.state.keys)

    @property
    def total(self) -> float:
        """Tuples seen, decayed as the counts are."""
        return float(self.state.sums[TOTAL])

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.state)

    def update(self, keys: U64) -> None:
        """Count each key once."""
        _update(self.state, keys, self.epoch, self.alpha)

    def estimate(self, keys: U64) -> F64:
        """Decayed count of each key; the least count for keys that have no counter once all counters are taken."""
        out, state = np.zeros(len(keys)), self.state
        least = float(state.counts.min()) if state.sizes[USED] == self.capacity else 0.0
        _estimate(state.counts, state.keys, state.table, least, keys, out)
        return out

    def top(self, n: int | None = None) -> tuple[U64, F64]:
        """Keys and counts of the `n` heaviest (all if None), heaviest first."""
        used = int(self.state.sizes[USED])
        counts, keys = self.state.counts[:used], self.state.keys[:used]
        order = np.lexsort((keys, -counts))[:n]
        return keys[order], counts[order]

    def merge(self, other: EpochCounters) -> None:
        """Add another sketch's recent stream to this one; epochs are taken to end together."""
        both = [self.top(), other.top()]
        keys, inverse = np.unique(np.concatenate([keys for keys, _ in both]), return_inverse=True)
        counts = np.zeros(len(keys))
        np.add.at(counts, inverse, np.concatenate([counts for _, counts in both]))
        self.load(keys, counts, self.total + other.total)

    def load(self, keys: U64, counts: F64, total: float) -> None:
        """Become a sketch of these counters, the heaviest of them, at the start of an epoch."""
        kept = np.lexsort((keys, -counts))[: self.capacity]
        n = len(kept)
        self.state.keys[:n] = keys[kept]
        self.state.counts[:n] = counts[kept]
        self.state.sums[TOTAL], self.state.sums[LARGEST] = total, counts.max(initial=0.0)
        self.state.sizes[USED], self.state.sizes[IN_EPOCH] = n, 0
        slot_table.fill(self.state.keys, self.state.table, self.state.where, n)
        _heapify(self.state.counts, self.state.heap, self.state.floors, n)


@njit(cache=True, inline="always")
def _less(count_a: float, slot_a: int, count_b: float, slot_b: int) -> bool:
    return count_a < count_b or (count_a == count_b and slot_a < slot_b)


@njit(cache=True)
def _sift_down(heap: I32, floors: F64, at: int, size: int) -> None:
    slot = heap[at]
    floor = floors[at]
    while True:
        child = 4 * at + 1
        if child >= size:
            break
        least = child
        for other in range(child + 1, min(child + 4, size)):
            if _less(floors[other], heap[other], floors[least], heap[least]):
                least = other
        if _less(floor, slot, floors[least], heap[least]):
            break
        heap[at] = heap[least]
        floors[at] = floors[least]
        at = least
    heap[at] = slot
    floors[at] = floor


@njit(cache=True)
def _sift_up(heap: I32, floors: F64, at: int) -> None:
    slot = heap[at]
    floor = floors[at]
    while at > 0:
        parent = (at - 1) // 4
        if not _less(floor, slot, floors[parent], heap[parent]):
            break
        heap[at] = heap[parent]
        floors[at] = floors[parent]
        at = parent
    heap[at] = slot
    floors[at] = floor


@njit(cache=True)
def _heapify(counts: F64, heap: I32, floors: F64, size: int) -> None:
    for at in range(size):
        heap[at] = at
        floors[at] = counts[at]
    for at in range((size + 2) // 4, -1, -1):
        if at < size:
            _sift_down(heap, floors, at, size)


@njit(cache=True)
def _least(counts: F64, heap: I32, floors: F64, size: int) -> int:
    """The slot with the least count, the lowest of several: slots that have grown leave the top until one has not."""
    while floors[0] < counts[heap[0]]:
        floors[0] = counts[heap[0]]
        _sift_down(heap, floors, 0, size)
    return int(heap[0])


@njit(cache=True)
def end_epoch(counts: F64, heap: I32, floors: F64, sums: F64, sizes: I64, alpha: float) -> None:
    """Counts decay. Those so small that they round to the same value change their order, hence the new heap."""
    sizes[IN_EPOCH] = 0
    if alpha == 1:
        return
    for slot in range(sizes[USED]):
        counts[slot] *= alpha
    sums *= alpha
    _heapify(counts, heap, floors, sizes[USED])


@njit(cache=True)
def enter(
    counts: F64, keys: U64, table: I32, where: I32, heap: I32, floors: F64, sizes: I64, key: np.uint64, at: int
) -> int:
    """The slot of a new key, in the table's place `at`: a free one, or that of the least count, which it takes over."""
    grows = sizes[USED] < len(keys)
    slot = np.int32(sizes[USED]) if grows else np.int32(_least(counts, heap, floors, sizes[USED]))
    previous = where[slot]
    table[at] = slot + 1
    where[slot] = at
    keys[slot] = key
    if grows:
        sizes[USED] += 1
        counts[slot] = floors[slot] = 0.0
        heap[slot] = slot
        _sift_up(heap, floors, int(slot))
    else:
        slot_table.delete(previous, keys, table, where)
    return int(slot)


@njit(cache=True, inline="always")
def count_once(counts: F64, sums: F64, sizes: I64, slot: int) -> float:
    """One more tuple for the key of a slot; its count."""
    counts[slot] += 1
    sums[TOTAL] += 1
    sums[LARGEST] = max(sums[LARGEST], counts[slot])
    sizes[IN_EPOCH] += 1
    return float(counts[slot])


@njit(cache=True)
def _update(arrays: EpochArrays, new: U64, epoch: int, alpha: float) -> None:
    counts, keys, table, where, heap, floors, sums, sizes = arrays
    for i in range(len(new)):
        if sizes[IN_EPOCH] == epoch:
            end_epoch(counts, heap, floors, sums, sizes, alpha)
        at = slot_table.place_of(new[i], keys, table)
        slot = table[at] - 1
        if slot < 0:
            slot = enter(counts, keys, table, where, heap, floors, sizes, new[i], at)
        count_once(counts, sums, sizes, slot)


@njit(cache=True)
def _estimate(counts: F64, keys: U64, table: I32, least: float, asked: U64, out: F64) -> None:
    for i in range(len(asked)):
        slot = table[slot_table.place_of(asked[i], keys, table)] - 1
        out[i] = counts[slot] if slot >= 0 else least
