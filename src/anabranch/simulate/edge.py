"""The edge: one router per source, fed with that source's tuples."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F64, I32, U64
from anabranch.groupings import Grouping, Plan, Report
from anabranch.simulate.source import Tuples


class Edge:
    """Routers of all sources, and the seconds they took.

    Parameters
    ----------
    grouping
        What to route with.
    n_sources, n_workers, seed
        As for `Grouping.build_all`.
    """

    def __init__(self, grouping: Grouping, n_sources: int, n_workers: int, seed: int) -> None:
        self.grouping = grouping
        self.routers = grouping.build_all(n_sources, n_workers, seed)
        # A shared board is one router, repeated: it is told things once.
        self._distinct = list({id(router): router for router in self.routers}.values())
        self.seconds = 0.0
        self.plan: Plan | None = None
        # Compiling or loading kernels is not routing: do it before the clock runs, with keys enough for tables to grow
        # and time enough for whatever happens periodically.
        keys = np.arange(4096, dtype=np.uint64) << np.uint64(52)
        grouping.build(n_workers, seed=seed).route(keys, 0.0, 0.1)

    @property
    def chunk(self) -> int:
        """Tuples of the stream that fill a chunk of every router; 1 where none looks ahead."""
        chunk = self.routers[0].chunk
        return chunk * len(self.routers) if chunk > 1 else 1

    @property
    def router_bytes(self) -> int:
        """State of one source's router; of the whole board where it is shared."""
        return max(router.nbytes for router in self._distinct)

    def route(self, tuples: Tuples) -> I32:
        """Worker of each tuple, in the order of arrival."""
        if len(self._distinct) == 1:
            return self._timed(0, tuples.keys, tuples.arrivals)
        out = np.empty(len(tuples), dtype=np.int32)
        for source, mine in self._split(tuples):
            keys = np.ascontiguousarray(tuples.keys[mine])
            if len(keys):
                out[mine] = self._timed(source, keys, tuples.arrivals[mine])
        return out

    def _split(self, tuples: Tuples) -> list[tuple[int, slice | NDArray[np.intp]]]:
        """Each source with where its tuples are."""
        n = len(self.routers)
        if tuples.sources is None:
            return [(source, slice((source - tuples.start) % n, None, n)) for source in range(n)]
        order = np.argsort(tuples.sources, kind="stable")
        ends = np.cumsum(np.bincount(tuples.sources, minlength=n))
        return list(enumerate(np.split(order, ends[:-1])))

    def _timed(self, source: int, keys: U64, arrivals: F64) -> I32:
        now = float(arrivals[0])
        step_s = (float(arrivals[-1]) - now) / max(1, len(arrivals) - 1)
        began = time.perf_counter()
        workers = self.routers[source].route(keys, now, step_s)
        self.seconds += time.perf_counter() - began
        return workers

    def set_workers(self, workers: list[int]) -> None:
        """Workers came or went."""
        for router in self._distinct:
            router.set_workers(workers)

    def observe(self, report: Report) -> None:
        """The workers reported."""
        for router in self._distinct:
            router.observe(report)

    def begin_window(self, workers: Report) -> None:
        """As between two batches on Spark: fold the reports of the last window into a plan, and start from it."""
        reports = [router.report() for router in self._distinct]
        self.plan = self.grouping.fold(self.plan, [*reports, workers])
        for router in self._distinct:
            router.begin_window()
            router.follow(self.plan)
