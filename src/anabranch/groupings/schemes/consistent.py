"""Consistent grouping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.containers import ordered_counters
from anabranch.containers.ordered_counters import OrderedCounters
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router, of_workers
from anabranch.groupings.plan import Report
from anabranch.hashing.family import reseed
from anabranch.hashing.xxhash64 import hash_long
from anabranch.kernels import njit


@dataclass(frozen=True)
class ConsistentGrouping(Grouping):
    """Each tuple to the first of its key's virtual workers that is not full; slow workers hand theirs over.

    When to use it: workers of different or changing speed.

    Guarantees
    ----------
    No virtual worker has more than 1 + (1 + epsilon) of the mean of the source's tuples at any time.

    Parameters
    ----------
    epsilon
        A virtual worker is full at (1 + epsilon) times the mean load.
    virtual_workers
        Virtual workers per worker: the unit in which load is handed over.
    slack
        A worker that was busy for more than (1 + slack) times the mean reports overload, one below (1 − slack) times
        the mean reports idleness.
    max_rehashes
        Candidates tried before the least loaded virtual worker is taken.

    Examples
    --------
    >>> import numpy as np
    >>> router = ConsistentGrouping().build(n_workers=4)
    >>> np.bincount(router.route(np.zeros(400, dtype=np.uint64)), minlength=4).tolist()
    [101, 101, 102, 96]

    References
    ----------
    Nasir et al., "Load balancing for skewed streams on heterogeneous cluster" (2017). The paper rehashes without end;
    ours stops after `max_rehashes`. One virtual worker per overloaded worker moves at each report.
    """

    name = "consistent"
    paper = "Nasir et al. 2017 (CG)"
    learns = False

    epsilon: float = 0.01
    virtual_workers: int = 10
    slack: float = 0.05
    max_rehashes: int = 100

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise ConfigError(f"epsilon must be above 0, got {self.epsilon}")
        if self.virtual_workers < 1:
            raise ConfigError(f"virtual_workers must be at least 1, got {self.virtual_workers}")
        if not 0 <= self.slack < 1:
            raise ConfigError(f"slack must be at least 0 and below 1, got {self.slack}")
        if self.max_rehashes < 1:
            raise ConfigError(f"max_rehashes must be at least 1, got {self.max_rehashes}")

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _ConsistentRouter(self, n_workers, source, n_sources, seed)


class _ConsistentRouter(Router):
    grouping: ConsistentGrouping

    def __init__(self, grouping: ConsistentGrouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        n_virtual = n_workers * grouping.virtual_workers
        self.owners = np.arange(n_virtual, dtype=np.int32) % np.int32(n_workers)
        self.loads = ordered_counters.zeros(n_virtual, self._virtual_rotation())
        self.total = np.zeros(1, dtype=np.int64)

    def _virtual_rotation(self) -> int:
        return self.source * len(self.owners) // self.n_sources

    def _route(self, keys: U64, now: float, out: I32) -> None:
        keys = reseed(keys, self.seed)
        _route(keys, self.owners, *self.loads, self.total, self.grouping.epsilon, self.grouping.max_rehashes, out)

    def begin_window(self) -> None:
        ordered_counters.assign(self.loads, np.zeros(len(self.owners), dtype=np.int64), self._virtual_rotation())
        self.total[0] = 0

    def observe(self, report: Report) -> None:
        """Hand one virtual worker from each overloaded worker to an idle one, the most overloaded to the most idle."""
        if not len(report.worker_seconds):
            return
        busy = of_workers(report.worker_seconds, self.workers)
        # A worker that came after the report was made is not idle: nothing is known of it.
        known = np.flatnonzero(self.workers < len(report.worker_seconds))
        mean = busy[known].mean() if len(known) else 0.0
        by_load = known[np.argsort(busy[known], kind="stable")]
        for idle, overloaded in zip(by_load, by_load[::-1], strict=True):
            if busy[overloaded] <= (1 + self.grouping.slack) * mean or busy[idle] >= (1 - self.grouping.slack) * mean:
                break
            owned = np.flatnonzero(self.owners == overloaded)
            if len(owned) > 1:
                self.owners[owned[-1]] = idle

    def _resize(self, previous: I64) -> None:
        """Virtual workers of a worker that left are dealt out by what each has; a newcomer takes an equal share."""
        index = {int(old): new for new, old in enumerate(previous) if old >= 0}
        owners = np.array([index.get(int(owner), -1) for owner in self.owners], dtype=np.int32)
        if len(owners) < self.n_workers:
            raise ConfigError(
                f"{len(owners)} virtual workers cannot serve {self.n_workers} workers; raise virtual_workers"
            )
        counts = np.bincount(owners[owners >= 0], minlength=self.n_workers)
        share = np.where(previous >= 0, np.maximum(counts, 1), 1e-9)
        dealt = np.zeros(self.n_workers)
        for orphan in np.flatnonzero(owners < 0):
            owners[orphan] = np.argmin((dealt + 1) / share)
            dealt[owners[orphan]] += 1
            counts[owners[orphan]] += 1
        for newcomer in np.flatnonzero(previous < 0):
            while counts[newcomer] < len(owners) // self.n_workers:
                richest = int(np.argmax(counts))
                owners[np.flatnonzero(owners == richest)[-1]] = newcomer
                counts[richest] -= 1
                counts[newcomer] += 1
        self.owners = owners

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"owners": self.owners, "total": self.total, **self.loads._asdict()}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.owners, self.total = arrays["owners"], arrays["total"]
        self.loads = OrderedCounters(*(arrays[name] for name in OrderedCounters._fields))


@njit(cache=True)
def _route(
    keys: U64,
    owners: I32,
    loads: I64,
    order: I32,
    items: I32,
    blocks: I32,
    free: I32,
    total: I64,
    epsilon: float,
    max_rehashes: int,
    out: I32,
) -> None:
    n = len(owners)
    for i in range(len(keys)):
        total[0] += 1
        capacity = (1 + epsilon) * total[0] / n
        key = keys[i]
        chosen = np.int64(((key >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        rehashes = 0
        while loads[chosen] >= capacity:
            rehashes += 1
            if rehashes > max_rehashes:
                chosen = np.int64(order[0])
                break
            mixed = hash_long(key, np.uint64(rehashes))
            chosen = np.int64(((mixed >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
        ordered_counters.increment(loads, order, items, blocks, free, int(chosen), 1)
        out[i] = owners[chosen]
