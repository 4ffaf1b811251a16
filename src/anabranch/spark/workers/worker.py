"""Workers: partial states of a micro-batch, vectorised over all keys of a worker."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.groupings import Report
from anabranch.spark.plans.ledger import KEPT_BATCHES, Ledger
from anabranch.spark.plans.unwritten import attempt, flagged
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task
from anabranch.spark.workers.chunks import chunks
from anabranch.spark.workers.heaviest import heaviest
from anabranch.spark.workers.partial_states import TUPLES, PartialStates

# Rows that are grouped at once: bounds a worker's memory by this and its distinct keys.
_CHUNK = 1 << 20
# Less than this measures the task's own overhead, which would make a worker with few rows look slow.
_MEASURABLE_S = 0.1


class Worker:
    """The function that `mapInArrow` runs once per worker and batch.

    Parameters
    ----------
    partial_states
        What to compute.
    settings
        Of the query.
    """

    def __init__(self, partial_states: PartialStates, settings: QuerySettings) -> None:
        self.partial_states = partial_states
        self.settings = settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Partial states of everything that this worker received."""
        task = Task.current()
        partial, tuples, seconds = self.summarise(batches)
        states = iter([]) if partial is None else iter(partial.drop([TUPLES]).to_batches())
        if self.settings.ledger is not None:
            states = flagged(states, lambda: self.report(task, partial, tuples, seconds))
        yield from states

    def summarise(self, batches: Iterator[pa.RecordBatch]) -> tuple[pa.Table | None, int, float]:
        """Partial states, tuples, and the seconds spent on them; waiting for input does not count."""
        partials: list[pa.Table] = []
        tuples, seconds = 0, 0.0
        for table in chunks(batches, None if self.partial_states.at_once else _CHUNK):
            if not tuples:
                # Loading or compiling kernels in a new Python process is not the worker's speed.
                self.partial_states.add(table.slice(0, 1))
            began = time.perf_counter()
            if self.settings.work_us:
                time.sleep(table.num_rows * self.settings.work_us * 1e-6)
            if self.partial_states.sorts:
                table = table.take(pc.sort_indices(table, [(name, "ascending") for name in _sortable(table)]))
            partials.append(self.partial_states.add(table))
            if len(partials) > 1 and sum(p.num_rows for p in partials) > _CHUNK:
                partials = [self.partial_states.merge(pa.concat_tables(partials))]
            tuples += table.num_rows
            seconds += time.perf_counter() - began
        if not partials:
            return None, 0, 0.0
        began = time.perf_counter()
        merged = self.partial_states.merge(pa.concat_tables(partials)) if len(partials) > 1 else partials[0]
        return merged, tuples, seconds + time.perf_counter() - began

    def report(self, task: Task, partial: pa.Table | None, tuples: int, seconds: float) -> int:
        """Leave in the ledger what this worker counted and measured; how many reports could not be written: 0 or 1."""
        return attempt(str(self.settings.ledger), lambda: self._report(task, partial, tuples, seconds))

    def _report(self, task: Task, partial: pa.Table | None, tuples: int, seconds: float) -> None:
        """The report also names the heaviest keys."""
        n = self.settings.n_workers if self.settings.edge != "local" else task.partition + 1
        worker_tuples, worker_seconds = np.zeros(n, dtype=np.int64), np.zeros(n)
        worker_tuples[task.partition] = tuples
        worker_seconds[task.partition] = seconds if seconds >= _MEASURABLE_S else 0.0
        keys, counts = heaviest(partial, self.partial_states.keys)
        report = Report(
            tuples=tuples,
            worker_tuples=worker_tuples,
            worker_seconds=worker_seconds,
            hot_keys=keys,
            hot_counts=counts,
            partials=0 if partial is None else partial.num_rows,
        )
        ledger = Ledger(str(self.settings.ledger))
        ledger.write_report(task.query, task.batch, f"worker-{task.partition:06d}", report)
        if task.partition == 0:
            # Not every query has a plan task to do it.
            ledger.forget(task.query, task.batch - KEPT_BATCHES)


def _sortable(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if not pa.types.is_nested(field.type)]
