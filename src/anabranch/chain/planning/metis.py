"""METIS through pymetis, and what it does not do repaired."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.chain.planning.division import Division
from anabranch.chain.planning.graph import KeyGraph
from anabranch.errors import MissingExtraError

# METIS counts in 32 bits.
_MOST = 2**30


def divide(graph: KeyGraph, n_servers: int, alpha: float, seed: int) -> Division:
    """METIS on the graph with the summed load, then balance for each operator, then improve.

    pymetis takes a second weight of each vertex and silently ignores it, so that METIS can only balance the sum over
    operators: what that leaves to be moved costs some of the locality that METIS has found, and part of it comes back
    when keys move to the server with most of their tuples.
    """
    division = Division(graph, n_servers, alpha, _partition(graph, n_servers, alpha, seed))
    division.finish()
    return division


def _partition(graph: KeyGraph, n_servers: int, alpha: float, seed: int) -> I32:
    try:
        import pymetis
    except ImportError:
        raise MissingExtraError(
            "method 'metis' needs pymetis, which is not installed; install anabranch[locality], or use method='greedy'"
        ) from None
    n_vertices = int(graph.starts[-1])
    if n_servers == 1 or n_vertices <= n_servers:
        return np.arange(n_vertices, dtype=np.int32) % np.int32(n_servers)
    if not len(graph.neighbours):
        return np.full(n_vertices, -1, dtype=np.int32)
    # ufactor: thousandths above the mean; METIS knows no zero.
    options = pymetis.Options(seed=seed & 0x7FFFFFFF, ufactor=max(1, round((alpha - 1) * 1000)))
    _, parts = pymetis.part_graph(
        n_servers,
        pymetis.CSRAdjacency(graph.offsets.astype(np.int32), graph.neighbours),
        vweights=_scaled(graph.weights + graph.staying),
        eweights=_scaled(graph.counts),
        options=options,
    )
    return np.asarray(parts, dtype=np.int32)


def _scaled(values: I64) -> I32:
    """Weights whose sum METIS can hold."""
    total = int(values.sum())
    if total > _MOST:
        values = np.maximum(1, values * (_MOST / total)).astype(np.int64)
    return values.astype(np.int32)
