"""Kernels that move the keys of one operator between servers.

All take numbers of vertices, the edges of the graph (`offsets`, `neighbours`, `counts`), the `weights` of all vertices,
the operator's `limit` and `loads`, and the `servers` of all vertices. They change the last two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels import njit


@njit(cache=True)
def settle(
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    counts: NDArray[np.int64],
    weights: NDArray[np.int64],
    limit: NDArray[np.int64],
    loads: NDArray[np.int64],
    servers: NDArray[np.int32],
) -> None:
    """The server with most of a key's tuples that has room; if none has room, the least loaded."""
    gains = np.zeros(len(loads), dtype=np.int64)
    for v in order:
        gains[:] = 0
        for e in range(offsets[v], offsets[v + 1]):
            if servers[neighbours[e]] >= 0:
                gains[servers[neighbours[e]]] += counts[e]
        best = -1
        for s in range(len(loads)):
            if loads[s] + weights[v] <= limit[0] and (
                best < 0 or gains[s] > gains[best] or (gains[s] == gains[best] and loads[s] < loads[best])
            ):
                best = s
        if best < 0:
            best = int(np.argmin(loads))
        servers[v] = best
        loads[best] += weights[v]


@njit(cache=True)
def losses(
    numbers: NDArray[np.int64],
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    counts: NDArray[np.int64],
    weights: NDArray[np.int64],
    limit: NDArray[np.int64],
    loads: NDArray[np.int64],
    servers: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Tuples that stop being local, for each tuple of load, when a key moves to its second-best server."""
    gains = np.zeros(len(loads), dtype=np.int64)
    for i in range(len(numbers)):
        v = numbers[i]
        gains[:] = 0
        for e in range(offsets[v], offsets[v + 1]):
            if servers[neighbours[e]] >= 0:
                gains[servers[neighbours[e]]] += counts[e]
        own = gains[servers[v]]
        gains[servers[v]] = 0
        out[i] = (own - gains.max()) / weights[v]


@njit(cache=True)
def relieve(
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    counts: NDArray[np.int64],
    weights: NDArray[np.int64],
    limit: NDArray[np.int64],
    loads: NDArray[np.int64],
    servers: NDArray[np.int32],
) -> None:
    """Move keys away from servers above the limit, as long as they are, to the best server that has room."""
    gains = np.zeros(len(loads), dtype=np.int64)
    for v in order:
        own = servers[v]
        if loads[own] <= limit[0]:
            continue
        gains[:] = 0
        for e in range(offsets[v], offsets[v + 1]):
            if servers[neighbours[e]] >= 0:
                gains[servers[neighbours[e]]] += counts[e]
        best = -1
        for s in range(len(loads)):
            if s == own or loads[s] + weights[v] > limit[0]:
                continue
            if best < 0 or gains[s] > gains[best] or (gains[s] == gains[best] and loads[s] < loads[best]):
                best = s
        if best >= 0:
            servers[v] = best
            loads[own] -= weights[v]
            loads[best] += weights[v]


@njit(cache=True)
def common(
    heavy: NDArray[np.int64],
    bins: NDArray[np.int32],
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    counts: NDArray[np.int64],
    weights: NDArray[np.int64],
    limit: NDArray[np.int64],
    loads: NDArray[np.int64],
    servers: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None:
    """Tuples that keys of each bin share with the other operators' keys on each server."""
    for i in range(len(heavy)):
        for e in range(offsets[heavy[i]], offsets[heavy[i] + 1]):
            if servers[neighbours[e]] >= 0:
                out[bins[i], servers[neighbours[e]]] += counts[e]


@njit(cache=True)
def sweep(
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    neighbours: NDArray[np.int32],
    counts: NDArray[np.int64],
    weights: NDArray[np.int64],
    limit: NDArray[np.int64],
    loads: NDArray[np.int64],
    servers: NDArray[np.int32],
) -> int:
    """Every key to the server with most of its tuples, if that has room; the tuples that have become local."""
    gains = np.zeros(len(loads), dtype=np.int64)
    gained = 0
    for v in order:
        own = servers[v]
        for e in range(offsets[v], offsets[v + 1]):
            gains[servers[neighbours[e]]] += counts[e]
        best = own
        for e in range(offsets[v], offsets[v + 1]):
            s = servers[neighbours[e]]
            if gains[s] > gains[best] and loads[s] + weights[v] <= limit[0]:
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
