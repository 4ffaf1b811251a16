"""What sources and workers report, and what routers are told at the start of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch import snapshot
from anabranch.arrays import F64, I32, I64, U64
from anabranch.errors import SnapshotError

PLANS_AVERAGED = 40


def _no_hashes() -> U64:
    return np.zeros(0, dtype=np.uint64)


def _no_counts() -> I64:
    return np.zeros(0, dtype=np.int64)


def _no_seconds() -> F64:
    return np.zeros(0, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Report:
    """One source's or the workers' account of a period.

    Parameters
    ----------
    now
        Time of the report, in the stream's own time.
    tuples
        Tuples that the counts below refer to.
    worker_tuples, worker_seconds
        Per worker: tuples received and seconds spent on them since the last report. Empty in a source's report.
    hot_keys, hot_counts
        Heaviest keys (hashes) and their counts, heaviest first. Empty where no sketch is kept.
    sketch
        A grouping's own summary, opaque here.
    partials
        Partial states that the workers hold, one per key and worker. 0 in a source's report.
    """

    now: float = 0.0
    tuples: int = 0
    worker_tuples: I64 = field(default_factory=_no_counts)
    worker_seconds: F64 = field(default_factory=_no_seconds)
    hot_keys: U64 = field(default_factory=_no_hashes)
    hot_counts: I64 = field(default_factory=_no_counts)
    sketch: bytes = b""
    partials: int = 0


@dataclass(frozen=True, eq=False)
class Table:
    """Routes as data: key hash → workers, repeated by weight. A key that is not in it goes home."""

    keys: U64
    offsets: I64
    workers: I32

    def workers_of(self, key: int) -> I32:
        """Workers of one key hash; empty when the key goes home."""
        at = np.flatnonzero(self.keys == np.uint64(key))
        if not len(at):
            return self.workers[:0]
        return self.workers[self.offsets[at[0]] : self.offsets[at[0] + 1]]


def pack_table(table: Table) -> bytes:
    """Bytes that `unpack_table` reads."""
    return snapshot.pack({"kind": "table"}, {f.name: getattr(table, f.name) for f in fields(table)})


def unpack_table(data: bytes) -> Table:
    """A table from its bytes; SnapshotError when they are damaged or something else."""
    _, arrays = _unpack(data, "table", ("keys", "offsets", "workers"))
    return Table(arrays["keys"], arrays["offsets"], arrays["workers"])


def to_all(keys: U64, n_workers: int) -> Table:
    """The table that sends each of these keys to every worker."""
    workers = np.tile(np.arange(n_workers, dtype=np.int32), len(keys))
    return Table(keys, np.arange(len(keys) + 1, dtype=np.int64) * n_workers, workers)


@dataclass(frozen=True, eq=False)
class Plan:
    """What every router should know at the start of a batch.

    Parameters
    ----------
    version
        Number of plans before this one.
    tuples
        Tuples that `hot_counts` refer to, over all sources.
    hot_keys, hot_counts
        Heaviest keys over all sources, heaviest first.
    seconds_per_tuple
        Measured per worker, averaged over the last plans; empty when nothing was measured.
    sources
        Sources that reported; 0 when that is not known.
    now, step_s
        Time of the batch's first tuple, in the stream's own time, and seconds between two tuples of a source.
    table
        Routes, for groupings that can be written as a table.
    n_keys
        Partial states of the last batch, about its distinct keys; 0 when that is not known.
    cold_tuples
        Tuples per home worker of the keys that are not among `hot_keys`; empty when that is not known.
    clock
        What the clock said when the plan was made. The stream's own time goes on from plan to plan by as much as the
        clock does, and stands still where the clock was set back.
    idle
        For each key of `table`, the plans since any source had a tuple of it; empty where that is 0 for all of them.
    """

    version: int = 0
    tuples: int = 0
    hot_keys: U64 = field(default_factory=_no_hashes)
    hot_counts: I64 = field(default_factory=_no_counts)
    seconds_per_tuple: F64 = field(default_factory=_no_seconds)
    sources: int = 0
    now: float = 0.0
    step_s: float = 0.0
    table: Table | None = None
    n_keys: int = 0
    cold_tuples: I64 = field(default_factory=_no_counts)
    clock: float = 0.0
    idle: I64 = field(default_factory=_no_counts)


def pooled(previous: Plan | None, reports: Sequence[Report]) -> Plan:
    """The plan after `previous`, without a table: what the reports say of keys and of workers, added up."""
    hot_keys, hot_counts = pool_hot_keys(list(reports))
    return Plan(
        version=0 if previous is None else previous.version + 1,
        tuples=sum(report.tuples for report in reports),
        hot_keys=hot_keys,
        hot_counts=hot_counts,
        n_keys=sum(report.partials for report in reports),
        cold_tuples=pool_cold(list(reports)),
        seconds_per_tuple=pool_seconds(previous, list(reports)),
    )


def pool_hot_keys(reports: list[Report]) -> tuple[U64, I64]:
    """Hot keys of all reports with their counts added up, heaviest first."""
    reports = [report for report in reports if len(report.hot_keys)]
    if not reports:
        return _no_hashes(), _no_counts()
    keys, inverse = np.unique(np.concatenate([report.hot_keys for report in reports]), return_inverse=True)
    weights = np.concatenate([report.hot_counts for report in reports])
    counts = np.bincount(inverse, weights=weights, minlength=len(keys)).astype(np.int64)
    order = np.lexsort((keys, -counts))
    return keys[order], counts[order]


def pool_cold(reports: list[Report]) -> I64:
    """Tuples per worker of keys that are not among its heaviest: such keys are at home there.

    From reports of single workers; empty where there are others only.
    """
    cold = _no_counts()
    for report in reports:
        (busy,) = np.nonzero(report.worker_tuples)
        if len(busy) == 1 and len(report.hot_counts):
            cold = np.pad(cold, (0, max(0, len(report.worker_tuples) - len(cold))))
            cold[busy[0]] += max(0, int(report.worker_tuples[busy[0]] - report.hot_counts.sum()))
    return cold


def pool_seconds(previous: Plan | None, reports: list[Report]) -> F64:
    """Seconds per tuple of each worker, averaged over the last `PLANS_AVERAGED` plans or so, because one is noisy.

    The previous figure stays where a worker reported nothing.
    """
    reports = [r for r in reports if len(r.worker_tuples) and len(r.worker_tuples) == len(r.worker_seconds)]
    known = previous.seconds_per_tuple if previous is not None else _no_seconds()
    if not reports:
        return known
    n = max(len(known), *(len(report.worker_tuples) for report in reports))
    tuples, seconds = np.zeros(n), np.zeros(n)
    for report in reports:
        tuples[: len(report.worker_tuples)] += report.worker_tuples
        seconds[: len(report.worker_seconds)] += report.worker_seconds
    before = np.full(n, np.nan)
    before[: len(known)] = known
    # A clock too coarse for a batch measures nothing, not a worker of infinite speed.
    seen = (tuples > 0) & (seconds > 0)
    new = np.divide(seconds, tuples, out=before.copy(), where=seen)
    n_plans = 1 if previous is None else previous.version + 2
    average = before + (new - before) / min(n_plans, PLANS_AVERAGED)
    pooled: F64 = np.where(np.isnan(before), new, average)
    return pooled


_REPORT_ARRAYS = ("worker_tuples", "worker_seconds", "hot_keys", "hot_counts")
_PLAN_ARRAYS = ("hot_keys", "hot_counts", "cold_tuples", "seconds_per_tuple")
_PLAN_NUMBERS = ("version", "tuples", "n_keys", "sources", "now", "step_s", "clock")
# Names on disk that are not those of the fields.
_ON_DISK = {"n_keys": "keys"}


def pack_report(report: Report) -> bytes:
    """Bytes that `unpack_report` reads."""
    arrays = {name: getattr(report, name) for name in _REPORT_ARRAYS}
    arrays["sketch"] = np.frombuffer(report.sketch, dtype=np.uint8)
    header = {"kind": "report", "now": report.now, "tuples": report.tuples, "partials": report.partials}
    return snapshot.pack(header, arrays)


def unpack_report(data: bytes) -> Report:
    """A report from its bytes; SnapshotError when they are damaged or something else."""
    header, arrays = _unpack(data, "report", (*_REPORT_ARRAYS, "sketch"))
    sketch = arrays.pop("sketch").tobytes()
    return Report(now=header["now"], tuples=header["tuples"], partials=header["partials"], sketch=sketch, **arrays)


def pack_plan(plan: Plan) -> bytes:
    """Bytes that `unpack_plan` reads."""
    arrays = {name: getattr(plan, name) for name in _PLAN_ARRAYS}
    if plan.table is not None:
        arrays |= {f"table.{f.name}": getattr(plan.table, f.name) for f in fields(plan.table)}
    if len(plan.idle):
        arrays["idle"] = plan.idle
    header = {_ON_DISK.get(name, name): getattr(plan, name) for name in _PLAN_NUMBERS}
    return snapshot.pack({"kind": "plan", **header}, arrays)


def unpack_plan(data: bytes) -> Plan:
    """A plan from its bytes; SnapshotError when they are damaged or something else."""
    header, arrays = _unpack(data, "plan", _PLAN_ARRAYS)
    columns = {f.name: arrays[f"table.{f.name}"] for f in fields(Table) if f"table.{f.name}" in arrays}
    table = Table(**columns) if columns else None
    numbers: dict[str, Any] = {name: header[_ON_DISK.get(name, name)] for name in _PLAN_NUMBERS}
    found: dict[str, Any] = {name: arrays[name] for name in _PLAN_ARRAYS}
    return Plan(**numbers, **found, table=table, idle=arrays.get("idle", _no_counts()))


def _unpack(data: bytes, kind: str, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    header, arrays = snapshot.unpack(data)
    if header.get("kind") != kind or not set(names) <= set(arrays):
        raise SnapshotError(f"expected a {kind}, found {header.get('kind', 'something else')!r}")
    return header, arrays
