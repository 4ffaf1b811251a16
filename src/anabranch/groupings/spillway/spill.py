"""Spillway's plan for one chunk: existing flows level the workers, heavy keys displace them, what is left spills.

Loads, targets and limits are in tuples of the chunk.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F32, F64, I32, I64, U64
from anabranch.groupings.spillway.allowance import Allowance
from anabranch.groupings.spillway.chunk import Chunk
from anabranch.groupings.spillway.displace import displace
from anabranch.groupings.spillway.flows import Flows, extend, flow_to, slot_of
from anabranch.groupings.spillway.level import level, warm
from anabranch.groupings.spillway.moves import RARE, goal_of, move, own_variance, split_key
from anabranch.hashing.family import next_candidate
from anabranch.kernels import njit

# A new flow must have room for this part of what it is to carry, or flows become many and thin.
_WORTHWHILE = 0.25
# What is less than this part of a target may go where there is no room below the target, but below the limit.
_SMALL = 0.1


@njit(cache=True)
def plan(
    chunk: Chunk,
    flows: Flows,
    n: int,
    n_split: int,
    frequency: F32,
    offsets: F64,
    allowance: Allowance,
    most: int,
    rounding: float,
) -> int:
    """Give every flow its quota of the chunk's first `n` distinct keys; flows are added where a worker overflows.

    `place` comes first and says how many are split. `chunk.loads` holds what is fixed, `chunk.targets` what each worker
    should get and `allowance` how much more it may have; `offsets` is added to its load, and `most` is the cap on a
    key's replicas. Returns the number of split keys.
    """
    # Out of the tuple once: in a loop its references would be counted each time.
    loads = chunk.loads
    for worker in range(len(loads)):
        loads[worker] += offsets[worker]
    level(chunk, flows, n_split, rounding)
    warm(chunk, flows, n_split)
    over = _overflows(chunk, flows, n_split, allowance)
    if over:
        before, n_split = n_split, displace(chunk, flows, n, n_split, most, allowance.slack == 0.0)
        if n_split > before:
            level(chunk, flows, n_split, rounding)
            over = _overflows(chunk, flows, n_split, allowance)
    if over:
        n_split = _spill(chunk, flows, n, n_split, frequency, most)
    for worker in range(len(loads)):
        loads[worker] -= offsets[worker]
    return n_split


@njit(cache=True)
def place(chunk: Chunk, flows: Flows, n: int) -> int:
    """Send home what is not split, on top of `chunk.loads`; list the split keys and return their number."""
    keys, counts, homes, slots, order = chunk.keys, chunk.counts, chunk.homes, chunk.slots, chunk.order
    loads, variance, rare, split_keys, table = chunk.loads, chunk.variance, chunk.rare, flows.keys, flows.table
    mean = chunk.targets.mean()
    n_split = 0
    variance[:] = loads
    rare[:] = 0.0
    for j in range(n):
        slot = slot_of(keys[j], split_keys, table)
        slots[j] = slot
        if slot >= 0:
            order[n_split] = j
            n_split += 1
            continue
        count, home = counts[j], homes[j]
        loads[home] += count
        if count <= RARE:
            rare[home] += count
        else:
            variance[home] += own_variance(count, mean)
    return n_split


@njit(cache=True)
def _overflows(chunk: Chunk, flows: Flows, n_split: int, allowance: Allowance) -> bool:
    """Set the limits; whether a worker is above its own."""
    tolerance, slack, chance = allowance
    loads, targets, limits, noise, heads = chunk.loads, chunk.targets, chunk.limits, chunk.noise, chunk.heads
    if slack > 0.0:
        noise[:] = chunk.variance
        _add_noise(chunk, flows.quotas, n_split)
    found, rare, usual = False, chunk.rare, chunk.usual
    for worker in range(len(loads)):
        target = targets[worker]
        # Without slack no root is taken: it would be most of the work here.
        noise[worker] = slack * np.sqrt(noise[worker]) if slack > 0.0 else 0.0
        noise[worker] += chance * max(0.0, rare[worker] - usual[worker])
        limit = target * (1.0 + tolerance) + noise[worker]
        # What rounding adds to a whole number must not become a tuple.
        limits[worker] = np.ceil(limit - 1e-9) if slack == 0.0 else max(limit, np.ceil(target))
        over = loads[worker] > limits[worker] + 1e-9
        # −1: not overloaded; −2: an empty list.
        heads[worker] = -2 if over else -1
        found = found or over
    return found


@njit(cache=True)
def _add_noise(chunk: Chunk, quotas: I64, n_split: int) -> None:
    """Variance of what split keys bring: a key's own, shared like the key."""
    order, counts, starts, lengths = chunk.order, chunk.counts, chunk.starts, chunk.lengths
    dealt, towards, noise = chunk.dealt, chunk.towards, chunk.noise
    for a in range(n_split):
        j = order[a]
        for at in range(starts[j], starts[j] + lengths[j]):
            quota = float(quotas[dealt[at]])
            noise[towards[at]] += quota * quota / counts[j]


