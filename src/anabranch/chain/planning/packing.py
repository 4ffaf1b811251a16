"""How even the load of an operator can be: its heavy keys, packed into servers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.arrays import I32, I64
from anabranch.groupings.schemes.offline_greedy import place_heaviest_first
from anabranch.kernels import njit

# Exchanging keys between servers looks at all pairs of heavy keys: with more of them heaviest first is even enough.
_FEW = 1_000
_MOST_EXCHANGES = 200


@dataclass(frozen=True, eq=False)
class Packing:
    """The heavy keys of an operator on servers without names, and the load that no server need exceed.

    Guarantees
    ----------
    - Whatever the heavy keys leave free has room for all the other keys, in any order: on a server with at most the
      mean load each of them fits under `limit`.
    - `limit` is above alpha times the mean only where heaviest first, improved by moving and exchanging keys, finds no
      better place for the heavy ones.

    Parameters
    ----------
    limit
        Tuples that a server may have.
    heavy
        Keys that do not fit everywhere, by number, heaviest first.
    bins
        A server for each of them; which one it really is may be chosen freely.
    """

    limit: int
    heavy: I64
    bins: I32


def pack(weights: I64, n_servers: int, alpha: float, others: int = 0) -> Packing:
    """Pack the keys of an operator, which weigh `weights`; `others` is what spread keys bring to all servers."""
    mean = float(weights.sum() + others) / n_servers
    limit = int(alpha * mean * (1 + 1e-12))
    heavy = np.flatnonzero(weights > limit - mean)
    heavy = heavy[np.argsort(-weights[heavy], kind="stable")]
    bins = np.empty(len(heavy), dtype=np.int32)
    loads = np.zeros(n_servers, dtype=np.int64)
    place_heaviest_first(weights[heavy], loads, bins)
    if loads.max() > limit and len(heavy) <= _FEW:
        _even_out(weights[heavy], limit, loads, bins)
    return Packing(max(limit, int(loads.max())), heavy, bins)


@njit(cache=True)
def _even_out(weights: I64, limit: int, loads: I64, bins: I32) -> None:
    """Move a key out of the fullest bin, or exchange it for a lighter one, while that makes the fullest less full."""
    for _ in range(_MOST_EXCHANGES):
        fullest = np.argmax(loads)
        most = loads[fullest]
        if most <= limit:
            return
        best, move, swap, target = most, -1, -1, -1
        for i in range(len(weights)):
            if bins[i] != fullest:
                continue
            for other in range(len(loads)):
                after = max(most - weights[i], loads[other] + weights[i])
                if other != fullest and after < best:
                    best, move, swap, target = after, i, -1, other
            for j in range(len(weights)):
                other = bins[j]
                less = weights[i] - weights[j]
                if other != fullest and less > 0:
                    after = max(most - less, loads[other] + less)
                    if after < best:
                        best, move, swap, target = after, i, j, other
        if move < 0:
            return
        less = weights[move] - (weights[swap] if swap >= 0 else 0)
        loads[fullest] -= less
        loads[target] += less
        bins[move] = target
        if swap >= 0:
            bins[swap] = fullest
