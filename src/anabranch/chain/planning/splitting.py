"""Splitting: hot keys are put on several servers.

Where tuples come from an operator, a hot key is spread: it is on every server, and its tuples stay where they are.
Where they come from a source, which has no server, a key that is too heavy for any is planned as several lighter ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anabranch.arrays import I64, U64
from anabranch.chain.planning.graph import KeyGraph
from anabranch.chain.planning.pairs import Pairs, hash_pairs

# Part of a server's share of the tuples above which a key is spread: of all keys at most n_servers / HOT are.
HOT = 0.01


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of split keys of the first operator, and whose they are.

    Parameters
    ----------
    keys
        Hashes of the pieces, ascending.
    wholes
        The key of each piece.
    """

    keys: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))
    wholes: U64 = field(default_factory=lambda: np.zeros(0, np.uint64))

    @classmethod
    def of(cls, wholes: U64, n: I64) -> Pieces:
        """So many pieces of each key, under hashes of their own."""
        numbers = (np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)).astype(np.uint64)
        keys, owners = hash_pairs(np.repeat(wholes, n), numbers), np.repeat(wholes, n)
        order = np.argsort(keys)
        return cls(keys[order], owners[order])

    def named(self, keys: U64) -> U64:
        """The keys, with the whole key in the place of each piece."""
        if not len(self.keys):
            return keys
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.wholes[at], keys)


def heavy_keys(graph: KeyGraph, n_servers: int, alpha: float) -> tuple[U64, ...]:
    """Of each operator, the keys with more tuples than a server may have."""
    return tuple(_above(graph, operator, alpha / n_servers) for operator in range(graph.n_operators))


def spread_keys(graph: KeyGraph, n_servers: int, may: Collection[int]) -> list[U64]:
    """Of each operator but the first that `may` be split, the keys that are put on every server."""
    hot = [_above(graph, operator, HOT / n_servers) for operator in range(graph.n_operators)]
    return [of if operator and operator in may else of[:0] for operator, of in enumerate(hot)]


def _above(graph: KeyGraph, operator: int, share: float) -> U64:
    """Keys with more than this share of an operator's tuples."""
    weights = graph.weights[graph.vertices(operator)]
    found: U64 = graph.keys[operator][weights > share * weights.sum()]
    return found


def in_pieces(chain: Sequence[Pairs], graph: KeyGraph, keys: U64, n_servers: int) -> tuple[list[Pairs], Pieces]:
    """The pairs with each of these keys, of the first operator, in equal pieces, none above a server's mean load."""
    weights = graph.weights[graph.vertices(0)]
    own = weights[np.searchsorted(graph.keys[0], keys)]
    pieces = Pieces.of(keys, np.ceil(own * n_servers / max(weights.sum(), 1)).astype(np.int64))
    return [_dealt(chain[0], pieces), *chain[1:]], pieces


def _dealt(pairs: Pairs, pieces: Pieces) -> Pairs:
    """The tuples of split keys dealt out to their pieces, in equal parts."""
    order = np.argsort(pieces.wholes, kind="stable")
    wholes = pieces.wholes[order]
    begins, ends = np.searchsorted(wholes, pairs.first), np.searchsorted(wholes, pairs.first, side="right")
    n = np.maximum(ends - begins, 1)
    row = np.repeat(np.arange(len(pairs)), n)
    turn = np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n)
    counts = pairs.counts[row] // n[row] + (turn < pairs.counts[row] % n[row])
    # Which piece gets what does not divide depends on the other key, and not on the order of the pairs.
    begin = (pairs.second[row] % n[row].astype(np.uint64)).astype(np.int64)
    piece = np.minimum(begins[row] + (turn + begin) % n[row], len(order) - 1)
    dealt = np.where((ends > begins)[row], pieces.keys[order[piece]], pairs.first[row])
    there = counts > 0
    return replace(pairs, first=dealt[there], second=pairs.second[row][there], counts=counts[there])
