"""The planned edge: routes from a table that is made between windows, as Spark runs it without Python a tuple."""

from __future__ import annotations

import time

import numpy as np

from anabranch.arrays import I32, I64, U64
from anabranch.containers.key_counts import KeyCounts
from anabranch.containers.key_table import KeyTable
from anabranch.errors import ConfigError
from anabranch.groupings import Grouping, Plan, Report, Table
from anabranch.hashing import MultiplyShift
from anabranch.kernels import njit
from anabranch.simulate.source import Tuples
from anabranch.streams.counter_random import below, lane, seed_bits

# Keys a worker that a plan knows the counts of.
_HOT_KEYS = 1000
# A draw of its own, so that choices are independent of the stream's keys.
_DRAW = 0x91A2


class PlannedEdge:
    """A table sends its keys to one of their workers at random; every other key goes home.

    The table of a window is made from the exact counts of the window before: one window late, as on a stream. In the
    first one all keys go home. A grouping that does not learn has its table from the first window on.

    Parameters
    ----------
    grouping
        Whose `table` it is.
    n_workers, seed
        Size of the edge; seed of the hash family and of the choices.
    """

    # Choices go by a tuple's position in the stream: nothing looks ahead, and cuts do not matter.
    chunk = 1

    def __init__(self, grouping: Grouping, n_workers: int, seed: int) -> None:
        check(grouping)
        self.grouping = grouping
        self.n_workers = n_workers
        self.seed = seed
        self.seconds = 0.0
        self.plan: Plan | None = None
        # A kernel hands back a Python integer, and one beyond 63 bits cannot enter another.
        self._lane = np.uint64(lane(seed_bits(seed), _DRAW))
        self._reports: list[Report] = []
        self._counts = KeyCounts()
        known = None if grouping.learns else grouping.table(Plan(), n_workers, seed)
        self._use(known or Table(np.zeros(0, np.uint64), np.zeros(1, np.int64), np.zeros(0, np.int32)))
        # Compiling or loading kernels is not routing: do it before the clock runs.
        self._choose(np.arange(2, dtype=np.uint64), 0)

    def _use(self, table: Table) -> None:
        self.table = table
        self._rows = KeyTable()
        self._rows.insert(table.keys, np.arange(len(table.keys), dtype=np.int32))

    @property
    def router_bytes(self) -> int:
        """Bytes of the table, which every source has."""
        return self.table.keys.nbytes + self.table.offsets.nbytes + self.table.workers.nbytes

    def route(self, tuples: Tuples) -> I32:
        """Worker of each tuple, in the order of arrival."""
        self._counts.update(tuples.keys)
        began = time.perf_counter()
        workers = self._choose(tuples.keys, tuples.start)
        self.seconds += time.perf_counter() - began
        return workers

    def _choose(self, keys: U64, start: int) -> I32:
        rows = np.full(len(keys), -1, dtype=np.int32)
        if self.grouping.by_key:
            workers = MultiplyShift().first(keys, self.n_workers, self.seed)
            self._rows.look_up(keys, rows, rows)
            offsets, listed = self.table.offsets, self.table.workers
        else:
            # No key is at home anywhere: one row that lists all workers.
            workers, rows[:] = rows, 0
            offsets, listed = np.array([0, self.n_workers]), np.arange(self.n_workers, dtype=np.int32)
        _draw(rows, offsets, listed, self._lane, start, workers)
        return workers

    def set_workers(self, workers: list[int]) -> None:
        """Refused: homes are a part of the hash space for each worker, and all of them would move."""
        raise ConfigError(f"workers of the planned edge cannot change, got {workers}; use the adaptive edge")

    def observe(self, report: Report) -> None:
        """The workers reported: their speeds go into the next plan."""
        self._reports.append(report)

    def begin_window(self, workers: Report) -> None:
        """Make the table of the next window from the counts of the last one."""
        keys, counts = self._counts.result()
        order = np.lexsort((keys, -counts))
        hot, cold = np.split(order, [_HOT_KEYS * self.n_workers])
        exact = Report(tuples=int(counts.sum()), hot_keys=keys[hot], hot_counts=counts[hot], partials=len(keys))
        homes = MultiplyShift().first(keys[cold], self.n_workers, self.seed)
        at_home = np.bincount(homes, weights=counts[cold], minlength=self.n_workers).astype(np.int64)
        reports = [exact, *self._reports, workers]
        self.plan = self.grouping.plan_from_counts(self.plan, reports, self.n_workers, self.seed, at_home)
        if self.plan.table is not None:
            self._use(self.plan.table)
        self._counts, self._reports = KeyCounts(), []


def fits(grouping: Grouping) -> bool:
    """Whether the grouping can run on the planned edge."""
    return grouping.has_table() and not grouping.needs_counts


def check(grouping: Grouping) -> None:
    """Raise ConfigError unless the grouping can run on the planned edge."""
    if not grouping.has_table():
        raise ConfigError(
            f"{grouping.name} chooses tuple by tuple and cannot be written as a table, which the planned edge needs; "
            "use the adaptive edge, or a grouping such as spillway"
        )
    if grouping.needs_counts:
        raise ConfigError(
            f"{grouping.name} needs the counts of the whole stream, and a window's table has those of the window "
            "before; use the adaptive edge, or a grouping such as spillway"
        )


@njit(cache=True)
def _draw(rows: I32, offsets: I64, listed: I32, start: np.uint64, position: int, out: I32) -> None:
    """One of the workers of each tuple's row; a tuple without one keeps what is in `out`."""
    for i in range(len(rows)):
        row = rows[i]
        if row >= 0:
            n = offsets[row + 1] - offsets[row]
            if n > 0:
                out[i] = listed[offsets[row] + below(start, position + i, n)]
