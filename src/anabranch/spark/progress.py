"""What one micro-batch did, from Spark's progress and the workers' reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch import metrics
from anabranch.spark.hop_report import HopReport, hop_reports
from anabranch.spark.ledger import Ledger
from anabranch.spark.tables import Tables, tables_of


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
    locality
        Share of the tuples that stayed on their host from one operator to the next; not a number without a next one.
    promised
        Locality that the tables in force had promised; not a number where every key goes by hash.
    moved
        Keys whose state was flushed because new tables have them elsewhere.
    hosts
        On which the workers of a chain ran.
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
    locality: float = float("nan")
    promised: float = float("nan")
    moved: int = 0
    hosts: int = 0

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


def chain_metrics(ledger: str, progress: Mapping[str, Any]) -> BatchMetrics:
    """The same for a chain of operators, whose workers are listed operator by operator.

    A chain is as fast as the slowest worker of every operator lets it be, so makespan is the sum of their loads over
    the sum of the mean ones.
    """
    query, batch = str(progress["id"]), int(progress["batchId"])
    book = Ledger(ledger)
    reports = hop_reports(book, query, batch)
    tables = tables_of(book, query, batch) or Tables()
    operators = [[r for r in reports if r.operator == i] for i in sorted({r.operator for r in reports})]
    loads = [np.array([r.tuples for r in own], dtype=np.int64) for own in operators]
    total = int(sum(load.sum() for load in loads))
    slowest = sum(int(load.max()) for load in loads)
    return BatchMetrics(
        batch=batch,
        tuples=int(loads[0].sum()) if loads else 0,
        seconds=progress["durationMs"].get("triggerExecution", 0) / 1000,
        makespan=slowest / sum(float(load.mean()) for load in loads) if total else 1.0,
        imbalance=sum(metrics.imbalance(load.astype(float)) for load in loads) / total if total else 0.0,
        replication=float("nan"),
        partials=sum(report.partials for report in reports),
        hot_keys=tables.split,
        worker_tuples=[report.tuples for report in reports],
        worker_seconds=[report.seconds for report in reports],
        locality=locality_of(reports, tables.n_servers),
        promised=tables.promised,
        moved=sum(report.flushed for report in reports),
        hosts=len({report.host for report in reports}),
    )


def locality_of(reports: Sequence[HopReport], n_servers: int | None = None) -> float:
    """Share of the tuples sent on that stayed on their host, or on their server where `n_servers` stand for hosts."""
    places = {(r.operator, r.worker): r.host if n_servers is None else r.worker % n_servers for r in reports}
    local = sent = 0
    for report in reports:
        for worker, tuples in enumerate(report.sent.tolist()):
            sent += tuples
            same = places.get((report.operator + 1, worker)) == places[report.operator, report.worker]
            local += tuples if same else 0
    return local / sent if sent else float("nan")


def _replication(partials: int, progress: Mapping[str, Any]) -> float:
    """The aggregator updates one row a key: as many keys as there were in the batch."""
    operators = progress.get("stateOperators") or []
    keys = int(operators[0]["numRowsUpdated"]) if len(operators) == 1 else 0
    return partials / keys if keys else float("nan")
