"""What one micro-batch of a chain did, from Spark's progress and the workers' reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anabranch import metrics
from anabranch.chain.spark.hop_report import HopReport, hop_reports
from anabranch.chain.spark.tables import Tables, tables_of
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.plans.unwritten import unplanned_in, unwritten_in
from anabranch.spark.progress import BatchMetrics, seconds_of


def chain_metrics(ledger: str, progress: Mapping[str, Any] | None) -> BatchMetrics | None:
    """Metrics of a batch of a chain, whose workers are listed operator by operator; None as for `batch_metrics`.

    A chain is as fast as the slowest worker of every operator lets it be, so makespan is the sum of their loads over
    the sum of the mean ones.
    """
    if progress is None:
        return None
    query, batch = str(progress["id"]), int(progress["batchId"])
    book = Ledger(ledger)
    reports = hop_reports(book, query, batch)
    if not reports:
        book.check_claimed()
        return None
    tables = tables_of(book, query, batch) or Tables()
    operators = [[r for r in reports if r.operator == i] for i in sorted({r.operator for r in reports})]
    loads = [np.array([r.tuples for r in own], dtype=np.int64) for own in operators]
    total = int(sum(load.sum() for load in loads))
    return BatchMetrics(
        batch=batch,
        tuples=int(loads[0].sum()),
        seconds=seconds_of(progress),
        makespan=metrics.makespan(*np.array([(load.max(), load.mean()) for load in loads]).T) if total else None,
        imbalance=sum(metrics.imbalance(load.astype(float)) for load in loads) / total if total else None,
        replication=None,
        partials=sum(report.partials for report in reports),
        hot_keys=tables.split,
        worker_tuples=[report.tuples for report in reports],
        worker_seconds=[report.seconds for report in reports],
        locality=locality_of(reports, tables.n_servers),
        promised=None if math.isnan(tables.promised) else tables.promised,
        moved=sum(report.flushed for report in reports),
        hosts=len({report.host for report in reports}),
        unwritten=unwritten_in(progress),
        unplanned=unplanned_in(progress),
    )


def locality_of(reports: Sequence[HopReport], n_servers: int | None = None) -> float | None:
    """Share of the tuples sent on that stayed on their host, or on their server where `n_servers` stand for hosts."""
    places = {(r.operator, r.worker): r.host if n_servers is None else r.worker % n_servers for r in reports}
    local = sent = 0
    for report in reports:
        for worker, tuples in enumerate(report.sent.tolist()):
            sent += tuples
            same = places.get((report.operator + 1, worker)) == places[report.operator, report.worker]
            local += tuples if same else 0
    return local / sent if sent else None
