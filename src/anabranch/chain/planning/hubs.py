"""Hubs: heavy keys that change places, and take the keys of other operators with them."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.chain.planning.graph import KeyGraph
from anabranch.kernels import njit

# Keys of an operator that are tried with all others, and entries of the table that says what their neighbours gain.
_MOST_HUBS = 400
_MOST_ENTRIES = 20_000_000
# Edges looked at: about a third of a second.
_BUDGET = 40_000_000


def hubs_of(graph: KeyGraph, operator: int, heavy: I64) -> I64:
    """Vertices of an operator that are worth exchanging: all if they are few, else the heaviest, which fit nowhere."""
    at = graph.vertices(operator)
    if at.stop - at.start <= _MOST_HUBS:
        return np.arange(at.start, at.stop, dtype=np.int64)
    found: I64 = heavy[:_MOST_HUBS] + at.start
    return found


def exchange(graph: KeyGraph, hubs: I64, limit: int, loads: I64, servers: I32) -> I32 | None:
    """Move and exchange hubs while their neighbours, which follow to wherever most of their tuples are, gain.

    A heavy key on its own is stuck: where it is, its neighbours are too, and no other server has room for it. So two of
    them are exchanged, and what counts is how local the neighbours would be if each were free to follow. Gives the
    server that each vertex would follow to, −1 for those without a hub; None where there is nothing to do.
    """
    n_servers = len(loads)
    if len(hubs) < 2 or n_servers < 2 or len(servers) * n_servers > _MOST_ENTRIES:
        return None
    shared = np.zeros((len(servers), n_servers), dtype=np.int64)
    _share(graph.offsets, graph.neighbours, graph.counts, servers, shared)
    if not _improve(hubs, graph.offsets, graph.neighbours, graph.counts, graph.weights, limit, loads, servers, shared):
        return None
    follow = np.full(len(servers), -1, dtype=np.int32)
    for hub in hubs:
        near = graph.neighbours[graph.offsets[hub] : graph.offsets[hub + 1]]
        follow[near] = np.argmax(shared[near], axis=1)
    return follow


@njit(cache=True)
def _share(offsets: I64, neighbours: I32, counts: I64, servers: I32, shared: I64) -> None:
    """Tuples that each vertex shares with the vertices on each server."""
    for v in range(len(servers)):
        for e in range(offsets[v], offsets[v + 1]):
            shared[v, servers[neighbours[e]]] += counts[e]


@njit(cache=True)
def _shift(hub: int, origin: int, target: int, offsets: I64, neighbours: I32, counts: I64, shared: I64) -> int:
    """Move a hub in `shared`; what its neighbours gain if each follows to the best server."""
    gained = 0
    for e in range(offsets[hub], offsets[hub + 1]):
        row = shared[neighbours[e]]
        before = row[0]
        for s in range(1, len(row)):
            before = max(before, row[s])
        row[origin] -= counts[e]
        row[target] += counts[e]
        after = row[0]
        for s in range(1, len(row)):
            after = max(after, row[s])
        gained += after - before
    return gained


@njit(cache=True)
def _improve(
    hubs: I64,
    offsets: I64,
    neighbours: I32,
    counts: I64,
    weights: I64,
    limit: int,
    loads: I64,
    servers: I32,
    shared: I64,
) -> bool:
    """Exchange hubs, or move one alone, as long as that gains and the budget lasts; whether anything has changed."""
    changed = False
    improved = True
    spent = 0
    while improved and spent < _BUDGET:
        improved = False
        for i in hubs:
            for target in range(len(loads)):
                origin = servers[i]
                if target == origin:
                    continue
                spent += 2 * (offsets[i + 1] - offsets[i])
                gained = _shift(i, origin, target, offsets, neighbours, counts, shared)
                best, partner = (gained, -1) if loads[target] + weights[i] <= limit else (0, -2)
                for j in hubs:
                    less = weights[i] - weights[j]
                    if servers[j] != target or loads[target] + less > limit or loads[origin] - less > limit:
                        continue
                    spent += 2 * (offsets[j + 1] - offsets[j])
                    both = gained + _shift(j, target, origin, offsets, neighbours, counts, shared)
                    _shift(j, origin, target, offsets, neighbours, counts, shared)
                    if both > best:
                        best, partner = both, j
                if best <= 0 or partner == -2:
                    _shift(i, target, origin, offsets, neighbours, counts, shared)
                    continue
                servers[i] = target
                loads[origin] -= weights[i]
                loads[target] += weights[i]
                if partner >= 0:
                    _shift(partner, target, origin, offsets, neighbours, counts, shared)
                    servers[partner] = origin
                    loads[target] -= weights[partner]
                    loads[origin] += weights[partner]
                changed = improved = True
    return changed
