"""Our own planner: the heaviest pair first."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.chain.planning.division import Division
from anabranch.chain.planning.graph import KeyGraph
from anabranch.kernels import njit


def divide(graph: KeyGraph, n_servers: int, alpha: float) -> Division:
    """Both keys of the heaviest pair to the emptiest server, then the next pair, while there is room; then improve.

    A pair with one key placed brings the other to the same server. What does not fit is placed at the end, with most of
    its tuples where there is room; then keys move to the server with most of their tuples until hardly any gains.
    """
    division = Division(graph, n_servers, alpha)
    first, second, counts = _edges(graph)
    order = np.argsort(-counts, kind="stable")
    limits = np.array([packing.limit for packing in division.packings], dtype=np.int64)
    _place(first[order], second[order], graph.operators, graph.weights, limits, division.loads, division.servers)
    division.finish()
    return division


def _edges(graph: KeyGraph) -> tuple[I64, I64, I64]:
    first = np.concatenate([hop.first + graph.starts[i] for i, hop in enumerate(graph.hops)])
    second = np.concatenate([hop.second + graph.starts[i + 1] for i, hop in enumerate(graph.hops)])
    return first, second, np.concatenate([hop.counts for hop in graph.hops])


@njit(cache=True)
def _place(first: I64, second: I64, operators: I32, weights: I64, limits: I64, loads: I64, servers: I32) -> None:
    for i in range(len(first)):
        a, b = first[i], second[i]
        if servers[a] >= 0 and servers[b] >= 0:
            continue
        if servers[a] < 0 and servers[b] < 0:
            best, least = -1, 0.0
            for s in range(loads.shape[1]):
                of_a = (loads[operators[a], s] + weights[a]) / max(limits[operators[a]], 1)
                of_b = (loads[operators[b], s] + weights[b]) / max(limits[operators[b]], 1)
                if of_a <= 1 and of_b <= 1 and (best < 0 or of_a + of_b < least):
                    best, least = s, of_a + of_b
            if best >= 0:
                for v in (a, b):
                    servers[v] = best
                    loads[operators[v], best] += weights[v]
            continue
        placed, other = (a, b) if servers[a] >= 0 else (b, a)
        s = servers[placed]
        if loads[operators[other], s] + weights[other] <= limits[operators[other]]:
            servers[other] = s
            loads[operators[other], s] += weights[other]
