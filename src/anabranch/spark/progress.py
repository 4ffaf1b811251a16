"""What one micro-batch did, from Spark's progress and the workers' reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch import metrics
from anabranch.spark.ledger import Ledger


@dataclass(frozen=True)
class BatchMetrics:
    """Figures of one micro-batch.

    Parameters
    ----------
    batch, tuples, seconds
        Its number, the rows that came in, and how long it took from trigger to commit.
    makespan, imbalance
        Largest over mean tuples of a worker; largest minus mean, over all tuples. As the workers counted them.
    replication
        Partial states over distinct keys of the batch; not a number where Spark does not tell the keys.
    partials
        Partial states that went to the aggregator.
    hot_keys
        Keys that the plan of the batch treated as hot.
    worker_tuples, worker_seconds
        Per worker.
    malformed
        Records that could not be read.
    """

    batch: int
    tuples: int
    seconds: float
    makespan: float
    imbalance: float
    replication: float
    partials: int
    hot_keys: int
    worker_tuples: list[int]
    worker_seconds: list[float]
    malformed: int = 0

    @property
    def tuples_per_second(self) -> float:
        """Throughput of the batch."""
        return self.tuples / self.seconds if self.seconds else 0.0


def batch_metrics(ledger: str, progress: Mapping[str, Any]) -> BatchMetrics:
    """Metrics of the batch that a `StreamingQueryProgress`, as a mapping, tells about."""
    query, batch = str(progress["id"]), int(progress["batchId"])
    book = Ledger(ledger)
    reports = list(book.reports(query, batch, "worker").values())
    plan = book.plan(query, batch)
    n = max((len(report.worker_tuples) for report in reports), default=1)
    tuples, seconds = np.zeros(n, dtype=np.int64), np.zeros(n)
    for report in reports:
        tuples[: len(report.worker_tuples)] += report.worker_tuples
        seconds[: len(report.worker_seconds)] += report.worker_seconds
    partials = sum(report.partials for report in reports)
    total = int(tuples.sum())
    return BatchMetrics(
        batch=batch,
        tuples=total,
        seconds=progress["durationMs"].get("triggerExecution", 0) / 1000,
        makespan=float(tuples.max() / tuples.mean()) if total else 1.0,
        imbalance=metrics.imbalance(tuples.astype(float)) / total if total else 0.0,
        replication=_replication(partials, progress),
        partials=partials,
        hot_keys=0 if plan is None else len(plan.table.keys) if plan.table is not None else len(plan.hot_keys),
        worker_tuples=tuples.tolist(),
        worker_seconds=seconds.tolist(),
    )


def _replication(partials: int, progress: Mapping[str, Any]) -> float:
    """The aggregator updates one row a key: as many keys as there were in the batch."""
    operators = progress.get("stateOperators") or []
    keys = int(operators[0]["numRowsUpdated"]) if len(operators) == 1 else 0
    return partials / keys if keys else float("nan")
