"""The central contract: a `Grouping` is a configuration, a `Router` its running state in one source."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from anabranch import snapshot
from anabranch.arrays import I32, I64, U64
from anabranch.errors import ConfigError, InputError, SnapshotError
from anabranch.groupings.plan import Plan, Report, Table, pooled

# Candidates are computed a block at a time, so that they stay in the cache between the two passes over it.
_BLOCK = 16_384


class Grouping(ABC):
    """A policy that sends each tuple to one of `n_workers` workers.

    Subclasses are frozen dataclasses, validated when made and picklable.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    needs_counts: ClassVar[bool] = False
    by_key: ClassVar[bool] = True
    # Routes depend on how often keys occur; without it `table` is the same whatever the plan says.
    learns: ClassVar[bool] = True
    # Without it, `table` never names two workers for one key.
    splits_keys: ClassVar[bool] = True
    # What a router learned is not counts that can be pooled: each source goes on with its own router.
    keeps_router: ClassVar[bool] = False
    # The name alone says nothing: without a table that is made for it, it is key grouping.
    needs_table: ClassVar[bool] = False

    @abstractmethod
    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        """Make a router; the arguments have been checked."""

    def build(self, n_workers: int, source: int = 0, n_sources: int = 1, seed: int = 0) -> Router:
        """Router of one source.

        Parameters
        ----------
        n_workers
            Workers to route to, numbered from 0.
        source, n_sources
            Which source this is, of how many: ties and round-robin starts are rotated by it.
        seed
            Seed of the hash family; the same for all sources of an edge.
        """
        if n_workers < 1:
            raise ConfigError(f"n_workers must be at least 1, got {n_workers}")
        if not 0 <= source < n_sources:
            raise ConfigError(f"source must be from 0 to n_sources - 1 = {n_sources - 1}, got {source}")
        return self._router(n_workers, source, n_sources, seed)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        """Routers of all sources. Where the grouping needs a shared board, it is one router, repeated."""
        if n_sources < 1:
            raise ConfigError(f"n_sources must be at least 1, got {n_sources}")
        return [self.build(n_workers, source, n_sources, seed) for source in range(n_sources)]

    def _build_shared(self, n_sources: int, n_workers: int, seed: int) -> list[Router]:
        """One router, repeated: what `build_all` gives where the sources share a board."""
        if n_sources < 1:
            raise ConfigError(f"n_sources must be at least 1, got {n_sources}")
        return [self.build(n_workers, seed=seed)] * n_sources

    def with_counts(self, keys: U64, counts: I64) -> Grouping:
        """The same grouping with the exact key counts of the stream; only those with `needs_counts` use them."""
        return self

    def fold(self, previous: Plan | None, reports: Sequence[Report]) -> Plan:
        """Plan of the next batch from the plan and the reports of the last one."""
        return pooled(previous, reports)

    def plan_from_counts(
        self,
        previous: Plan | None,
        reports: Sequence[Report],
        n_workers: int,
        seed: int = 0,
        cold_tuples: I64 | None = None,
    ) -> Plan:
        """Plan with a table, from exact counts instead of what routers have learned.

        Parameters
        ----------
        previous
            The plan before: its table is kept as far as it serves.
        reports
            The counts.
        n_workers, seed
            As for `table`.
        cold_tuples
            As in the plan, where that is known; by default it comes from reports of single workers.
        """
        plan = replace(pooled(previous, reports), table=None if previous is None else previous.table)
        if cold_tuples is not None:
            plan = replace(plan, cold_tuples=cold_tuples)
        return replace(plan, table=self.table(plan, n_workers, seed))

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table | None:
        """Routes as data from exact counts: key hash → workers; a key that is not in it goes home.

        None: this grouping chooses tuple by tuple, and cannot be written as a table. The edge of a Spark job that runs
        without Python a tuple needs one (`plan.table` is the table of the batch before).
        """
        return None

    @classmethod
    def has_table(cls) -> bool:
        """Whether the grouping can be written as a table."""
        return cls.table is not Grouping.table

    @property
    def warm_up(self) -> tuple[int, float]:
        """Tuples and seconds of a stream before the grouping does what it is for; on a shorter one it only learns."""
        return 0, 0.0

    def parameters(self) -> dict[str, Any]:
        """Parameters by name, those that JSON can hold."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {k: v for k, v in values.items() if isinstance(v, int | float | str | bool | None)}

    @classmethod
    def summary(cls) -> str:
        """First line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]


