"""Spillway's plan for one chunk: existing flows level the workers, then the overloaded ones spill.

Loads, targets and limits are in tuples of the chunk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.groupings.flows import CHUNKS, Flows, decayed, extend, flow_to, slot_of, split
from anabranch.hashing.family import next_candidate
from anabranch.kernels import njit

# A key with less than this part of a worker's target is placed once, after the heavier ones; those are levelled.
_LEVELLED = 0.25
_SWEEPS = 2
# A new flow must have room for this part of what it is to carry, or flows become many and thin.
_WORTHWHILE = 0.25
# What is less than this part of a target may go where there is no room below the target, but below the limit.
_SMALL = 0.1
# A key with so few tuples in a chunk is rare: which worker has more of such keys is mostly chance.
_RARE = 2


class Chunk(NamedTuple):
    """Work space for one chunk: its distinct keys, and lists over them and over flows.

    `index_of` has the distinct key of each tuple; `slots` the slot of each distinct key, −1 for one that is not split.
    `order` lists the split ones, `links` and `heads` the keys and flows at overloaded workers, `owners` the distinct
    key of a flow, and `dealt`, `starts`, `lengths`, `turns` the flows that each split key is dealt out to. `rare` has
    the tuples of rare keys at each worker.
    """

    table: NDArray[np.int32]
    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]
    homes: NDArray[np.int32]
    steps: NDArray[np.int32]
    slots: NDArray[np.int32]
    index_of: NDArray[np.int32]
    order: NDArray[np.int32]
    sorted: NDArray[np.int32]
    links: NDArray[np.int32]
    owners: NDArray[np.int32]
    volumes: NDArray[np.float64]
    dealt: NDArray[np.int32]
    starts: NDArray[np.int32]
    lengths: NDArray[np.int32]
    turns: NDArray[np.int32]
    heads: NDArray[np.int32]
    loads: NDArray[np.float64]
    noise: NDArray[np.float64]
    targets: NDArray[np.float64]
    limits: NDArray[np.float64]
    rare: NDArray[np.float64]


def work_space(n_keys: int, n_flows: int, n_workers: int) -> Chunk:
    """Room for so many distinct keys, flows and workers."""
    size = 4
    while size < 2 * n_keys:
        size *= 2

    def of_keys() -> NDArray[np.int32]:
        return np.zeros(n_keys, np.int32)

    def of_flows() -> NDArray[np.int32]:
        return np.zeros(n_flows, np.int32)

    return Chunk(
        table=np.zeros(size, np.int32),
        keys=np.zeros(n_keys, np.uint64),
        counts=np.zeros(n_keys, np.int64),
        homes=of_keys(),
        steps=of_keys(),
        slots=of_keys(),
        index_of=of_keys(),
        order=of_keys(),
        sorted=of_keys(),
        links=np.zeros(n_keys + n_flows, np.int32),
        owners=of_flows(),
        volumes=np.zeros(n_flows),
        dealt=of_flows(),
        starts=of_keys(),
        lengths=of_keys(),
        turns=of_keys(),
        heads=np.zeros(n_workers, np.int32),
        loads=np.zeros(n_workers),
        noise=np.zeros(n_workers),
        targets=np.zeros(n_workers),
        limits=np.zeros(n_workers),
        rare=np.zeros(n_workers),
    )


@njit(cache=True)
def plan(
    chunk: Chunk,
    flows: Flows,
    n: int,
    n_split: int,
    frequency: NDArray[np.float32],
    offsets: NDArray[np.float64],
    tolerance: float,
    slack: float,
    chance: float,
    most: int,
    rounding: float,
) -> int:
    """Give every flow its quota of the chunk's first `n` distinct keys; flows are added where a worker overflows.

    `place` comes first and says how many are split. `chunk.loads` holds what is fixed, `chunk.targets` what each worker
    should get. A worker may have its target × (1 + tolerance), the part `chance` of what rare keys bring it above their
    mean, and `slack` standard deviations of what the others bring; `offsets` is added to its load, and `most` is the
    cap on a key's replicas. Returns the number of split keys.
    """
    for worker in range(len(chunk.loads)):
        chunk.loads[worker] += offsets[worker]
    _order(chunk, n_split)
    _level(chunk, flows, n_split, rounding)
    if _overflows(chunk, flows, n_split, tolerance, slack, chance):
        n_split = _spill(chunk, flows, n, n_split, frequency, slack, most)
    for worker in range(len(chunk.loads)):
        chunk.loads[worker] -= offsets[worker]
    return n_split


@njit(cache=True)
def place(chunk: Chunk, flows: Flows, n: int) -> int:
    """Send home what is not split, on top of `chunk.loads`; list the split keys and return their number."""
    mean = 0.0
    for target in chunk.targets:
        mean += target / len(chunk.targets)
    n_split = 0
    chunk.noise[:] = chunk.loads
    chunk.rare[:] = 0.0
    for j in range(n):
        slot = slot_of(chunk.keys[j], flows.keys, flows.table)
        chunk.slots[j] = slot
        if slot >= 0:
            chunk.order[n_split] = j
            n_split += 1
            continue
        count, home = chunk.counts[j], chunk.homes[j]
        chunk.loads[home] += count
        if count <= _RARE:
            chunk.rare[home] += count
            continue
        # The variance of a count is the count. A key that will have to be split shares its own among workers.
        chunk.noise[home] += count if count <= mean else mean * mean / count
    return n_split


@njit(cache=True)
def _order(chunk: Chunk, n_split: int) -> None:
    """Split keys by falling count, to the power of two."""
    starts = np.zeros(66, np.int64)
    for a in range(n_split):
        starts[64 - _magnitude(chunk.counts[chunk.order[a]])] += 1
    total = 0
    for i in range(66):
        starts[i], total = total, total + starts[i]
    for a in range(n_split):
        at = 64 - _magnitude(chunk.counts[chunk.order[a]])
        chunk.sorted[starts[at]] = chunk.order[a]
        starts[at] += 1
    chunk.order[:n_split] = chunk.sorted[:n_split]


@njit(cache=True, inline="always")
def _magnitude(count: int) -> int:
    bits = 0
    while count > 0:
        count >>= 1
        bits += 1
    return bits


@njit(cache=True)
def _level(chunk: Chunk, flows: Flows, n_split: int, rounding: float) -> None:
    """Choose quotas so that loads are level: sweeps over the heavy keys from where the last chunk left them."""
    fixed = chunk.loads.copy()
    heavy = 0
    mean = chunk.targets.mean()
    while heavy < n_split and chunk.counts[chunk.order[heavy]] >= _LEVELLED * mean:
        j = chunk.order[heavy]
        _resume(chunk, flows, chunk.slots[j], float(chunk.counts[j]))
        heavy += 1
    for _ in range(_SWEEPS):
        for a in range(heavy - 1, -1, -1):
            j = chunk.order[a]
            _pour(chunk, flows, chunk.slots[j], float(chunk.counts[j]))
    for a in range(n_split - 1, -1, -1):
        j = chunk.order[a]
        slot, count = chunk.slots[j], chunk.counts[j]
        if a >= heavy:
            _resume(chunk, flows, slot, 0.0)
        _pour(chunk, flows, slot, float(count))
        _round(chunk, flows, slot, count, rounding)
        flows.heat[slot] = decayed(flows, slot) + count
        flows.seen[slot] = flows.counts[CHUNKS]
    _add_up(chunk, flows, n_split, fixed)


@njit(cache=True)
def _add_up(chunk: Chunk, flows: Flows, n_split: int, fixed: NDArray[np.float64]) -> None:
    """Loads from whole tuples: after so many fractions, room for one tuple would be room for 0.999… of it."""
    chunk.loads[:] = fixed
    for a in range(n_split):
        flow = flows.first[chunk.slots[chunk.order[a]]]
        while flow >= 0:
            chunk.loads[flows.workers[flow]] += flows.quotas[flow]
            flow = flows.following[flow]


@njit(cache=True)
def _resume(chunk: Chunk, flows: Flows, slot: int, count: float) -> None:
    """Place a key as in the last chunk."""
    total = 0.0
    flow = flows.first[slot]
    while flow >= 0:
        total += flows.parts[flow]
        flow = flows.following[flow]
    flow = flows.first[slot]
    while flow >= 0:
        volume = flows.parts[flow] / total * count if total > 0 else 0.0
        chunk.volumes[flow] = volume
        chunk.loads[flows.workers[flow]] += volume
        flow = flows.following[flow]


@njit(cache=True)
def _pour(chunk: Chunk, flows: Flows, slot: int, count: float) -> None:
    """Take a key up and pour it over its flows like water: the lowest workers rise to one level."""
    water, width = count, 0.0
    flow = flows.first[slot]
    while flow >= 0:
        worker = flows.workers[flow]
        chunk.loads[worker] -= chunk.volumes[flow]
        water += chunk.loads[worker]
        width += chunk.targets[worker]
        flow = flows.following[flow]
    level = water / width
    while True:
        water, width = count, 0.0
        flow = flows.first[slot]
        while flow >= 0:
            worker = flows.workers[flow]
            if chunk.loads[worker] < level * chunk.targets[worker]:
                water += chunk.loads[worker]
                width += chunk.targets[worker]
            flow = flows.following[flow]
        if width <= 0.0 or water / width >= level - 1e-9:
            break
        level = water / width
    flow = flows.first[slot]
    while flow >= 0:
        worker = flows.workers[flow]
        volume = max(0.0, level * chunk.targets[worker] - chunk.loads[worker])
        chunk.volumes[flow] = volume
        chunk.loads[worker] += volume
        flow = flows.following[flow]


@njit(cache=True)
def _round(chunk: Chunk, flows: Flows, slot: int, count: int, rounding: float) -> None:
    """Whole tuples out of volumes, so that no sum along the flows is off by one or more."""
    poured, given = rounding, 0
    flow = flows.first[slot]
    last = flow
    while flow >= 0:
        volume = chunk.volumes[flow]
        poured += volume
        quota = max(0, min(int(poured) - given, count - given))
        given += quota
        if volume > 0.0:
            last = flow
        flows.quotas[flow] = quota
        chunk.loads[flows.workers[flow]] += quota - volume
        flow = flows.following[flow]
    flows.quotas[last] += count - given
    chunk.loads[flows.workers[last]] += count - given
    flow = flows.first[slot]
    while flow >= 0:
        flows.parts[flow] = flows.quotas[flow] / count
        flow = flows.following[flow]


@njit(cache=True)
def _overflows(chunk: Chunk, flows: Flows, n_split: int, tolerance: float, slack: float, chance: float) -> bool:
    """Set the limits; whether a worker is above its own."""
    if slack > 0.0:
        for a in range(n_split):
            j = chunk.order[a]
            flow = flows.first[chunk.slots[j]]
            while flow >= 0:
                quota = float(flows.quotas[flow])
                chunk.noise[flows.workers[flow]] += quota * quota / chunk.counts[j]
                flow = flows.following[flow]
    found = False
    rare = chunk.rare.sum() / max(1.0, chunk.targets.sum())
    for worker in range(len(chunk.loads)):
        target = chunk.targets[worker]
        chunk.noise[worker] = slack * np.sqrt(chunk.noise[worker])
        chunk.noise[worker] += chance * max(0.0, chunk.rare[worker] - rare * target)
        limit = target * (1.0 + tolerance) + chunk.noise[worker]
        chunk.limits[worker] = np.ceil(limit) if slack == 0.0 else max(limit, np.ceil(target))
        over = chunk.loads[worker] > chunk.limits[worker] + 1e-9
        # −1: not overloaded; −2: an empty list.
        chunk.heads[worker] = -2 if over else -1
        found = found or over
    return found


@njit(cache=True)
def _spill(
    chunk: Chunk, flows: Flows, n: int, n_split: int, frequency: NDArray[np.float32], slack: float, most: int
) -> int:
    """Overloaded workers, the fullest first, hand on what they have of their most frequent keys."""
    n_keys = len(chunk.keys)
    for j in range(n):
        home = chunk.homes[j]
        if chunk.slots[j] < 0 and chunk.heads[home] != -1:
            chunk.links[j] = chunk.heads[home]
            chunk.heads[home] = j
    for a in range(n_split):
        j = chunk.order[a]
        flow = flows.first[chunk.slots[j]]
        while flow >= 0:
            worker = flows.workers[flow]
            if flows.quotas[flow] > 0 and chunk.heads[worker] != -1:
                chunk.owners[flow] = j
                chunk.links[n_keys + flow] = chunk.heads[worker]
                chunk.heads[worker] = n_keys + flow
            flow = flows.following[flow]
    over = np.flatnonzero(chunk.heads != -1)
    for worker in over[np.argsort(-chunk.loads[over], kind="mergesort")]:
        # Hysteresis: down to the target, not to the limit.
        goal = min(chunk.limits[worker], np.ceil(chunk.targets[worker] + 0.5 * chunk.noise[worker]))
        while chunk.loads[worker] > goal:
            item = _most_frequent(chunk, flows, worker, frequency)
            if item < 0:
                break
            n_split = _hand_on(chunk, flows, item, worker, goal, n_split, most)
    return n_split


@njit(cache=True)
def _most_frequent(chunk: Chunk, flows: Flows, worker: int, frequency: NDArray[np.float32]) -> int:
    """Take the key that comes most often in the long run from a worker's list: a replica of it will be of use again."""
    n_keys, mask = len(chunk.keys), len(frequency) - 1
    best, before_best, most = -1, -1, np.float32(-1.0)
    before, item = -1, chunk.heads[worker]
    while item >= 0:
        j = item if item < n_keys else chunk.owners[item - n_keys]
        often = frequency[cell_of(chunk.keys[j], mask)]
        if often > most:
            best, before_best, most = item, before, often
        before, item = item, chunk.links[item]
    if best >= 0 and before_best < 0:
        chunk.heads[worker] = chunk.links[best]
    elif best >= 0:
        chunk.links[before_best] = chunk.links[best]
    return best


