"""Spillway's levelling: keys that are split already even the workers out over the flows they have.

The flows of a chunk's split keys are listed one after the other, and the kernels that run over them take flat arrays:
this is most of what a plan costs with many workers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.groupings.chunk import Chunk
from anabranch.groupings.flows import CHUNKS, Flows, decay
from anabranch.kernels import njit

# A key with less than this part of a worker's target is placed once, after the heavier ones; those are levelled.
_LEVELLED = 0.25
_SWEEPS = 2


@njit(cache=True)
def level(chunk: Chunk, flows: Flows, n_split: int, rounding: float) -> None:
    """Choose quotas so that loads are level: sweeps over the heavy keys from where the last chunk left them.

    Split keys are in `chunk.order` by falling count afterwards, and their flows in `chunk.dealt`.
    """
    order, counts, starts, lengths = chunk.order, chunk.counts, chunk.starts, chunk.lengths
    dealt, towards, widths, volumes, loads = chunk.dealt, chunk.towards, chunk.widths, chunk.volumes, chunk.loads
    _order(order, chunk.sorted, counts, n_split)
    chain = (flows.first, flows.following, flows.workers)
    n = _list(order, chunk.slots, *chain, chunk.targets, starts, lengths, dealt, towards, widths, n_split)
    fixed = loads.copy()
    heavy, least, narrowest = 0, _LEVELLED * chunk.targets.mean(), chunk.targets.min()
    while heavy < n_split and counts[order[heavy]] >= least:
        j = order[heavy]
        _resume(starts[j], starts[j] + lengths[j], counts[j], dealt, towards, flows.parts, volumes, loads)
        heavy += 1
    for _ in range(_SWEEPS):
        for a in range(heavy - 1, -1, -1):
            j = order[a]
            _pour(starts[j], starts[j] + lengths[j], counts[j], towards, widths, narrowest, volumes, loads)
    for a in range(n_split - 1, -1, -1):
        j = order[a]
        begin, end = starts[j], starts[j] + lengths[j]
        if a >= heavy:
            volumes[begin:end] = 0.0
        _pour(begin, end, counts[j], towards, widths, narrowest, volumes, loads)
        _round(begin, end, counts[j], rounding, dealt, towards, volumes, loads, flows.quotas, flows.parts)
    _add_up(dealt, towards, flows.quotas, fixed, loads, n)
    _warm(order, chunk.slots, counts, flows.heat, flows.seen, flows.counts[CHUNKS], n_split)


@njit(cache=True)
def _order(order: NDArray[np.int32], room: NDArray[np.int32], counts: NDArray[np.int64], n_split: int) -> None:
    """Split keys by falling count, to the power of two."""
    starts = np.zeros(66, np.int64)
    for a in range(n_split):
        starts[64 - _magnitude(counts[order[a]])] += 1
    total = 0
    for i in range(66):
        starts[i], total = total, total + starts[i]
    for a in range(n_split):
        at = 64 - _magnitude(counts[order[a]])
        room[starts[at]] = order[a]
        starts[at] += 1
    order[:n_split] = room[:n_split]


@njit(cache=True, inline="always")
def _magnitude(count: int) -> int:
    bits = 0
    while count > 0:
        count >>= 1
        bits += 1
    return bits


@njit(cache=True)
def _list(
    order: NDArray[np.int32],
    slots: NDArray[np.int32],
    first: NDArray[np.int32],
    following: NDArray[np.int32],
    workers: NDArray[np.int32],
    targets: NDArray[np.float64],
    starts: NDArray[np.int32],
    lengths: NDArray[np.int32],
    dealt: NDArray[np.int32],
    towards: NDArray[np.int32],
    widths: NDArray[np.float64],
    n_split: int,
) -> int:
    """List the flows of all split keys, their workers and the targets of those, one after the other; how many."""
    at = 0
    for a in range(n_split):
        j = order[a]
        starts[j] = at
        flow = first[slots[j]]
        while flow >= 0:
            dealt[at], towards[at], widths[at] = flow, workers[flow], targets[workers[flow]]
            at += 1
            flow = following[flow]
        lengths[j] = at - starts[j]
    return at


@njit(cache=True)
def _resume(
    begin: int,
    end: int,
    count: int,
    dealt: NDArray[np.int32],
    towards: NDArray[np.int32],
    parts: NDArray[np.float64],
    volumes: NDArray[np.float64],
    loads: NDArray[np.float64],
) -> None:
    """Place a key as in the last chunk."""
    total = 0.0
    for at in range(begin, end):
        total += parts[dealt[at]]
    for at in range(begin, end):
        volumes[at] = parts[dealt[at]] / total * count if total > 0 else 0.0
        loads[towards[at]] += volumes[at]


@njit(cache=True)
def _pour(
    begin: int,
    end: int,
    count: int,
    towards: NDArray[np.int32],
    widths: NDArray[np.float64],
    narrowest: float,
    volumes: NDArray[np.float64],
    loads: NDArray[np.float64],
) -> None:
    """Take a key up and pour it over its flows like water: the lowest workers rise to one level."""
    water, width, top = float(count), 0.0, 0.0
    for at in range(begin, end):
        # What is there without the key, until the last loop.
        ground = loads[towards[at]] - volumes[at]
        volumes[at] = ground
        water += ground
        width += widths[at]
        top = max(top, ground)
    level = water / width
    # Where the level is above all ground it is right. If not, the next one is lower, and again.
    while top >= level * narrowest:
        water, width, top = float(count), 0.0, 0.0
        for at in range(begin, end):
            # Adding 0 instead of skipping: which worker is below is a coin toss to the processor.
            below = volumes[at] < level * widths[at]
            ground = volumes[at] if below else 0.0
            water += ground
            width += widths[at] if below else 0.0
            top = max(top, ground)
        if width <= 0.0 or water / width >= level - 1e-9:
            break
        level = water / width
    for at in range(begin, end):
        ground = volumes[at]
        volumes[at] = max(0.0, level * widths[at] - ground)
        loads[towards[at]] = ground + volumes[at]


@njit(cache=True)
def _round(
    begin: int,
    end: int,
    count: int,
    rounding: float,
    dealt: NDArray[np.int32],
    towards: NDArray[np.int32],
    volumes: NDArray[np.float64],
    loads: NDArray[np.float64],
    quotas: NDArray[np.int64],
    parts: NDArray[np.float64],
) -> None:
    """Whole tuples out of volumes, so that no sum along the flows is off by one or more."""
    poured, given, last = rounding, 0, begin
    for at in range(begin, end):
        flow, volume, before = dealt[at], volumes[at], given
        poured += volume
        given = max(given, min(int(poured), count))
        quotas[flow] = given - before
        parts[flow] = (given - before) / count
        loads[towards[at]] += (given - before) - volume
        last = at if volume > 0.0 else last
    if given < count:
        quotas[dealt[last]] += count - given
        parts[dealt[last]] = quotas[dealt[last]] / count
        loads[towards[last]] += count - given


@njit(cache=True)
def _add_up(
    dealt: NDArray[np.int32],
    towards: NDArray[np.int32],
    quotas: NDArray[np.int64],
    fixed: NDArray[np.float64],
    loads: NDArray[np.float64],
    n: int,
) -> None:
    """Loads from whole tuples: after so many fractions, room for one tuple would be room for 0.999… of it."""
    loads[:] = fixed
    for at in range(n):
        loads[towards[at]] += quotas[dealt[at]]


@njit(cache=True)
def _warm(
    order: NDArray[np.int32],
    slots: NDArray[np.int32],
    counts: NDArray[np.int64],
    heat: NDArray[np.float64],
    seen: NDArray[np.int64],
    now: int,
    n_split: int,
) -> None:
    """Heat of the split keys that came; most of them were there in the chunk before, too."""
    age, left = -1, 1.0
    for a in range(n_split):
        slot = slots[order[a]]
        if now - seen[slot] != age:
            age = now - seen[slot]
            left = decay(age)
        heat[slot] = heat[slot] * left + counts[order[a]]
        seen[slot] = now
