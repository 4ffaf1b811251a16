"""Partial key grouping."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router, carry_over, of_workers
from anabranch.groupings.plan import Report
from anabranch.hashing import HashFamily, MultiplyShift
from anabranch.hashing.family import next_candidate
from anabranch.kernels import njit


@dataclass(frozen=True)
class PartialKeyGrouping(Grouping):
    """Each tuple to the less loaded of its key's two candidates.

    When to use it: moderate skew; the hottest key should have less than 2 / n_workers of the tuples.

    Guarantees
    ----------
    - A key has at most `choices` replicas.
    - Imbalance is at least (p1 / choices − 1 / n_workers) of the tuples, where p1 is the hottest key's share.
    - Where p1 ≤ 1 / (5 n_workers), imbalance is of the order of tuples / n_workers (Theorem 4.1).

    Parameters
    ----------
    choices
        Candidates per key; 1 is key grouping, more than n_workers count as n_workers.
    estimation
        "local": each source knows only what it sent (section III-B). "global": all sources share one load vector
        (the oracle "G" of section V); only `build_all` shares it.
    probe_s
        Set the local estimates to the reported true loads every so many seconds ("LP" in section V).
    family
        Hash family of the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> router = PartialKeyGrouping().build(n_workers=10)
    >>> router.route(np.full(4, 2**63, dtype=np.uint64)).tolist()
    [5, 6, 5, 6]

    References
    ----------
    Nasir et al., "The power of both choices" (ICDE 2015), sections III and V. Ties go to the first choice. Ours differs
    in one point: the candidates of a key are distinct.
    """

    name = "partial-key"
    paper = "Nasir et al. 2015 (PKG)"
    learns = False

    choices: int = 2
    estimation: str = "local"
    probe_s: float | None = None
    family: HashFamily = field(default=MultiplyShift())

    def __post_init__(self) -> None:
        if self.choices < 1:
            raise ConfigError(f"choices must be at least 1, got {self.choices}")
        if self.estimation not in ("local", "global"):
            raise ConfigError(f'estimation must be "local" or "global", got {self.estimation!r}')
        if self.probe_s is not None and not self.probe_s > 0:
            raise ConfigError(f"probe_s must be above 0, got {self.probe_s}; leave it out for no probing")

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _PartialKeyRouter(self, n_workers, source, n_sources, seed)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        """Routers of all sources; with global estimation one router, repeated."""
        if self.estimation == "local":
            return super().build_all(n_sources, n_workers, seed)
        return self._build_shared(n_sources, n_workers, seed)


class _PartialKeyRouter(Router):
    grouping: PartialKeyGrouping

    def __init__(self, grouping: Grouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.loads = np.zeros(n_workers, dtype=np.int64)
        self.reported = np.zeros(n_workers, dtype=np.int64)
        self.probed_at = np.zeros(1)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        first, second = self.grouping.family.pairs(keys, self.n_workers, self.seed)
        choices = min(self.grouping.choices, self.n_workers)
        if choices == 2:
            _less_loaded_of_two(first, second, self.loads, out)
        else:
            _least_loaded(first, second, choices, self.loads, out)

    def begin_window(self) -> None:
        self.loads[:] = 0
        self.reported[:] = 0

    def observe(self, report: Report) -> None:
        if self.grouping.probe_s is None or not len(report.worker_tuples):
            return
        self.reported += of_workers(report.worker_tuples, self.workers)
        if report.now - self.probed_at[0] >= self.grouping.probe_s:
            self.probed_at[0] = report.now
            self.loads[:] = self.reported

    def _resize(self, previous: I64) -> None:
        self.loads = carry_over(self.loads, previous)
        self.reported = carry_over(self.reported, previous)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"loads": self.loads, "reported": self.reported, "probed_at": self.probed_at}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.loads, self.reported, self.probed_at = arrays["loads"], arrays["reported"], arrays["probed_at"]


@njit(cache=True)
def _less_loaded_of_two(first: I32, second: I32, loads: I64, out: I32) -> None:
    for i in range(len(out)):
        worker = first[i] if loads[first[i]] <= loads[second[i]] else second[i]
        loads[worker] += 1
        out[i] = worker


@njit(cache=True)
def _least_loaded(first: I32, second: I32, choices: int, loads: I64, out: I32) -> None:
    for i in range(len(out)):
        worker = least_loaded_candidate(first[i], second[i], choices, loads)
        loads[worker] += 1
        out[i] = worker


@njit(cache=True, inline="always")
def least_loaded_candidate(first: int, second: int, choices: int, loads: I64) -> int:
    """The least loaded of the first `choices` candidates of the sequence that begins with `first`, `second`."""
    n = len(loads)
    distance = second - first
    if distance < 0:
        distance += n
    if distance == 0:
        distance = 1
    best, candidate, start = first, first, first
    least = loads[first]
    for _ in range(choices - 1):
        candidate, start = next_candidate(candidate, start, distance, n)
        if loads[candidate] < least:
            least = loads[candidate]
            best = candidate
    return best