class Router(ABC):
    """The running state of a grouping in one source.

    No clock is read inside: time is an argument. Routers route to *indexes* of the workers alive; `set_workers` says
    which worker each index is.

    Parameters
    ----------
    grouping, n_workers, source, n_sources, seed
        As in `Grouping.build`, which makes routers.
    """

    # Tuples that the router looks at before it routes the first of them: `route` wants whole chunks, so that routes do
    # not depend on how the stream was cut.
    chunk: int = 1

    def __init__(self, grouping: Grouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        self.grouping = grouping
        self.source = source
        self.n_sources = n_sources
        self.seed = seed
        self.workers = np.arange(n_workers, dtype=np.int32)
        self.step_s = 0.0
        self._identity = True

    @property
    def n_workers(self) -> int:
        """Workers alive."""
        return len(self.workers)

    @property
    def rotation(self) -> int:
        """Where this source begins among equals, so that sources do not all begin at worker 0."""
        return self.source * self.n_workers // self.n_sources

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(array.nbytes for array in self._arrays().values())

    def route(self, keys: U64, now: float = 0.0, step_s: float = 0.0) -> I32:
        """Worker of each tuple, in order.

        Parameters
        ----------
        keys
            Key hashes.
        now
            Arrival time of the first tuple, in seconds of the stream's own time.
        step_s
            Seconds from one tuple to the next; groupings that go by time need them.
        """
        if not isinstance(keys, np.ndarray) or keys.dtype != np.uint64 or keys.ndim != 1:
            raise InputError("keys must be a one-dimensional uint64 array of hashes; use hashing.hash_keys")
        keys = np.ascontiguousarray(keys)
        self.step_s = step_s
        out = np.empty(len(keys), dtype=np.int32)
        block = self.chunk if self.chunk > 1 else _BLOCK
        for start in range(0, len(keys), block):
            self._route(keys[start : start + block], now + start * step_s, out[start : start + block])
        return out if self._identity else self.workers[out]

    @abstractmethod
    def _route(self, keys: U64, now: float, out: I32) -> None:
        """Write the index of each tuple's worker into `out`."""

    def begin_window(self) -> None:  # noqa: B027
        """Zero the loads and keep what was learned about keys; Spark calls it at the start of each batch."""

    def observe(self, report: Report) -> None:  # noqa: B027
        """Take in what the other sources and the workers reported."""

    def follow(self, plan: Plan) -> None:  # noqa: B027
        """Take in the plan of a batch, before its first tuple."""

    def report(self) -> Report:
        """What this source has learned, for `Grouping.fold`."""
        return Report()

    def set_workers(self, workers: Iterable[int]) -> None:
        """Route to these workers from now on; workers come and go in the middle of a stream."""
        new = np.array(sorted(set(workers)), dtype=np.int32)
        if not len(new):
            raise ConfigError("at least one worker must stay, got none")
        if new[0] < 0:
            raise ConfigError(f"worker numbers must not be negative, got {new[0]}")
        position = {int(worker): i for i, worker in enumerate(self.workers)}
        previous = np.array([position.get(int(worker), -1) for worker in new], dtype=np.int64)
        before = self.workers, self._identity
        self.workers = new
        self._identity = bool((new == np.arange(len(new))).all())
        try:
            self._resize(previous)
        except ConfigError:
            self.workers, self._identity = before
            raise

    def _resize(self, previous: I64) -> None:  # noqa: B027
        """Rearrange state: `previous[i]` is the old index of the worker now at i, −1 for a newcomer."""

    def snapshot(self) -> bytes:
        """State as bytes; `restore` in a router built alike continues identically."""
        return snapshot.pack(self._header(), {**self._arrays(), "workers": self.workers})

    def restore(self, data: bytes) -> None:
        """Become the router that made the snapshot. On SnapshotError this router is unchanged."""
        header, arrays = snapshot.unpack(data)
        for field, own in self._header().items():
            if header.get(field) != own:
                raise SnapshotError(
                    f"snapshot is of a router with {field} {header.get(field)!r}, this one has {own!r}; build it alike"
                )
        if set(arrays) != {*self._arrays(), "workers"}:
            raise SnapshotError(f"snapshot holds {sorted(arrays)}; it was made by another version")
        self.workers = arrays.pop("workers").astype(np.int32)
        self._identity = bool((self.workers == np.arange(self.n_workers)).all())
        self._adopt(arrays)

    def _header(self) -> dict[str, Any]:
        parameters = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in self._config().items()}
        own = {"seed": self.seed, "source": self.source, "n_sources": self.n_sources}
        return {"grouping": self.grouping.name, "parameters": parameters, **own}

    def _config(self) -> dict[str, Any]:
        """Everything that a router built alike has in common, as JSON can hold it."""
        others = {
            f.name: snapshot.fingerprint(getattr(self.grouping, f.name))
            for f in fields(self.grouping)  # type: ignore[arg-type]
            if f.name not in self.grouping.parameters()
        }
        return {**self.grouping.parameters(), **others}

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """All mutable state, by name."""

    @abstractmethod
    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over arrays that `_arrays` named; `workers` has been set."""


def of_workers(values: NDArray[Any], workers: I32) -> NDArray[Any]:
    """A report's values of these workers; 0 for a worker that came after the report was made."""
    known = workers < len(values)
    out = np.zeros(len(workers), dtype=values.dtype)
    out[known] = values[workers[known]]
    return out


def carry_over(values: I64, previous: I64, newcomers: int | None = None) -> I64:
    """Per-worker values after a change of workers; a newcomer gets `newcomers`, by default the mean of the others.

    A newcomer that started at zero would draw every tuple until it had caught up with all of the past.
    """
    stayed = previous[previous >= 0]
    if newcomers is None:
        newcomers = int(values[stayed].mean()) if len(stayed) else 0
    out = np.full(len(previous), newcomers, dtype=np.int64)
    out[previous >= 0] = values[stayed]
    return out
