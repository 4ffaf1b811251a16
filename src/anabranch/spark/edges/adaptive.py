"""The adaptive edge: one router per task, which runs every grouping tuple by tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import IntegerType

from anabranch.arrays import I32, U64
from anabranch.errors import SnapshotError
from anabranch.groupings import Grouping, Plan, Router
from anabranch.spark.columns.keys import quoted
from anabranch.spark.edges import packs
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.plans.plan_source import plan_rows
from anabranch.spark.plans.unwritten import attempt, flagged, mapped
from anabranch.spark.settings import HASH, WORKER, QuerySettings
from anabranch.spark.task import Task

# A task cannot know how many there are. Counting in bit-reversed order spreads any number of them evenly.
_SOURCE_BITS = 10


def route_adaptively(df: DataFrame, settings: QuerySettings) -> DataFrame:
    """Add the worker of each row, chosen by a router that sees the task's rows in order."""
    df = _behind_plan(df, settings)
    return df.withColumn(WORKER, _route_udf(settings)(_hashed(settings)))


def pack_adaptively(df: DataFrame, settings: QuerySettings) -> DataFrame:
    """Rows on their way to workers, many in one: a worker, and a blob with its rows of some ten thousand.

    Spark then moves blobs, not rows: the exchange, and the way into the worker's Python, cost next to nothing a row.
    `packs.unpacked` gives the rows back.
    """
    df = _behind_plan(df, settings).withColumn(HASH, _hashed(settings))
    return mapped(df, _Pack(settings).__call__, f"{WORKER} int, {packs.ROWS} binary", settings.ledger)


def _behind_plan(df: DataFrame, settings: QuerySettings) -> DataFrame:
    """The rows; none is read before the batch has its plan."""
    if settings.ledger is None or not df.isStreaming:
        return df
    return df.crossJoin(F.broadcast(plan_rows(df.sparkSession, settings).select()))


def _hashed(settings: QuerySettings) -> Column:
    return F.xxhash64(*(quoted(key) for key in settings.keys))


class _Source:
    """One task's router from the plan of its batch to its report."""

    def __init__(self, settings: QuerySettings, make_router: Callable[..., Router]) -> None:
        self.settings, self.task = settings, Task.current()
        plan = plan_for(settings, self.task)
        self.router = make_router(settings, self.task.partition, plan, _kept(settings, self.task))
        # A batch is there as a whole, so time stands still in it; only keys that age by time need its pace.
        self.now, self.step_s = plan.now, plan.step_s if settings.grouping.keeps_router else 0.0

    def route(self, keys: U64) -> I32:
        """Workers of the next rows."""
        workers = self.router.route(keys, self.now, self.step_s)
        self.now += len(keys) * self.step_s
        # repartitionById wraps what is out of range, silently.
        if len(workers) and not (workers.min() >= 0 and workers.max() < self.settings.n_workers):
            raise AssertionError(f"{self.settings.grouping.name} routed beyond {self.settings.n_workers} workers")
        return workers

    def report(self) -> int:
        """Leave in the ledger what was learned; how many reports could not be written: 0 or 1."""
        if self.settings.ledger is None:
            return 0
        return attempt(self.settings.ledger, lambda: _report(self.settings, self.task, self.router))


class _Pack:
    """The function that `mapInArrow` runs once per source and batch: rows in, a blob per worker out."""

    def __init__(self, settings: QuerySettings) -> None:
        # Taken on the driver: tasks import this module anew, and what a test puts in the router's place stays behind.
        self.settings, self.make_router = settings, router_of

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = _Source(self.settings, self.make_router)
        packed = self._packed(source, batches)
        yield from packed if self.settings.ledger is None else flagged(packed, source.report)

    def _packed(self, source: _Source, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in packs.in_chunks(batches, source.router.chunk, self.settings.n_workers):
            workers = source.route(_keys(rows))
            yield packs.packed(rows.drop([HASH]), workers, self.settings.n_workers, WORKER)


def _route_udf(settings: QuerySettings) -> Callable[..., Column]:
    def route(hashes: Iterator[pa.Array]) -> Iterator[pa.Array]:
        source = _Source(settings, router_of)
        batches = (pa.record_batch({HASH: array}) for array in hashes)
        for rows in packs.in_chunks(batches, source.router.chunk, settings.n_workers):
            yield pa.array(source.route(_keys(rows)))
        source.report()

    # Written out because this module's annotations are strings, which Spark cannot read inside a function.
    route.__annotations__ = {"hashes": Iterator[pa.Array], "return": Iterator[pa.Array]}
    udf: Any = arrow_udf(route, IntegerType())  # type: ignore[call-overload]
    # Routes depend on the rows before: Spark must not evaluate them twice or reorder around them.
    return udf.asNondeterministic()  # type: ignore[no-any-return]


def _keys(rows: pa.Table) -> U64:
    return np.asarray(rows[HASH].to_numpy().view(np.uint64))


def warm_up(settings: QuerySettings) -> None:
    """Compile the grouping's kernels once, here: on one machine all Python workers then find them compiled."""
    if settings.edge == "adaptive":
        load(settings.grouping, settings.n_workers)


def load(grouping: Grouping, n_workers: int) -> None:
    """Run all of a grouping's kernels."""
    router = grouping.build(n_workers)
    router.route(np.arange(4096, dtype=np.uint64) << np.uint64(52), 0.0, 0.1)
    router.snapshot()
    if not grouping.needs_counts:
        router.follow(grouping.fold(None, [router.report()]))


def plan_for(settings: QuerySettings, task: Task) -> Plan:
    """What the routers of this batch start from; nothing where there is no ledger."""
    if settings.ledger is None:
        return Plan()
    return Ledger(settings.ledger).plan_in_force(task.query, task.batch)


def router_of(settings: QuerySettings, partition: int, plan: Plan, kept: bytes = b"") -> Router:
    """The router of one task at the start of a batch: zero loads, and what is known about keys."""
    if plan.sources and not settings.grouping.keeps_router:
        source, n_sources = partition % plan.sources, plan.sources
    else:
        source, n_sources = _reverse_bits(partition), 1 << _SOURCE_BITS
    router = settings.grouping.build(settings.n_workers, source, n_sources, settings.seed)
    if plan.sources:
        router.follow(plan)
    if kept:
        with suppress(SnapshotError):
            router.restore(kept)
    router.begin_window()
    return router


def _report(settings: QuerySettings, task: Task, router: Router) -> None:
    report = router.report()
    if settings.grouping.keeps_router:
        report = replace(report, sketch=router.snapshot())
    Ledger(str(settings.ledger)).write_report(task.query, task.batch, _name(task), report)


def _kept(settings: QuerySettings, task: Task) -> bytes:
    """The router that this source ended the last batch with."""
    if settings.ledger is None or not settings.grouping.keeps_router:
        return b""
    last = Ledger(settings.ledger).reports(task.query, task.batch - 1, _name(task))
    return last[_name(task)].sketch if last else b""


def _name(task: Task) -> str:
    return f"edge-{task.partition:06d}"


def _reverse_bits(number: int) -> int:
    number %= 1 << _SOURCE_BITS
    return int(f"{number:0{_SOURCE_BITS}b}"[::-1], 2)
