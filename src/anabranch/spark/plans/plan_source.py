"""The plan source: one small task per batch that folds the last batch's reports into a plan."""

from __future__ import annotations

import base64
import logging
import pickle
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from anabranch.groupings import Plan, Report
from anabranch.printable import printable
from anabranch.spark.data_sources import load
from anabranch.spark.plans.ledger import KEPT_BATCHES, Ledger
from anabranch.spark.plans.unwritten import UNPLANNED, UNWRITTEN, attempt, counted, flag
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task

log = logging.getLogger(__name__)
_SCHEMA = f"hash long, workers array<int>, {UNWRITTEN} int, {UNPLANNED} int"
# What an edge gets that only has to wait for the plan and reads it itself: a cross join with one row does that. To one
# that joins the plan's rows it says nothing, because no hash is null.
ONE_ROW = pa.record_batch({"hash": pa.array([None], pa.int64()), "workers": pa.array([[]], pa.list_(pa.int32()))})


def plan_rows(spark: SparkSession, settings: QuerySettings) -> DataFrame:
    """The plan of each batch as rows (key hash, workers repeated by weight), read anew in every micro-batch.

    Spark broadcasts them before any task of the edge starts, so a plan is written before it is used.
    """
    return rows_of(spark, PlanSource, settings)


def rows_of(spark: SparkSession, source: type[DataSource], settings: Any) -> DataFrame:
    """Rows of a source that gets these settings, pickled; what its task misses is in the query's progress."""
    rows = load(spark, source, {"settings": base64.b64encode(pickle.dumps(settings)).decode()})
    return counted(rows, streams=True, columns=(UNWRITTEN, UNPLANNED))


class PlanSource(DataSource):
    """A batch source with one partition, whose rows are the plan of the running micro-batch."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "anabranch-plan"

    def schema(self) -> str:
        """Key hash and its workers, and plans that could not be written or made."""
        return _SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Called once per query."""
        return _PlanReader(self.settings())

    def settings(self) -> Any:
        """What `rows_of` was given."""
        return pickle.loads(base64.b64decode(self.options["settings"]))


class OneTask(DataSourceReader):
    """Reads one partition: a task in every micro-batch."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def partitions(self) -> list[InputPartition]:
        """Called once per query."""
        return [InputPartition(0)]


class _PlanReader(OneTask):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run as a task in every micro-batch. It never raises: that would end the query, and any plan is correct."""
        task, ledger = Task.current(), str(self.settings.ledger)
        failed: list[Exception] = []
        unwritten = attempt(ledger, lambda: plan_of(self.settings, task.query, task.batch, failed))
        planned = self.settings.edge == "planned"
        # The one that all tasks of an adaptive edge find: what only this task knows a second attempt would not.
        rows = as_rows(Ledger(ledger).plan_in_force(task.query, task.batch)) if planned else ONE_ROW
        yield flag(flag(rows if rows.num_rows else ONE_ROW, unwritten), len(failed), UNPLANNED)


def plan_of(settings: QuerySettings, query: str, batch: int, failed: list[Exception] | None = None) -> Plan:
    """The plan of a batch: the one that is written, or a new one, written before it is returned.

    Where none can be made, the last one stays in force, and `failed` gets the reason.
    """
    ledger = Ledger(str(settings.ledger))
    plan = ledger.plan(query, batch)
    if plan is not None:
        return plan
    planned = [before for before in ledger.batches(query) if before < batch]
    previous = next((plan for before in reversed(planned) if (plan := ledger.plan(query, before))), None)
    reports = ledger.reports(query, batch - 1)
    try:
        plan = fold(settings, previous, reports)
    except Exception as error:  # a grouping that fails is no reason to stop
        note_failure(batch, error, failed)
        return previous or Plan()
    plan = ledger.settle_plan(query, batch, plan)
    ledger.forget(query, batch - KEPT_BATCHES)
    return plan


def note_failure(batch: int, error: Exception, failed: list[Exception] | None) -> None:
    """Say why a batch has no new plan, and have it counted."""
    log.warning("no new plan for batch %d, so the last one stays in force: %s", batch, printable(error))
    if failed is not None:
        failed.append(error)


def fold(settings: QuerySettings, previous: Plan | None, reports: dict[str, Report]) -> Plan:
    """Fold what edge and workers reported. The planned edge goes by the workers' exact counts."""
    workers = [report for name, report in reports.items() if not name.startswith("edge")]
    edges = [report for name, report in reports.items() if name.startswith("edge")]
    if not reports and previous is not None:
        # An idle or a failed batch teaches nothing, and is no reason to forget.
        plan = previous
    elif settings.edge == "planned":
        plan = settings.grouping.plan_from_counts(previous, workers, settings.n_workers, settings.seed)
    else:
        learned = [replace(r, hot_keys=Report().hot_keys, hot_counts=Report().hot_counts, tuples=0) for r in workers]
        plan = settings.grouping.fold(previous, [*edges, *learned])
    return _timed(plan, previous, len(edges), sum(report.tuples for report in workers))


def _timed(plan: Plan, previous: Plan | None, sources: int, tuples: int) -> Plan:
    """The stream's own time is that of the plans: a replayed batch finds its plan, and so its time, again.

    It goes on by what has passed on the clock, and never back: a clock may be set back.
    """
    clock = time.time()
    since = 0.0 if previous is None else max(0.0, clock - previous.clock)
    now = clock if previous is None else previous.now + since
    sources = sources or (0 if previous is None else previous.sources)
    step_s = since * max(1, sources) / tuples if tuples else 0.0
    return replace(plan, now=now, step_s=step_s, clock=clock, sources=sources)


def as_rows(plan: Plan) -> pa.RecordBatch:
    """The plan's table as the source's rows."""
    table = plan.table
    if table is None:
        return pa.record_batch({"hash": pa.array([], pa.int64()), "workers": pa.array([], pa.list_(pa.int32()))})
    workers = pa.ListArray.from_arrays(pa.array(table.offsets.astype("int32")), pa.array(table.workers))
    return pa.record_batch({"hash": pa.array(table.keys.view("int64")), "workers": workers})
