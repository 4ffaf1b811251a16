"""The graph of keys that a planner divides among servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64, Bools
from anabranch.chain.planning.pairs import Pairs
from anabranch.kernels import njit


@dataclass(frozen=True, eq=False)
class Hop:
    """The edges between two operators in a row: keys, by their place in `KeyGraph.keys`, and tuples."""

    first: I32
    second: I32
    counts: I64
    total: int
    scale: int


@dataclass(frozen=True, eq=False)
class KeyGraph:
    """Keys of all operators as vertices, weighted by their tuples; pairs as edges, weighted by theirs.

    Parameters
    ----------
    keys
        Of each operator, its keys in ascending order: its vertices have consecutive numbers.
    starts
        The first vertex of each operator, and the number of vertices.
    weights
        Tuples of each vertex.
    staying
        Tuples of each vertex that go to spread keys, and so to the next operator on the same server.
    offsets, neighbours, counts
        Edges from vertex v: those from `offsets[v]` to `offsets[v + 1]`.
    hops
        The same edges from operator to operator, each once.

    References
    ----------
    Caneill et al. 2016, §3.3: a bipartite graph for each two operators in a row. Ours is one graph for the whole chain,
    so that an operator in the middle gets one table.
    """

    keys: tuple[U64, ...]
    starts: I64
    weights: I64
    staying: I64
    offsets: I64
    neighbours: I32
    counts: I64
    hops: tuple[Hop, ...]

    @classmethod
    def of(cls, chain: Sequence[Pairs], spread: Sequence[U64] | None = None) -> KeyGraph:
        """The graph of a chain of operators; `chain[i]` are the pairs of operators i and i + 1.

        `spread` are keys of each operator that are on every server: neither vertices nor, in pairs, edges.
        """
        keys, numbers = _number_keys(chain)
        hops = [_hop(pairs, numbers[2 * i], numbers[2 * i + 1], len(keys[i + 1])) for i, pairs in enumerate(chain)]
        weights, staying = _weights(hops, keys), [np.zeros(len(of), np.int64) for of in keys]
        if spread is not None and any(map(len, spread)):
            fixed = [~np.isin(of, hot) for of, hot in zip(keys, spread, strict=True)]
            staying[:-1] = [_staying(hop, len(keys[i]), fixed[i + 1]) for i, hop in enumerate(hops)]
            hops = [_between_fixed(hop, fixed[i], fixed[i + 1]) for i, hop in enumerate(hops)]
            keys = [of[own] for of, own in zip(keys, fixed, strict=True)]
            weights = [of[own] for of, own in zip(weights, fixed, strict=True)]
            staying = [of[own] for of, own in zip(staying, fixed, strict=True)]
        starts = np.cumsum([0, *map(len, keys)])
        first = np.concatenate([hop.first + starts[i] for i, hop in enumerate(hops)]).astype(np.int32)
        second = np.concatenate([hop.second + starts[i + 1] for i, hop in enumerate(hops)]).astype(np.int32)
        counts = np.concatenate([hop.counts for hop in hops])
        offsets = np.zeros(int(starts[-1]) + 1, dtype=np.int64)
        neighbours = np.empty(2 * len(first), dtype=np.int32)
        edge_counts = np.empty(2 * len(first), dtype=np.int64)
        _connect(first, second, counts, offsets, neighbours, edge_counts)
        of_all = np.concatenate(weights), np.concatenate(staying)
        return cls(tuple(keys), starts, *of_all, offsets, neighbours, edge_counts, tuple(hops))

    @property
    def n_operators(self) -> int:
        """Operators of the chain."""
        return len(self.keys)

    def vertices(self, operator: int) -> slice:
        """Vertices of an operator."""
        return slice(int(self.starts[operator]), int(self.starts[operator + 1]))

    @property
    def operators(self) -> I32:
        """The operator of each vertex."""
        return np.repeat(np.arange(self.n_operators, dtype=np.int32), np.diff(self.starts))


def _number_keys(chain: Sequence[Pairs]) -> tuple[list[U64], list[NDArray[np.intp]]]:
    """Distinct keys of each operator, and the number of each key in `first`, `second`, `first`, … of the pairs."""
    columns = [column for pairs in chain for column in (pairs.first, pairs.second)]
    # An operator in the middle receives by one column and sends by the next.
    groups = [[0], *([i, i + 1] for i in range(1, len(columns) - 1, 2)), [len(columns) - 1]]
    keys, numbers = [], []
    for group in groups:
        distinct, inverse = np.unique(np.concatenate([columns[i] for i in group]), return_inverse=True)
        keys.append(distinct)
        numbers += np.split(inverse, np.cumsum([len(columns[i]) for i in group])[:-1])
    return keys, numbers


def _hop(pairs: Pairs, first: NDArray[np.intp], second: NDArray[np.intp], n_second: int) -> Hop:
    """Edges in order; a pair that was given twice becomes one."""
    codes = first.astype(np.int64) * n_second + second
    order = np.argsort(codes, kind="stable")
    codes, counts = codes[order], pairs.counts[order]
    begins = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])) if len(codes) else codes
    summed = np.add.reduceat(counts, begins) if len(begins) else counts
    left, right = np.divmod(codes[begins], max(n_second, 1))
    return Hop(left.astype(np.int32), right.astype(np.int32), summed, pairs.total, pairs.scale)


def _staying(hop: Hop, n: int, fixed: Bools) -> I64:
    """Tuples of each of `n` first keys whose second key is not fixed to a server."""
    free = ~fixed[hop.second]
    return np.bincount(hop.first[free], hop.counts[free], n).astype(np.int64)


def _between_fixed(hop: Hop, first: Bools, second: Bools) -> Hop:
    """The edges whose keys are both fixed to a server; keys that are not have no number any more."""
    kept = first[hop.first] & second[hop.second]
    numbers = [np.cumsum(fixed, dtype=np.int32) - np.int32(1) for fixed in (first, second)]
    ends = numbers[0][hop.first[kept]], numbers[1][hop.second[kept]]
    return Hop(*ends, hop.counts[kept], hop.total, hop.scale)


def _weights(hops: Sequence[Hop], keys: Sequence[U64]) -> list[I64]:
    """Tuples of each key; in the middle of a chain the hop that knows of more of them counts."""
    arriving = [np.bincount(hop.second, hop.counts, len(keys[i + 1])) for i, hop in enumerate(hops)]
    leaving = [np.bincount(hop.first, hop.counts, len(keys[i])) for i, hop in enumerate(hops)]
    middle = [np.maximum(a, b) for a, b in zip(arriving[:-1], leaving[1:], strict=True)]
    return [of.astype(np.int64) for of in (leaving[0], *middle, arriving[-1])]


@njit(cache=True)
def _connect(first: I32, second: I32, counts: I64, offsets: I64, neighbours: I32, edge_counts: I64) -> None:
    """Edges by vertex, both ways, in the order in which they are given."""
    for i in range(len(first)):
        offsets[first[i] + 1] += 1
        offsets[second[i] + 1] += 1
    for v in range(len(offsets) - 1):
        offsets[v + 1] += offsets[v]
    at = offsets[:-1].copy()
    for i in range(len(first)):
        a, b = first[i], second[i]
        neighbours[at[a]] = b
        edge_counts[at[a]] = counts[i]
        at[a] += 1
        neighbours[at[b]] = a
        edge_counts[at[b]] = counts[i]
        at[b] += 1
