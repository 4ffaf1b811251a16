"""Static two choices: the power of two choices without key splitting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.containers.key_table import EMPTY, KeyTable, place_of
from anabranch.groupings.grouping import Grouping, Router, carry_over
from anabranch.hashing import HashFamily, MultiplyShift
from anabranch.kernels import njit


@dataclass(frozen=True)
class StaticTwoChoices(Grouping):
    """Each new key to the less loaded of its two candidates, and there for good.

    When to use it: as the paper's baseline. It needs a routing table with an entry for every key, which all sources
    share: `build_all` does that in the simulator. Routers built one by one agree on a key only by chance.

    Guarantees
    ----------
    Every key has one replica, among routers that share a table and while no worker goes away.

    Examples
    --------
    >>> import numpy as np
    >>> router = StaticTwoChoices().build(n_workers=10)
    >>> router.route(np.full(4, 2**63, dtype=np.uint64)).tolist()
    [5, 5, 5, 5]

    References
    ----------
    Nasir et al. 2015, sections III-A ("static PoTC") and V, Table II ("PoTC").
    """

    name = "static-two-choices"
    paper = "Nasir et al. 2015 (PoTC)"
    learns = False

    family: HashFamily = field(default=MultiplyShift())

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _StaticTwoChoicesRouter(self, n_workers, source, n_sources, seed)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        """One router, repeated: all sources share the routing table."""
        return self._build_shared(n_sources, n_workers, seed)


class _StaticTwoChoicesRouter(Router):
    grouping: StaticTwoChoices

    def __init__(self, grouping: Grouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.table = KeyTable()
        self.loads = np.zeros(n_workers, dtype=np.int64)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        first, second = self.grouping.family.pairs(keys, self.n_workers, self.seed)
        done = 0
        while done < len(keys):
            if self.table.is_full:
                self.table.grow()
            table = self.table
            done = _place(keys, first, second, done, table.keys, table.workers, table.size, self.loads, out)

    def begin_window(self) -> None:
        self.loads[:] = 0

    def _resize(self, previous: I64) -> None:
        self.table.renumber(previous)
        self.loads = carry_over(self.loads, previous)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"loads": self.loads, **self.table.arrays()}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.loads = arrays["loads"]
        self.table.adopt(arrays)


@njit(cache=True)
def _place(
    keys: U64, first: I32, second: I32, start: int, table_keys: U64, table_workers: I32, size: I64, loads: I64, out: I32
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
            worker = first[i] if loads[first[i]] <= loads[second[i]] else second[i]
            table_workers[at] = worker
        loads[worker] += 1
        out[i] = worker
    return len(keys)
