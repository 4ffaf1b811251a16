"""Flows: the keys that Spillway has split, and the workers that each of them flows to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I32, I64, U64
from anabranch.containers.slot_table import home as probe_from
from anabranch.kernels import njit

# Cells of `Flows.counts`.
SPLIT, FREE, N_FREE, CHUNKS = 0, 1, 2, 3
# Heat halves in so many chunks.
_HALF_LIFE = 10.0


class Flows(NamedTuple):
    """Split keys in slots, their flows in linked lists, all in flat arrays.

    Slot s holds the key `keys[s]`, `heat[s]` tuples (decayed, as of chunk `seen[s]`) and `sizes[s]` flows from
    `first[s]` on; the first leads home. Flow f leads to `workers[f]` and carries the share `parts[f]` of the
    key, `quotas[f]` tuples of the chunk in hand; `following[f]` is the next flow of its key, or the next free one.
    `counts` holds the slots in use, the first free flow, the number of free ones, and the chunks so far.
    """

    keys: U64
    first: I32
    sizes: I32
    heat: F64
    seen: I64
    table: I32
    workers: I32
    following: I32
    parts: F64
    quotas: I64
    counts: I64


def empty(capacity: int) -> Flows:
    """Room for `capacity` split keys, with four flows each on average."""
    n, size = 4 * capacity, 4
    while size < 4 * capacity:
        size *= 2
    following = np.arange(1, n + 1, dtype=np.int32)
    following[-1] = -1
    return Flows(
        keys=np.zeros(capacity, np.uint64),
        first=np.zeros(capacity, np.int32),
        sizes=np.zeros(capacity, np.int32),
        heat=np.zeros(capacity),
        seen=np.zeros(capacity, np.int64),
        table=np.zeros(size, np.int32),
        workers=np.zeros(n, np.int32),
        following=following,
        parts=np.zeros(n),
        quotas=np.zeros(n, np.int64),
        counts=np.array([0, 0, n, 0], np.int64),
    )


@njit(cache=True, inline="always")
def slot_of(key: np.uint64, keys: U64, table: I32) -> int:
    """Slot of a split key, −1 for any other."""
    mask = len(table) - 1
    at = probe_from(key, mask)
    while table[at] != 0:
        if keys[table[at] - 1] == key:
            return int(table[at]) - 1
        at = (at + 1) & mask
    return -1


@njit(cache=True)
def split(flows: Flows, key: np.uint64, home: int) -> int:
    """Slot for a key that is about to be split, with one flow: home. −1 where there is no room."""
    slot = flows.counts[SPLIT]
    if slot >= len(flows.keys) or flows.counts[N_FREE] < 2:
        return -1
    flows.counts[SPLIT] += 1
    flows.keys[slot] = key
    flows.first[slot] = -1
    flows.sizes[slot] = 0
    flows.heat[slot] = 0.0
    flows.seen[slot] = flows.counts[CHUNKS]
    _enter(flows, slot)
    flows.parts[extend(flows, slot, home)] = 1.0
    return int(slot)


@njit(cache=True)
def _enter(flows: Flows, slot: int) -> None:
    mask = len(flows.table) - 1
    at = probe_from(flows.keys[slot], mask)
    while flows.table[at] != 0:
        at = (at + 1) & mask
    flows.table[at] = slot + 1


@njit(cache=True)
def extend(flows: Flows, slot: int, worker: int) -> int:
    """A new flow of a split key, behind its first; −1 where there is no room."""
    flow = flows.counts[FREE]
    if flow < 0:
        return -1
    flows.counts[FREE] = flows.following[flow]
    flows.counts[N_FREE] -= 1
    flows.workers[flow] = worker
    flows.parts[flow] = 0.0
    flows.quotas[flow] = 0
    first = flows.first[slot]
    if first < 0:
        flows.first[slot] = flow
        flows.following[flow] = -1
    else:
        flows.following[flow] = flows.following[first]
        flows.following[first] = flow
    flows.sizes[slot] += 1
    return int(flow)


@njit(cache=True)
def flow_to(flows: Flows, slot: int, worker: int) -> int:
    """The flow of a split key that leads to `worker`, −1 where there is none."""
    flow = flows.first[slot]
    while flow >= 0 and flows.workers[flow] != worker:
        flow = flows.following[flow]
    return int(flow)


@njit(cache=True)
def decayed(flows: Flows, slot: int) -> float:
    """Heat of a split key now."""
    return float(flows.heat[slot] * decay(flows.counts[CHUNKS] - flows.seen[slot]))


@njit(cache=True, inline="always")
def decay(chunks: int) -> float:
    """What is left of heat after so many chunks."""
    return float(0.5 ** (min(chunks, 1000) / _HALF_LIFE))


@njit(cache=True)
def make_room(flows: Flows) -> None:
    """Forget the colder half of the split keys when slots or flows run out; they go home from then on."""
    n = flows.counts[SPLIT]
    if n < len(flows.keys) - len(flows.keys) // 8 and flows.counts[N_FREE] > len(flows.workers) // 8:
        return
    heat = np.empty(n)
    for slot in range(n):
        heat[slot] = decayed(flows, slot)
    middle = np.median(heat)
    # Of keys as hot as the middle one, as many as make a half.
    ties = n // 2 - np.sum(heat > middle)
    kept = 0
    for slot in range(n):
        tied = heat[slot] == middle and ties > 0
        ties -= tied
        if heat[slot] > middle or tied:
            flows.keys[kept] = flows.keys[slot]
            flows.first[kept] = flows.first[slot]
            flows.sizes[kept] = flows.sizes[slot]
            flows.heat[kept] = flows.heat[slot]
            flows.seen[kept] = flows.seen[slot]
            kept += 1
            continue
        flow = flows.first[slot]
        while flow >= 0:
            following = flows.following[flow]
            flows.following[flow] = flows.counts[FREE]
            flows.counts[FREE] = flow
            flows.counts[N_FREE] += 1
            flow = following
    flows.counts[SPLIT] = kept
    flows.table[:] = 0
    for slot in range(kept):
        _enter(flows, slot)


@njit(cache=True)
def _listed(flows: Flows, keys: U64, workers: I32, parts: F64, recent: int) -> int:
    n = 0
    for slot in range(flows.counts[SPLIT]):
        if flows.counts[CHUNKS] - flows.seen[slot] > recent:
            continue
        flow = flows.first[slot]
        while flow >= 0:
            keys[n], workers[n], parts[n] = flows.keys[slot], flows.workers[flow], flows.parts[flow]
            n += 1
            flow = flows.following[flow]
    return n


def listed(flows: Flows, recent: int = 2**40) -> tuple[U64, I32, F64]:
    """Key, worker and share of every flow; of keys that were seen in the last `recent` chunks."""
    n = len(flows.workers)
    keys, workers, parts = np.empty(n, np.uint64), np.empty(n, np.int32), np.empty(n)
    n = _listed(flows, keys, workers, parts, recent)
    return keys[:n], workers[:n], parts[:n]


@njit(cache=True)
def learn(flows: Flows, keys: U64, homes: I32, workers: I32, parts: F64, most: int) -> None:
    """Add flows (key by key) that others made, `most` a key. One that was split already keeps its own shares."""
    known = True
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[i - 1]:
            known = slot_of(keys[i], flows.keys, flows.table) >= 0
        slot = slot_of(keys[i], flows.keys, flows.table)
        if slot < 0:
            slot = split(flows, keys[i], homes[i])
            if slot < 0:
                return
            flows.parts[flows.first[slot]] = 0.0
        flow = flow_to(flows, slot, workers[i])
        if flow < 0 and flows.sizes[slot] >= most:
            continue
        if flow < 0:
            flow = extend(flows, slot, workers[i])
            if flow < 0:
                return
        if not known:
            flows.parts[flow] = parts[i]