@njit(cache=True)
def _spill(chunk: Chunk, flows: Flows, n: int, n_split: int, frequency: F32, most: int) -> int:
    """Overloaded workers, the fullest first, hand on what they have of their most frequent keys."""
    loads, heads, links, keys, owners = chunk.loads, chunk.heads, chunk.links, chunk.keys, chunk.owners
    _list_keys(heads, chunk.homes, chunk.slots, links, n)
    _list_flows(chunk, flows.quotas, n_split)
    over = np.flatnonzero(heads != -1)
    for worker in over[np.argsort(-loads[over], kind="mergesort")]:
        goal = goal_of(chunk.limits[worker], chunk.targets[worker], chunk.noise[worker])
        while loads[worker] > goal:
            item = _most_frequent(heads, links, keys, owners, worker, frequency)
            if item < 0:
                break
            n_split = _hand_on(chunk, flows, item, worker, goal, n_split, most)
    return n_split


@njit(cache=True)
def _list_keys(heads: I32, homes: I32, slots: I32, links: I32, n: int) -> None:
    """Put whole keys on the lists of overloaded workers."""
    for j in range(n):
        # Unsigned, or numba would look for negative indices.
        home = np.uint32(homes[j])
        if heads[home] != -1 and slots[j] < 0:
            links[j] = heads[home]
            heads[home] = j


@njit(cache=True)
def _list_flows(chunk: Chunk, quotas: I64, n_split: int) -> None:
    """Put flows on the lists of overloaded workers, with the number of the flow behind those of all keys."""
    order, starts, lengths, dealt, towards = chunk.order, chunk.starts, chunk.lengths, chunk.dealt, chunk.towards
    heads, links, owners, n_keys = chunk.heads, chunk.links, chunk.owners, len(chunk.keys)
    for a in range(n_split):
        j = order[a]
        for at in range(starts[j], starts[j] + lengths[j]):
            worker, flow = towards[at], dealt[at]
            if heads[worker] != -1 and quotas[flow] > 0:
                owners[flow] = j
                links[n_keys + flow] = heads[worker]
                heads[worker] = n_keys + flow


@njit(cache=True)
def _most_frequent(heads: I32, links: I32, keys: U64, owners: I32, worker: int, frequency: F32) -> int:
    """Take the key that comes most often in the long run from a worker's list: a replica of it will be of use again."""
    n_keys, mask = len(keys), len(frequency) - 1
    best, before_best, most = -1, -1, np.float32(-1.0)
    before, item = -1, heads[worker]
    while item >= 0:
        j = item if item < n_keys else owners[item - n_keys]
        often = frequency[cell_of(keys[j], mask)]
        if often > most:
            best, before_best, most = item, before, often
        before, item = item, links[item]
    if best >= 0 and before_best < 0:
        heads[worker] = links[best]
    elif best >= 0:
        links[before_best] = links[best]
    return best


@njit(cache=True, inline="always")
def cell_of(key: np.uint64, mask: int) -> int:
    """Where a key's frequency is counted."""
    return int(key >> np.uint64(11)) & mask


@njit(cache=True)
def _hand_on(chunk: Chunk, flows: Flows, item: int, worker: int, goal: float, n_split: int, most: int) -> int:
    """New flows for one key, along its own sequence of candidates: sources that see alike choose alike."""
    n_keys, loads = len(chunk.keys), chunk.loads
    j = item if item < n_keys else chunk.owners[item - n_keys]
    left = chunk.counts[j] if item < n_keys else flows.quotas[item - n_keys]
    for picky in (True, False):
        # Thin flows are for what would stay above the limit otherwise.
        aim = goal if picky else chunk.limits[worker]
        candidate = start = chunk.homes[j]
        tries = len(loads) - 1
        while left > 0 and loads[worker] > aim:
            wanted = min(loads[worker] - aim, float(left))
            place = (candidate, start, chunk.steps[j], tries)
            candidate, start, tries, moved = _next_with_room(
                *place, worker, loads, chunk.targets, chunk.limits, wanted, picky
            )
            if moved < 1:
                break
            if chunk.slots[j] < 0 and not split_key(chunk, flows, j, most):
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
            move(chunk, flows, item - n_keys, flow, moved, chunk.counts[j])
    return n_split


@njit(cache=True)
def _next_with_room(
    candidate: int,
    start: int,
    step: int,
    tries: int,
    overloaded: int,
    loads: F64,
    targets: F64,
    limits: F64,
    wanted: float,
    picky: bool,
) -> tuple[int, int, int, int]:
    """Go on to the next candidate that can take some of what is wanted: where it is, tries left, and how much."""
    while tries > 0:
        tries -= 1
        candidate, start = next_candidate(candidate, start, step, len(loads))
        if candidate != overloaded:
            room = _room(loads[candidate], targets[candidate], limits[candidate], wanted, picky)
            if room >= 1:
                return candidate, start, tries, room
    return candidate, start, 0, 0


@njit(cache=True, inline="always")
def _room(load: float, target: float, limit: float, wanted: float, picky: bool) -> int:
    """Tuples that a worker can take of those wanted."""
    room = np.ceil(target) - load
    if not picky:
        return int(min(np.ceil(wanted), np.floor(room)))
    if wanted <= _SMALL * target and load + wanted <= 0.5 * (target + limit):
        return int(np.ceil(wanted))
    if room < 1.0 or room < _WORTHWHILE * min(wanted, target):
        return 0
    return int(min(np.ceil(wanted), np.ceil(target - load)))
