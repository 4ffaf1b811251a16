"""Kernels that move the keys of one operator between servers. They change the state's loads and servers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.arrays import F64, I32, I64
from anabranch.kernels import njit


class State(NamedTuple):
    """A graph's edges, and how the keys of one operator are divided.

    `neighbours` and `counts` hold the edges of vertex v from `offsets[v]` to `offsets[v + 1]`. `weights` and `servers`
    are of all vertices, −1 for one without a server; `limit` and `loads` are the operator's.
    """

    offsets: I64
    neighbours: I32
    counts: I64
    weights: I64
    limit: int
    loads: I64
    servers: I32


@njit(cache=True)
def settle(order: I64, state: State) -> None:
    """The server with most of a key's tuples that has room; if none has room, the least loaded."""
    gains = np.zeros(len(state.loads), dtype=np.int64)
    for v in order:
        _gather(v, state, gains)
        best = _best(v, state, gains, -1)
        if best < 0:
            best = int(np.argmin(state.loads))
        state.servers[v] = best
        state.loads[best] += state.weights[v]


@njit(cache=True)
def losses(numbers: I64, state: State, out: F64) -> None:
    """Tuples that stop being local, for each tuple of load, when a key moves to its second-best server."""
    gains = np.zeros(len(state.loads), dtype=np.int64)
    for i in range(len(numbers)):
        v = numbers[i]
        _gather(v, state, gains)
        own = gains[state.servers[v]]
        gains[state.servers[v]] = 0
        out[i] = (own - gains.max()) / state.weights[v]


@njit(cache=True)
def relieve(order: I64, state: State) -> None:
    """Move keys away from servers above the limit, as long as they are, to the best server that has room."""
    loads = state.loads
    gains = np.zeros(len(loads), dtype=np.int64)
    for v in order:
        own = state.servers[v]
        if loads[own] <= state.limit:
            continue
        _gather(v, state, gains)
        best = _best(v, state, gains, own)
        if best >= 0:
            state.servers[v] = best
            loads[own] -= state.weights[v]
            loads[best] += state.weights[v]


@njit(cache=True)
def common(heavy: I64, bins: I32, state: State, out: I64) -> None:
    """Tuples that keys of each bin share with the other operators' keys on each server."""
    for i in range(len(heavy)):
        for e in range(state.offsets[heavy[i]], state.offsets[heavy[i] + 1]):
            server = state.servers[state.neighbours[e]]
            if server >= 0:
                out[bins[i], server] += state.counts[e]


@njit(cache=True)
def sweep(order: I64, state: State) -> int:
    """Every key to the server with most of its tuples, if that has room; the tuples that have become local."""
    offsets, neighbours, counts, weights, limit, loads, servers = state
    gains = np.zeros(len(loads), dtype=np.int64)
    gained = 0
    for v in order:
        own = servers[v]
        for e in range(offsets[v], offsets[v + 1]):
            gains[servers[neighbours[e]]] += counts[e]
        best = own
        for e in range(offsets[v], offsets[v + 1]):
            s = servers[neighbours[e]]
            if gains[s] > gains[best] and loads[s] + weights[v] <= limit:
                best = s
        if best != own:
            gained += gains[best] - gains[own]
            servers[v] = best
            loads[own] -= weights[v]
            loads[best] += weights[v]
        for e in range(offsets[v], offsets[v + 1]):
            gains[servers[neighbours[e]]] = 0
        gains[own] = 0
    return gained


@njit(cache=True)
def _gather(v: int, state: State, gains: I64) -> None:
    """Tuples of `v` that would be local on each server."""
    offsets, neighbours, counts, _, _, _, servers = state
    gains[:] = 0
    for e in range(offsets[v], offsets[v + 1]):
        server = servers[neighbours[e]]
        if server >= 0:
            gains[server] += counts[e]


@njit(cache=True)
def _best(v: int, state: State, gains: I64, excluded: int) -> int:
    """The server with room where most tuples of `v` would be local, of several the least loaded; −1 without room."""
    loads, room = state.loads, state.limit - state.weights[v]
    best = -1
    for s in range(len(loads)):
        if s == excluded or loads[s] > room:
            continue
        if best < 0 or gains[s] > gains[best] or (gains[s] == gains[best] and loads[s] < loads[best]):
            best = s
    return best
