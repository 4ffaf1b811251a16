"""Off-line greedy: keys placed by their true counts, heaviest first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.containers.key_table import KeyTable
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Table
from anabranch.hashing import HashFamily, MultiplyShift
from anabranch.kernels import njit


@dataclass(frozen=True, eq=False)
class OfflineGreedy(Grouping):
    """Each key to one worker, heaviest first to the least loaded, with all counts known beforehand.

    When to use it: on a batch whose keys have been counted, when a key must not be split; on a stream, as the unfair
    baseline that knows the future. The simulator makes the counting pass itself.

    Guarantees
    ----------
    - Every key has one replica.
    - The most loaded worker has at most 4/3 − 1/(3 n_workers) of the best possible maximum without splitting
      (longest processing time first).

    Parameters
    ----------
    keys, counts
        Distinct key hashes and how often each occurs; see `from_counts`. A key outside goes home by hash.

    Examples
    --------
    >>> import numpy as np
    >>> keys, counts = np.array([7, 8, 9], dtype=np.uint64), np.array([2, 5, 3])
    >>> OfflineGreedy.from_counts(keys, counts).build(n_workers=2).route(keys).tolist()
    [1, 0, 1]

    References
    ----------
    Nasir et al. 2015, section V, Table II ("Off-Greedy").
    """

    name = "offline-greedy"
    paper = "Nasir et al. 2015 (Off-Greedy)"
    needs_counts = True
    splits_keys = False

    keys: U64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64), repr=False)
    counts: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    family: HashFamily = field(default=MultiplyShift())

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.counts):
            raise ConfigError(f"keys and counts must be equally long, got {len(self.keys)} and {len(self.counts)}")

    @classmethod
    def from_counts(cls, keys: U64, counts: I64) -> OfflineGreedy:
        """Off-line greedy for a stream in which `keys[i]` occurs `counts[i]` times."""
        return cls(keys=np.asarray(keys, dtype=np.uint64), counts=np.asarray(counts, dtype=np.int64))

    def with_counts(self, keys: U64, counts: I64) -> OfflineGreedy:
        """The same grouping for a stream in which `keys[i]` occurs `counts[i]` times."""
        return replace(self, keys=keys, counts=counts)

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        if not len(self.keys):
            raise ConfigError("off-line greedy needs the key counts; use OfflineGreedy.from_counts(keys, counts)")
        return _OfflineGreedyRouter(self, n_workers, source, n_sources, seed)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """Every key to one worker; `plan` holds the counts of all keys."""
        workers = np.empty(len(plan.hot_keys), dtype=np.int32)
        place_heaviest_first(plan.hot_counts, np.zeros(n_workers, dtype=np.int64), workers)
        return Table(plan.hot_keys, np.arange(len(workers) + 1), workers)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        """One router, repeated: the table does not change."""
        return self._build_shared(n_sources, n_workers, seed)


class _OfflineGreedyRouter(Router):
    grouping: OfflineGreedy

    def __init__(self, grouping: Grouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self._fill()

    def _fill(self) -> None:
        order = np.lexsort((self.grouping.keys, -self.grouping.counts))
        workers = np.empty(len(order), dtype=np.int32)
        place_heaviest_first(self.grouping.counts[order], np.zeros(self.n_workers, dtype=np.int64), workers)
        self.table = KeyTable()
        self.table.insert(self.grouping.keys[order], workers)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        homes = self.grouping.family.first(keys, self.n_workers, self.seed)
        self.table.look_up(keys, homes, out)

    def _resize(self, previous: I64) -> None:
        self._fill()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self.table.arrays()

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.table.adopt(arrays)


@njit(cache=True)
def place_heaviest_first(counts: I64, loads: I64, workers: I32) -> None:
    """Longest processing time first: `counts` descend, `workers` are filled in, `loads` grow."""
    for i in range(len(counts)):
        worker = np.argmin(loads)
        loads[worker] += counts[i]
        workers[i] = worker