@njit(cache=True, inline="always")
def cell_of(key: np.uint64, mask: int) -> int:
    """Where a key's frequency is counted."""
    return int(key >> np.uint64(11)) & mask


@njit(cache=True)
def _hand_on(chunk: Chunk, flows: Flows, item: int, worker: int, goal: float, n_split: int, most: int) -> int:
    """New flows for one key, along its own sequence of candidates: sources that see alike choose alike."""
    n_keys = len(chunk.keys)
    j = item if item < n_keys else chunk.owners[item - n_keys]
    left = chunk.counts[j] if item < n_keys else flows.quotas[item - n_keys]
    for picky in (True, False):
        # Thin flows are for what would stay above the limit otherwise.
        aim = goal if picky else chunk.limits[worker]
        candidate = start = chunk.homes[j]
        for _ in range(1, len(chunk.loads)):
            candidate, start = next_candidate(candidate, start, chunk.steps[j], len(chunk.loads))
            if left <= 0 or chunk.loads[worker] <= aim:
                break
            moved = _room(chunk, candidate, min(chunk.loads[worker] - aim, float(left)), picky)
            if candidate == worker or moved < 1:
                continue
            if chunk.slots[j] < 0 and not _split(chunk, flows, j, most):
                return n_split
            if item < n_keys:
                chunk.order[n_split] = j
                n_split += 1
                item = n_keys + flows.first[chunk.slots[j]]
            flow = flow_to(flows, chunk.slots[j], candidate)
            if flow < 0 and flows.sizes[chunk.slots[j]] < most:
                flow = extend(flows, chunk.slots[j], candidate)
            if flow < 0:
                continue
            moved = min(moved, left)
            left -= moved
            _move(chunk, flows, item - n_keys, flow, moved, chunk.counts[j])
    return n_split


