"""Spillway's levelling: keys that are split already even the workers out over the flows they have.

The flows of a chunk's split keys are listed one after the other, and the kernels that run over them take flat arrays:
this is most of what a plan costs with many workers.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32, I64, U32
from anabranch.groupings.spillway.chunk import Chunk
from anabranch.groupings.spillway.flows import CHUNKS, Flows, decay
from anabranch.kernels import njit

# A key with less than this part of a worker's target is placed once, after the heavier ones; those are levelled.
_LEVELLED = 0.1
_SWEEPS = 2
# A sweep with this in place of a rounding leaves volumes as they are.
_NOT_YET = -1.0


@njit(cache=True)
def level(chunk: Chunk, flows: Flows, n_split: int, rounding: float) -> None:
    """Choose quotas so that loads are level: sweeps over the heavy keys from where the last chunk left them.

    Split keys are in `chunk.order` by falling count afterwards, and their flows in `chunk.dealt`.
    """
    order, counts, loads = chunk.order, chunk.counts, chunk.loads
    _order(order, chunk.sorted, counts, n_split)
    fixed = loads.copy()
    heavy, least = 0, _LEVELLED * chunk.targets.mean()
    while heavy < n_split and counts[order[heavy]] >= least:
        heavy += 1
    n = _resume(chunk, flows, heavy, n_split)
    for _ in range(_SWEEPS):
        _sweep(chunk, flows, heavy, _NOT_YET)
    _sweep(chunk, flows, n_split, rounding)
    _add_up(chunk.dealt, chunk.towards, flows.quotas, fixed, loads, n)


@njit(cache=True)
def warm(chunk: Chunk, flows: Flows, n_split: int) -> None:
    """Add the chunk to the heat of the split keys that came."""
    order, slots, counts, heat, seen = chunk.order, chunk.slots, chunk.counts, flows.heat, flows.seen
    now = flows.counts[CHUNKS]
    # Most of them were there in the chunk before, too: what is left of their heat is computed once.
    age, left = -1, 1.0
    for a in range(n_split):
        slot = slots[order[a]]
        if now - seen[slot] != age:
            age = now - seen[slot]
            left = decay(age)
        heat[slot] = heat[slot] * left + counts[order[a]]
        seen[slot] = now


@njit(cache=True)
def _order(order: I32, room: I32, counts: I64, n_split: int) -> None:
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
def _resume(chunk: Chunk, flows: Flows, heavy: int, n_split: int) -> int:
    """List the flows of all split keys, place the heavy ones as in the last chunk; the number of flows."""
    order, slots, counts, starts, lengths = chunk.order, chunk.slots, chunk.counts, chunk.starts, chunk.lengths
    dealt, towards, widths, volumes = chunk.dealt, chunk.towards, chunk.widths, chunk.volumes
    loads, targets = chunk.loads, chunk.targets
    first, following, workers, parts = flows.first, flows.following, flows.workers, flows.parts
    n = 0
    for a in range(n_split):
        j = order[a]
        begin, total, flow = n, 0.0, first[slots[j]]
        while flow >= 0:
            dealt[n], towards[n], widths[n] = flow, workers[flow], targets[workers[flow]]
            volumes[n] = parts[flow] if a < heavy else 0.0
            total += volumes[n]
            n += 1
            flow = following[flow]
        starts[j], lengths[j] = begin, n - begin
        for at in range(begin, n if total > 0.0 else begin):
            volumes[at] = volumes[at] / total * counts[j]
            loads[towards[at]] += volumes[at]
    return n


@njit(cache=True)
def _sweep(chunk: Chunk, flows: Flows, n_keys: int, rounding: float) -> None:
    """Take up one key after the other and pour it over its flows like water: the lowest workers rise to one level.

    Each flow leads to a worker, which is a column: as wide as the worker's target, the ground as high as what the
    worker has of other keys. A worker whose ground is above the level gets no water.

                       ####
        level    ~~~~~~####~~~~
                 ~~~~~~########
                 ##############

    With a `rounding` from 0 to 1 the volumes become whole tuples, which are the quotas. It is the sum along the flows
    that is rounded, from there on, not each volume: so none of the sums is off by one or more.
    """
    order, counts, starts, lengths = chunk.order, chunk.counts, chunk.starts, chunk.lengths
    dealt, towards, widths, volumes, loads = chunk.dealt, chunk.towards, chunk.widths, chunk.volumes, chunk.loads
    quotas, parts, narrowest = flows.quotas, flows.parts, chunk.targets.min()
    for a in range(n_keys - 1, -1, -1):
        j = order[a]
        # Unsigned, or numba would look for negative indices in every access.
        count, begin, end = counts[j], np.uint64(starts[j]), np.uint64(starts[j] + lengths[j])

        # Take the key up: `volumes` holds the ground until the key is poured.
        water, width, top = float(count), 0.0, 0.0
        for at in range(begin, end):
            ground = loads[towards[at]] - volumes[at]
            volumes[at] = ground
            water += ground
            width += widths[at]
            top = ground if ground > top else top
        level = water / width
        if top >= level * narrowest:
            level = _lowered(level, top, count, widths, volumes, begin, end, narrowest)

        if rounding == _NOT_YET:
            for at in range(begin, end):
                ground, volume = volumes[at], level * widths[at] - volumes[at]
                volume = volume if volume > 0.0 else 0.0
                volumes[at] = volume
                loads[towards[at]] = ground + volume
            continue

        poured, given, last = rounding, 0, begin
        for at in range(begin, end):
            ground, volume = volumes[at], level * widths[at] - volumes[at]
            volume = volume if volume > 0.0 else 0.0
            flow, before = dealt[at], given
            poured += volume
            whole = int(poured) if poured < count else count
            given = whole if whole > given else given
            quotas[flow] = given - before
            parts[flow] = (given - before) / count
            loads[towards[at]] = ground + volume + ((given - before) - volume)
            last = np.uint64(at) if volume > 0.0 else last
        if given < count:
            flow = dealt[last]
            quotas[flow] += count - given
            parts[flow] = quotas[flow] / count
            loads[towards[last]] += count - given


@njit(cache=True, inline="always")
def _lowered(
    level: float,
    top: float,
    count: int,
    widths: F64,
    grounds: F64,
    begin: np.uint64,
    end: np.uint64,
    narrowest: float,
) -> float:
    """The level without the columns that stand out of the water, and so on until none does. `top` is the highest."""
    while top >= level * narrowest:
        water, width, top = float(count), 0.0, 0.0
        for at in range(begin, end):
            # Adding 0 instead of skipping: which worker is below is a coin toss to the processor.
            below = grounds[at] < level * widths[at]
            ground = grounds[at] if below else 0.0
            water += ground
            width += widths[at] if below else 0.0
            top = ground if ground > top else top
        if width <= 0.0 or water / width >= level - 1e-9:
            break
        level = water / width
    return level


@njit(cache=True)
def _add_up(dealt: I32, towards: U32, quotas: I64, fixed: F64, loads: F64, n: int) -> None:
    """Loads from whole tuples: after so many fractions, room for one tuple would be room for 0.999… of it."""
    loads[:] = fixed
    for at in range(n):
        loads[towards[at]] += quotas[dealt[at]]
