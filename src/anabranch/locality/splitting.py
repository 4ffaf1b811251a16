"""Splitting: a key that is too heavy for any server is planned as several lighter ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anabranch.groupings import TableGrouping
from anabranch.locality.graph import KeyGraph
from anabranch.locality.pairs import Pairs, hash_pairs


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of split keys of one operator, and whose they are.

    Parameters
    ----------
    keys
        Hashes of the pieces, ascending.
    wholes
        The key of each piece.
    """

    keys: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    wholes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    @classmethod
    def of(cls, wholes: NDArray[np.uint64], n: NDArray[np.int64]) -> Pieces:
        """So many pieces of each key, under hashes of their own."""
        numbers = (np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)).astype(np.uint64)
        keys, owners = hash_pairs(np.repeat(wholes, n), numbers), np.repeat(wholes, n)
        order = np.argsort(keys)
        return cls(keys[order], owners[order])

    def table(self, keys: NDArray[np.uint64], servers: NDArray[np.int32]) -> TableGrouping:
        """The table of these keys, in which a split key has the server of each of its pieces."""
        named = self.named(keys)
        # Where several pieces are on one server, it has as many of the key's turns. In order, as any table is.
        order = np.lexsort((servers, named)) if len(self.keys) else slice(None)
        return TableGrouping(named[order], servers[order])

    def named(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The keys, with the whole key in the place of each piece."""
        if not len(self.keys):
            return keys
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.wholes[at], keys)


def heavy_keys(graph: KeyGraph, n_servers: int, alpha: float) -> tuple[NDArray[np.uint64], ...]:
    """Of each operator, the keys with more tuples than a server may have."""
    heavy = []
    for operator in range(graph.n_operators):
        weights = graph.weights[graph.vertices(operator)]
        heavy.append(graph.keys[operator][weights > alpha * weights.sum() / n_servers])
    return tuple(heavy)


def in_pieces(
    chain: Sequence[Pairs], heavy: Sequence[NDArray[np.uint64]], n_servers: int
) -> tuple[list[Pairs], list[Pieces]]:
    """The pairs with each of these keys, of each operator, in equal pieces, none heavier than a server's mean load."""
    graph = KeyGraph.of(chain)
    pieces, out = [], list(chain)
    for operator, keys in enumerate(heavy):
        weights = graph.weights[graph.vertices(operator)]
        own = weights[np.searchsorted(graph.keys[operator], keys)]
        pieces.append(Pieces.of(keys, np.ceil(own * n_servers / max(weights.sum(), 1)).astype(np.int64)))
        if operator:
            out[operator - 1] = _dealt(out[operator - 1], "second", pieces[-1])
        if operator < len(chain):
            out[operator] = _dealt(out[operator], "first", pieces[-1])
    return out, pieces


def _dealt(pairs: Pairs, side: str, pieces: Pieces) -> Pairs:
    """The tuples of split keys dealt out to their pieces, in equal parts."""
    if not len(pieces.keys):
        return pairs
    keys: NDArray[np.uint64] = getattr(pairs, side)
    order = np.argsort(pieces.wholes, kind="stable")
    wholes = pieces.wholes[order]
    begins, ends = np.searchsorted(wholes, keys), np.searchsorted(wholes, keys, side="right")
    n = np.maximum(ends - begins, 1)
    row = np.repeat(np.arange(len(keys)), n)
    turn = np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n)
    counts = pairs.counts[row] // n[row] + (turn < pairs.counts[row] % n[row])
    # Which piece gets what does not divide depends on the other key, and not on the order of the pairs.
    other = pairs.second if side == "first" else pairs.first
    begin = (other[row] % n[row].astype(np.uint64)).astype(np.int64)
    piece = np.minimum(begins[row] + (turn + begin) % n[row], len(order) - 1)
    dealt = np.where((ends > begins)[row], pieces.keys[order[piece]], keys[row])
    there = counts > 0
    columns = {"first": pairs.first[row][there], "second": pairs.second[row][there], side: dealt[there]}
    return replace(pairs, counts=counts[there], **columns)
