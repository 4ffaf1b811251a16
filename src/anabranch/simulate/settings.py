"""Settings of a simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.arrays import F64
from anabranch.errors import ConfigError

# Far above any cluster: a slip of the keyboard should not fill the memory.
_MOST = 1_000_000
EDGES = ("adaptive", "planned")


@dataclass(frozen=True)
class Change:
    """Workers that come or go when the stream reaches a tuple.

    Parameters
    ----------
    at
        Position in the stream; the tuple at it is the first that sees the change.
    add
        How many workers come; they get the next free numbers.
    remove
        Number of the worker that goes, if any.
    """

    at: int
    add: int = 0
    remove: int | None = None

    def __post_init__(self) -> None:
        if self.at < 0:
            raise ConfigError(f"a change must be at tuple 0 or later, got {self.at}")
        if self.add < 0 or (self.add == 0) == (self.remove is None):
            raise ConfigError("a change adds workers or removes one; write 5000000:+2 or 5000000:-3")

    def __str__(self) -> str:
        return f"{self.at}:+{self.add}" if self.remove is None else f"{self.at}:-{self.remove}"

    @classmethod
    def parse(cls, text: str) -> Change:
        """``TUPLE:+N`` adds N workers, ``TUPLE:-W`` removes worker W.

        Examples
        --------
        >>> Change.parse("5000:-3")
        Change(at=5000, add=0, remove=3)
        """
        at, _, what = text.partition(":")
        try:
            if what[:1] == "+":
                return cls(int(at), add=int(what[1:] or 1))
            if what[:1] == "-":
                return cls(int(at), remove=int(what[1:]))
        except ValueError:
            pass
        raise ConfigError(f"cannot read the change {text!r}; write 5000000:+2 (two come) or 5000000:-3 (worker 3 goes)")


@dataclass(frozen=True)
class Settings:
    """Sources, workers and clocks of a simulation.

    Parameters
    ----------
    n_workers, n_sources
        Size of the edge.
    window
        Tuples a window: it stands for a micro-batch, and for the papers' aggregation period. Default 10 000 a source.
    seed
        Seed of the stream, the hash family and the noise of reports.
    rate
        Arrivals per second of virtual time; default 0.8 of what all workers together can serve.
    service_s
        Seconds that a worker of speed 1 spends on a tuple.
    merge_s
        Seconds that the aggregator spends on a partial state; default a tenth of `service_s`. There is one aggregator
        task per worker, and partial states spread over them evenly.
    speeds
        Relative speeds of the workers, repeated to their number: (2, 1) makes every other one twice as fast. Routers
        learn speeds only from reports.
    report_s
        The workers report their tuples and seconds to the routers every so many seconds of virtual time.
    report_noise
        Relative standard deviation of the reported seconds.
    reset_loads
        As on Spark: routers start each window with zero loads and the plan folded from the last window's reports.
    source_key
        Column that decides a tuple's source, by hash; without it tuple i goes to source i mod n_sources.
    changes
        Workers that come and go.
    limit
        Read at most so many tuples; default all.
    edge
        Who routes: "adaptive", a router in each source; or "planned", a table that is made after each window from its
        exact counts, for the groupings that can be written as one.
    """

    n_workers: int = 16
    n_sources: int = 5
    window: int | None = None
    seed: int = 0
    rate: float | None = None
    service_s: float = 0.001
    merge_s: float | None = None
    speeds: tuple[float, ...] = (1.0,)
    report_s: float = 10.0
    report_noise: float = 0.05
    reset_loads: bool = False
    source_key: str | None = None
    changes: tuple[Change, ...] = ()
    limit: int | None = None
    edge: str = "adaptive"

    def __post_init__(self) -> None:
        for name in ("n_workers", "n_sources", "window", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1, got {value}")
        for name in ("n_workers", "n_sources"):
            if getattr(self, name) > _MOST:
                raise ConfigError(f"{name} must be at most {_MOST}, got {getattr(self, name)}")
        if self.seed < 0:
            raise ConfigError(f"seed must be 0 or a positive whole number, got {self.seed}")
        for name in ("rate", "service_s", "report_s"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"{name} must be a positive number, got {value}")
        if self.merge_s is not None and not (self.merge_s >= 0 and math.isfinite(self.merge_s)):
            raise ConfigError(f"merge_s must be 0 or a positive number, got {self.merge_s}")
        if not (self.report_noise >= 0 and math.isfinite(self.report_noise)):
            raise ConfigError(f"report_noise must be 0 or a positive number, got {self.report_noise}")
        if not self.speeds or not all(speed > 0 and math.isfinite(speed) for speed in self.speeds):
            raise ConfigError(f"speeds must be positive numbers, got {self.speeds}; 1 is a worker of normal speed")
        if self.edge not in EDGES:
            raise ConfigError(f"edge must be one of {', '.join(EDGES)}, got {self.edge!r}")
        self._check_changes()

    def _check_changes(self) -> None:
        if self.changes and self.edge == "planned":
            listed = ", ".join(str(change) for change in self.ordered_changes)
            raise ConfigError(f"workers of the planned edge cannot change, got {listed}; use the adaptive edge")
        if self.n_workers_ever > _MOST:
            raise ConfigError(f"changes must leave at most {_MOST:,} workers, got {self.n_workers_ever:,}")
        alive = set(range(self.n_workers))
        total = self.n_workers
        for change in self.ordered_changes:
            if change.remove is not None and change.remove not in alive:
                raise ConfigError(
                    f"worker {change.remove} is not there at tuple {change.at}; there are {sorted(alive)}"
                )
            if change.remove is not None and len(alive) == 1:
                raise ConfigError(f"worker {change.remove} is the last one at tuple {change.at}; add another first")
            alive.discard(-1 if change.remove is None else change.remove)
            alive |= set(range(total, total + change.add))
            total += change.add

    def record(self) -> dict[str, Any]:
        """What a run can be repeated from, besides its stream, grouping, size, window and seed; JSON values."""
        names = ("rate", "service_s", "speeds", "report_s", "report_noise", "reset_loads", "source_key", "limit")
        record = {name: getattr(self, name) for name in (*names, "edge")}
        record["speeds"] = list(self.speeds)
        record["merge_s"] = self.merge_seconds
        record["changes"] = [str(change) for change in self.ordered_changes]
        return record

    @property
    def ordered_changes(self) -> list[Change]:
        """Changes in the order of the stream."""
        return sorted(self.changes, key=lambda change: change.at)

    @property
    def n_workers_ever(self) -> int:
        """Workers that are there at some time."""
        return self.n_workers + sum(change.add for change in self.changes)

    @property
    def window_tuples(self) -> int:
        """Tuples a window."""
        return 10_000 * self.n_sources if self.window is None else self.window

    @property
    def worker_speeds(self) -> F64:
        """Speed of each worker that is ever there."""
        return np.resize(np.array(self.speeds, dtype=np.float64), self.n_workers_ever)

    @property
    def merge_seconds(self) -> float:
        """Seconds a partial state."""
        return self.service_s / 10 if self.merge_s is None else self.merge_s

    @property
    def arrival_rate(self) -> float:
        """Arrivals per second."""
        if self.rate is not None:
            return self.rate
        return 0.8 * float(self.worker_speeds[: self.n_workers].sum()) / self.service_s
