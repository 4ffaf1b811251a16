"""Shuffle grouping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Table, to_all
from anabranch.kernels import njit


@dataclass(frozen=True)
class ShuffleGrouping(Grouping):
    """Round robin whatever the key: best balance, most memory.

    When to use it: for work without state, or where a state for every key on every worker is acceptable.

    Guarantees
    ----------
    The tuples that one source sends to any two workers in a window differ by at most one. Each window starts at the
    same worker, so that a replayed batch repeats its routes.

    Examples
    --------
    >>> import numpy as np
    >>> ShuffleGrouping().build(n_workers=3).route(np.zeros(5, dtype=np.uint64)).tolist()
    [0, 1, 2, 0, 1]

    References
    ----------
    Partial key grouping paper, section II-A ("SG"). Ours starts each source at another worker.
    """

    name = "shuffle"
    paper = "baseline"
    by_key = False
    learns = False

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """No key is at home anywhere, so the table is empty; `by_key` says so."""
        return to_all(plan.hot_keys[:0], n_workers)

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _ShuffleRouter(self, n_workers, source, n_sources, seed)


class _ShuffleRouter(Router):
    def __init__(self, grouping: Grouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.cursor = np.array([self.rotation], dtype=np.int64)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        _round_robin(self.cursor, self.n_workers, out)

    def begin_window(self) -> None:
        self.cursor[0] = self.rotation

    def _resize(self, previous: I64) -> None:
        self.cursor[0] %= self.n_workers

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"cursor": self.cursor}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.cursor = arrays["cursor"]


@njit(cache=True)
def _round_robin(cursor: I64, n_workers: int, out: I32) -> None:
    at = np.int32(cursor[0])
    n = np.int32(n_workers)
    for i in range(len(out)):
        out[i] = at
        at += np.int32(1)
        if at == n:
            at = np.int32(0)
    cursor[0] = at
