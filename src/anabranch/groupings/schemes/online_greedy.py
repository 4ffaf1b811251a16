"""On-line greedy: each new key to the least loaded worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.containers import ordered_counters
from anabranch.containers.key_table import EMPTY, KeyTable, place_of
from anabranch.containers.ordered_counters import OrderedCounters
from anabranch.groupings.grouping import Grouping, Router, carry_over
from anabranch.kernels import njit


@dataclass(frozen=True)
class OnlineGreedy(Grouping):
    """Each new key to the least loaded worker, and there for good.

    When to use it: as the paper's baseline. It needs a routing table with an entry for every key, shared by all
    sources through `build_all`.

    Guarantees
    ----------
    Every key has one replica, among routers that share a table and while no worker goes away.

    Examples
    --------
    >>> import numpy as np
    >>> router = OnlineGreedy().build(n_workers=3)
    >>> router.route(np.array([7, 7, 8, 9, 8, 7], dtype=np.uint64)).tolist()
    [0, 0, 2, 1, 2, 0]

    References
    ----------
    Nasir et al. 2015, section V, Table II ("On-Greedy").
    """

    name = "online-greedy"
    paper = "Nasir et al. 2015 (On-Greedy)"
    learns = False

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _OnlineGreedyRouter(self, n_workers, source, n_sources, seed)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        """One router, repeated: all sources share the routing table."""
        return self._build_shared(n_sources, n_workers, seed)


class _OnlineGreedyRouter(Router):
    def __init__(self, grouping: Grouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.table = KeyTable()
        self.loads = ordered_counters.zeros(n_workers, self.rotation)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        done = 0
        while done < len(keys):
            if self.table.is_full:
                self.table.grow()
            table = self.table
            done = _place(keys, done, table.keys, table.workers, table.size, *self.loads, out)

    def begin_window(self) -> None:
        ordered_counters.assign(self.loads, np.zeros(self.n_workers, dtype=np.int64), self.rotation)

    def _resize(self, previous: I64) -> None:
        self.table.renumber(previous)
        self.loads = ordered_counters.holding(carry_over(self.loads.count, previous), self.rotation)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {**self.loads._asdict(), **self.table.arrays()}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.loads = OrderedCounters(*(arrays[name] for name in OrderedCounters._fields))
        self.table.adopt(arrays)


@njit(cache=True)
def _place(
    keys: U64,
    start: int,
    table_keys: U64,
    table_workers: I32,
    size: I64,
    count: I64,
    order: I32,
    items: I32,
    blocks: I32,
    free: I32,
    out: I32,
) -> int:
    """Route from `start` on; return where it stopped because the table is half full."""
    for i in range(start, len(keys)):
        at = place_of(keys[i], table_keys, table_workers)
        worker = table_workers[at]
        if worker < 0:
            if worker == EMPTY:
                if size[0] * 2 >= len(table_keys):
                    return i
                size[0] += 1
                table_keys[at] = keys[i]
            worker = order[0]
            table_workers[at] = worker
        ordered_counters.increment(count, order, items, blocks, free, worker, 1)
        out[i] = worker
    return len(keys)
