"""Counters kept in ascending order under increments, at O(1) a unit increment.

The "stream summary" of SpaceSaving as flat arrays: items stand in `order` by their count, items of equal count form a
block. A unit increment swaps an item with the last of its block and moves one block boundary. It serves SpaceSaving
(which counter is smallest?) and load vectors (which worker has least?) alike.

Kernels take the arrays one by one: taking them out of a tuple inside a hot loop costs atomic reference counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.kernels import njit


class OrderedCounters(NamedTuple):
    """Flat arrays of the structure.

    Item i has `count[i]`; `items[i]` is its position in `order` and its block; `blocks[b]` is the first and last
    position of block b; `free` is a stack of unused blocks with its height in the last cell.
    """

    count: I64  # type: ignore[assignment]  # hides tuple.count, which nothing here needs
    order: I32
    items: I32
    blocks: I32
    free: I32


def zeros(n: int, rotation: int = 0) -> OrderedCounters:
    """`n` counters at zero; ties are taken in the order rotation, rotation + 1 and so on."""
    counters = OrderedCounters(
        count=np.zeros(n, dtype=np.int64),
        order=np.zeros(n, dtype=np.int32),
        items=np.zeros((n, 2), dtype=np.int32),
        blocks=np.zeros((n, 2), dtype=np.int32),
        free=np.zeros(n + 1, dtype=np.int32),
    )
    assign(counters, counters.count, rotation)
    return counters


def holding(count: I64, rotation: int = 0) -> OrderedCounters:
    """Counters that hold these counts."""
    counters = zeros(len(count))
    assign(counters, count, rotation)
    return counters


def assign(counters: OrderedCounters, count: I64, rotation: int = 0) -> None:
    """Set all counts at once."""
    n = len(count)
    tie = (np.arange(n) - rotation) % n
    counters.order[:] = np.lexsort((tie, count))
    counters.count[:] = count
    _arrange(*counters)


@njit(cache=True)
def _arrange(count: I64, order: I32, items: I32, blocks: I32, free: I32) -> None:
    n = len(order)
    block = -1
    for position in range(n):
        item = order[position]
        if position == 0 or count[item] != count[order[position - 1]]:
            block += 1
            blocks[block, 0] = position
        items[item, 0] = position
        items[item, 1] = block
        blocks[block, 1] = position
    free[n] = n - block - 1
    for i in range(n - block - 1):
        free[i] = n - 1 - i


@njit(cache=True, inline="always")
def increment(count: I64, order: I32, items: I32, blocks: I32, free: I32, item: int, amount: int) -> None:
    """Add `amount` ≥ 1 to `item`, which passes over one block at a time until the order holds again."""
    n = len(order)
    target = count[item] + amount
    at = items[item, 0]
    own = items[item, 1]
    place = blocks[own, 1]
    other = order[place]
    order[at] = other
    items[other, 0] = at
    blocks[own, 1] = place - 1
    emptied = blocks[own, 0] > place - 1
    joined = np.int32(-1)
    while place + 1 < n:
        other = order[place + 1]
        if count[other] > target:
            break
        above = items[other, 1]
        blocks[above, 0] = place
        if count[other] == target:
            joined = above
            break
        top = blocks[above, 1]
        other = order[top]
        order[place] = other
        items[other, 0] = place
        blocks[above, 1] = top - 1
        place = top
    count[item] = target
    order[place] = item
    items[item, 0] = place
    if joined >= 0:
        items[item, 1] = joined
        if emptied:
            free[free[n]] = own
            free[n] += 1
    else:
        if not emptied:
            free[n] -= 1
            own = free[free[n]]
        items[item, 1] = own
        blocks[own, 0] = place
        blocks[own, 1] = place
