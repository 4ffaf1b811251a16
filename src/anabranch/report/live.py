"""Runs of a real query, as a table and as a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import rich.table
from rich import box
from rich.text import Text

from anabranch import metrics
from anabranch.arrays import F64
from anabranch.printable import printable
from anabranch.report import units
from anabranch.report.comparison import Entry, Row
from anabranch.report.panel import Axis, Panel, Series
from anabranch.report.run_page import document, facts, pictures, rows_table

HEADERS = ("grouping", "tuples/s", "batch p50", "batch p99", "makespan", "replication a batch")


@dataclass(frozen=True, eq=False)
class LiveRun:
    """What the micro-batches of one query did.

    Parameters
    ----------
    grouping
        Its name.
    seconds, partials, keys
        Per batch: duration, partial states sent to the aggregator, distinct keys.
    worker_tuples
        Per batch and worker.
    """

    grouping: str
    seconds: F64
    partials: F64
    keys: F64
    worker_tuples: F64

    @property
    def tuples(self) -> float:
        """Tuples of all batches."""
        return float(self.worker_tuples.sum())

    @property
    def throughput(self) -> float:
        """Tuples a second."""
        total = float(self.seconds.sum())
        return self.tuples / total if total else math.nan

    @property
    def makespan(self) -> float:
        """Σ over batches of the largest load over Σ of the mean load: 1.0 is perfect."""
        return metrics.makespan_of(self.worker_tuples)

    @property
    def replication(self) -> float:
        """Partial states per distinct key of a batch; not a number where the keys are not known."""
        known = self.keys > 0
        return float(self.partials[known].sum() / self.keys[known].sum()) if known.any() else math.nan

    def batch_s(self, share: float) -> float:
        """Duration that this share of the batches did not exceed."""
        return float(np.quantile(self.seconds, share, method="inverted_cdf"))


def live_rows(runs: Sequence[LiveRun]) -> list[Row]:
    """Rows under HEADERS; the best of each column is marked."""
    texts = [
        [
            units.rate(run.throughput),
            units.duration(run.batch_s(0.5)),
            units.duration(run.batch_s(0.99)),
            units.number(run.makespan),
            units.number(run.replication),
        ]
        for run in runs
    ]
    values = [[-r.throughput, r.batch_s(0.5), r.batch_s(0.99), r.makespan, r.replication] for r in runs]
    best = [min(range(len(runs)), key=lambda at: values[at][column]) for column in range(len(HEADERS) - 1)]
    marked = [
        tuple(
            Entry(text, best=len(runs) > 1 and text == texts[best[column]][column]) for column, text in enumerate(row)
        )
        for row in texts
    ]
    return [Row((Entry(run.grouping), *row), opens=False) for run, row in zip(runs, marked, strict=True)]


def live_table(runs: Sequence[LiveRun]) -> rich.table.Table:
    """Comparison for a terminal, the best of each column in green."""
    made = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for at, header in enumerate(HEADERS):
        made.add_column(header, justify="right" if at else "left", no_wrap=True)
    for row in live_rows(runs):
        made.add_row(*(Text(printable(entry.text), style="bold green" if entry.best else "") for entry in row.entries))
    return made


def live_page(title: str, listed: Mapping[str, str], runs: Sequence[LiveRun]) -> str:
    """HTML of a page that works offline: what was run, the comparison, and the pictures."""
    names = [run.grouping for run in runs]
    shown = [loads(runs), batch_times(runs), makespans(runs)]
    made = "Measured by anabranch on Spark Structured Streaming"
    return document(title, made, [facts(listed), rows_table(HEADERS, live_rows(runs)), pictures(names, shown)])


def loads(runs: Sequence[LiveRun]) -> Panel:
    """Load per worker relative to the mean, averaged over batches by rank: the slowest of each batch is first."""
    series = []
    for run in runs:
        ordered = -np.sort(-run.worker_tuples, axis=1)
        relative = ordered.sum(axis=0) / max(1.0, float(run.worker_tuples.mean(axis=1).sum()))
        note = f"makespan {units.number(run.makespan)} · replication {units.number(run.replication)}"
        series.append(Series(run.grouping, np.arange(1.0, len(relative) + 1), relative, note=note))
    x, y = Axis("workers, most loaded of each batch first"), Axis("load / mean load")
    return Panel("Load per worker", x, y, "bar", tuple(series))


def batch_times(runs: Sequence[LiveRun]) -> Panel:
    """Duration of each batch."""
    series = tuple(Series(run.grouping, _numbers(run), run.seconds) for run in runs)
    y = Axis("seconds from trigger to commit", from_zero=True)
    return Panel("Batch times", Axis("batch"), y, "line", series)


def makespans(runs: Sequence[LiveRun]) -> Panel:
    """Largest over mean load of each batch."""
    series = tuple(
        Series(run.grouping, _numbers(run), np.array([metrics.makespan_of(loads) for loads in run.worker_tuples]))
        for run in runs
    )
    return Panel("Makespan", Axis("batch"), Axis("largest / mean load", from_zero=True), "line", series)


def _numbers(run: LiveRun) -> F64:
    return np.arange(len(run.seconds), dtype=np.float64)
