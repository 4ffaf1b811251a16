"""What a worker of a chain reports: where it ran, what it got and where it sent it."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from anabranch import snapshot
from anabranch.arrays import I64
from anabranch.errors import SnapshotError
from anabranch.groupings import Report
from anabranch.spark.plans.ledger import Ledger, parse


@dataclass(frozen=True, eq=False)
class HopReport:
    """One worker of one operator in one batch.

    Parameters
    ----------
    operator, worker
        Their numbers.
    host
        Where the worker ran.
    tuples, seconds
        That it got, and that it spent on them.
    partials
        Partial states that it made of them.
    flushed
        Keys whose states it gave up because new tables have them elsewhere.
    sent
        Tuples to each worker of the next operator; empty for the last.
    """

    operator: int
    worker: int
    host: str
    tuples: int
    seconds: float
    partials: int
    flushed: int
    sent: I64

    @property
    def name(self) -> str:
        """Of its file."""
        return f"worker-{self.operator:03d}-{self.worker:06d}"

    def write(self, ledger: Ledger, query: str, batch: int) -> None:
        """Leave it in the ledger, as a report with what only chains have in its sketch."""
        own = {"kind": "hop", "operator": self.operator, "worker": self.worker, "host": self.host}
        sketch = snapshot.pack({**own, "flushed": self.flushed}, {"sent": self.sent})
        report = Report(
            tuples=self.tuples,
            worker_tuples=np.array([self.tuples]),
            worker_seconds=np.array([self.seconds]),
            partials=self.partials,
            sketch=sketch,
        )
        ledger.write_report(query, batch, self.name, report)


def hop_reports(ledger: Ledger, query: str, batch: int) -> list[HopReport]:
    """Reports of a batch, by operator and worker; damaged ones are left out."""
    found = []
    for report in ledger.reports(query, batch, "worker").values():
        with suppress(SnapshotError):
            found.append(parse(partial(_hop_report, report), report.sketch))
    return found


def _hop_report(report: Report, sketch: bytes) -> HopReport:
    header, arrays = snapshot.unpack(sketch)
    return HopReport(
        header["operator"],
        header["worker"],
        header["host"],
        report.tuples,
        float(report.worker_seconds.sum()),
        report.partials,
        header["flushed"],
        arrays["sent"],
    )


def host_name() -> str:
    """Where this task runs, the same for all tasks of a host.

    Spark does not tell Python. The host's own name tells hosts apart, and, where several executors stand for hosts on
    one machine, the address that Spark was told to use.
    """
    return "/".join(filter(None, [socket.gethostname(), os.environ.get("SPARK_LOCAL_IP")]))
