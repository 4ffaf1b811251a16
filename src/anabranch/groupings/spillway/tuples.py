"""What Spillway does tuple by tuple: count a chunk before its plan, and route it afterwards."""

from __future__ import annotations

from anabranch.arrays import F32, I32, I64, U64
from anabranch.containers.slot_table import home as probe_from
from anabranch.groupings.spillway.chunk import Chunk
from anabranch.groupings.spillway.flows import Flows
from anabranch.groupings.spillway.spill import cell_of
from anabranch.kernels import njit


@njit(cache=True)
def count(keys: U64, table: I32, found: U64, counts: I64, index: I32) -> int:
    """Count the chunk exactly; the number of distinct keys."""
    mask = len(table) - 1
    table[:] = 0
    n = 0
    for i in range(len(keys)):
        key = keys[i]
        at = probe_from(key, mask)
        while True:
            j = table[at]
            if j == 0:
                found[n] = key
                counts[n] = 1
                index[i] = n
                n += 1
                table[at] = n
                break
            if found[j - 1] == key:
                counts[j - 1] += 1
                index[i] = j - 1
                break
            at = (at + 1) & mask
    return n


@njit(cache=True)
def remember(chunk: Chunk, n: int, frequency: F32) -> int:
    """Add the chunk to the long-run counters; the number of counters that are in use from now on."""
    fresh, mask = 0, len(frequency) - 1
    for j in range(n):
        cell = cell_of(chunk.keys[j], mask)
        fresh += frequency[cell] == 0.0
        frequency[cell] += chunk.counts[j]
    return fresh


@njit(cache=True)
def deal(chunk: Chunk, flows: Flows, n_split: int, out: I32) -> None:
    """Route: whole keys home, split ones in turn to each of their flows that has some of its quota left."""
    _list_flows(chunk, flows, n_split)
    index, homes, slots, dealt = chunk.index_of, chunk.homes, chunk.slots, chunk.dealt
    starts, lengths, turns, workers, quotas = chunk.starts, chunk.lengths, chunk.turns, flows.workers, flows.quotas
    for i in range(len(out)):
        j = index[i]
        if slots[j] < 0:
            out[i] = homes[j]
            continue
        turn = turns[j]
        flow = dealt[turn]
        out[i] = workers[flow]
        quotas[flow] -= 1
        if quotas[flow] == 0:
            lengths[j] -= 1
            dealt[turn] = dealt[starts[j] + lengths[j]]
        else:
            turn += 1
        turns[j] = turn if turn < starts[j] + lengths[j] else starts[j]


@njit(cache=True)
def _list_flows(chunk: Chunk, flows: Flows, n_split: int) -> None:
    """List the flows that each split key is dealt out to."""
    at = 0
    for a in range(n_split):
        j = chunk.order[a]
        chunk.starts[j] = chunk.turns[j] = at
        flow = flows.first[chunk.slots[j]]
        while flow >= 0:
            if flows.quotas[flow] > 0:
                chunk.dealt[at] = flow
                at += 1
            flow = flows.following[flow]
        chunk.lengths[j] = at - chunk.starts[j]