@njit(cache=True)
def _split(chunk: Chunk, flows: Flows, j: int, most: int) -> bool:
    slot = split(flows, chunk.keys[j], chunk.homes[j]) if most > 1 else -1
    chunk.slots[j] = slot
    if slot >= 0:
        flows.quotas[flows.first[slot]] = chunk.counts[j]
        flows.heat[slot] = chunk.counts[j]
    return slot >= 0


@njit(cache=True)
def _move(chunk: Chunk, flows: Flows, source: int, flow: int, moved: int, count: int) -> None:
    flows.quotas[flow] += moved
    flows.quotas[source] -= moved
    flows.parts[flow] = flows.quotas[flow] / count
    flows.parts[source] = flows.quotas[source] / count
    chunk.loads[flows.workers[source]] -= moved
    chunk.loads[flows.workers[flow]] += moved


@njit(cache=True)
def _room(chunk: Chunk, worker: int, wanted: float, picky: bool) -> int:
    """Tuples that a worker can take of those wanted."""
    load, target = chunk.loads[worker], chunk.targets[worker]
    room = np.ceil(target) - load
    if not picky:
        return int(min(np.ceil(wanted), np.floor(room)))
    if wanted <= _SMALL * target and load + wanted <= 0.5 * (target + chunk.limits[worker]):
        return int(np.ceil(wanted))
    if room < 1.0 or room < _WORTHWHILE * min(wanted, target):
        return 0
    return int(min(np.ceil(wanted), np.ceil(target - load)))
