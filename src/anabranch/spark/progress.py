"""What one micro-batch did, from Spark's progress and the workers' reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch import metrics
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.plans.unwritten import unplanned_in, unwritten_in


@dataclass(frozen=True)
class BatchMetrics:
    """Figures of one micro-batch; None is what nothing was measured for.

    Parameters
    ----------
    batch, tuples, seconds
        Its number, the rows that came in, and how long it took from trigger to commit.
    makespan, imbalance
        Largest over mean tuples of a worker; largest minus mean, over all tuples. As the workers counted them; None in
        a batch without tuples.
    replication
        Partial states over distinct keys of the batch; None where Spark does not tell the keys, or there are none.
    partials
        Partial states that went to the aggregator; None where no worker left a report.
    hot_keys
        Keys that the plan of the batch treated as hot.
    worker_tuples, worker_seconds
        Per worker; empty where no worker left a report.
    malformed
        Records that could not be read.
    unwritten
        Reports and plans that the ledger did not take; the batch went on without them.
    unplanned
        Plans that could not be made; the batch went on with the one before.
    locality
        Share of the tuples that stayed on their host from one operator to the next; None without a next one.
    promised
        Locality that the tables in force had promised; None where every key goes by hash.
    moved
        Keys whose state was flushed because new tables have them elsewhere.
    hosts
        On which the workers of a chain ran.
    keys
        Distinct keys of the batch; None where `replication` is.
    """

    batch: int
    tuples: int
    seconds: float
    makespan: float | None
    imbalance: float | None
    replication: float | None
    partials: int | None
    hot_keys: int
    worker_tuples: list[int]
    worker_seconds: list[float]
    malformed: int = 0
    locality: float | None = None
    promised: float | None = None
    moved: int = 0
    hosts: int = 0
    unwritten: int = 0
    keys: int | None = None
    unplanned: int = 0

    @property
    def tuples_per_second(self) -> float:
        """Throughput of the batch."""
        return self.tuples / self.seconds if self.seconds else 0.0


def batch_metrics(ledger: str, progress: Mapping[str, Any] | None) -> BatchMetrics | None:
    """Metrics of the batch that a `StreamingQueryProgress`, as a mapping, tells about.

    None where there is no progress yet, and where not all workers left their reports of the batch in the ledger.
    """
    if progress is None:
        return None
    query, batch = str(progress["id"]), int(progress["batchId"])
    book = Ledger(ledger)
    reports = list(book.reports(query, batch, "worker").values())
    n = max((len(report.worker_tuples) for report in reports), default=0)
    if not reports or len(reports) < n:
        book.check_claimed()
        return None
    plan = book.plan(query, batch)
    tuples, seconds = np.zeros(n, dtype=np.int64), np.zeros(n)
    for report in reports:
        tuples[: len(report.worker_tuples)] += report.worker_tuples
        seconds[: len(report.worker_seconds)] += report.worker_seconds
    partials = sum(report.partials for report in reports)
    total = int(tuples.sum())
    keys = _keys(progress) if partials else None
    return BatchMetrics(
        batch=batch,
        tuples=total,
        seconds=seconds_of(progress),
        makespan=metrics.makespan_of(tuples) if total else None,
        imbalance=metrics.imbalance(tuples.astype(float)) / total if total else None,
        replication=partials / keys if keys else None,
        partials=partials,
        hot_keys=0 if plan is None else len(plan.table.keys) if plan.table is not None else len(plan.hot_keys),
        worker_tuples=tuples.tolist(),
        worker_seconds=seconds.tolist(),
        unwritten=unwritten_in(progress),
        keys=keys,
        unplanned=unplanned_in(progress),
    )


def unreported(progress: Mapping[str, Any]) -> BatchMetrics:
    """What Spark alone knows of a batch whose workers left no reports."""
    return BatchMetrics(
        batch=int(progress["batchId"]),
        tuples=int(progress["numInputRows"]),
        seconds=seconds_of(progress),
        makespan=None,
        imbalance=None,
        replication=None,
        partials=None,
        hot_keys=0,
        worker_tuples=[],
        worker_seconds=[],
        unwritten=unwritten_in(progress),
        unplanned=unplanned_in(progress),
    )


def seconds_of(progress: Mapping[str, Any]) -> float:
    """How long a batch took from trigger to commit."""
    return float(progress["durationMs"].get("triggerExecution", 0)) / 1000


def _keys(progress: Mapping[str, Any]) -> int | None:
    """The aggregator updates one row per key: as many keys as there were in the batch."""
    operators = progress.get("stateOperators") or []
    return int(operators[0]["numRowsUpdated"]) or None if len(operators) == 1 else None
