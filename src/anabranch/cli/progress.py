"""Progress of a running query, a line a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import typer

from anabranch.report.live import LiveRun
from anabranch.report.units import count, duration, fraction, number, rate

if TYPE_CHECKING:
    from anabranch.spark.progress import BatchMetrics


class Progress:
    """Prints batches to stderr as they are done, and sums them up."""

    def __init__(self) -> None:
        self._batches: list[BatchMetrics] = []

    def batch(self, metrics: BatchMetrics) -> None:
        """Print the line of a batch."""
        starting = "" if self._batches else " · with the start of Python workers"
        self._batches.append(metrics)
        typer.echo(batch_line(metrics) + starting, err=True)

    def late(self, malformed: int) -> None:
        """Say what an earlier run had left to put aside."""
        typer.echo(f"{count(malformed)} malformed of the batches before are now put aside, too", err=True)

    def restart(self, number: int, cause: str) -> None:
        """Say that a query is started again, and why."""
        typer.echo(f"restart {number} from the checkpoint: {cause}", err=True)

    @property
    def malformed(self) -> int:
        """Malformed rows of all batches."""
        return sum(metrics.malformed for metrics in self._batches)

    def summary(self, *, stopped: bool) -> None:
        """Print what all batches came to."""
        if not self._batches:
            typer.echo("stopped before a batch was done" if stopped else "nothing new to read", err=True)
            return
        # The first batch starts processes and compiles: what comes after it tells how fast the rest will be.
        steady = self._batches[1:] or self._batches
        run, rest = live_run("", self._batches), live_run("", steady)
        # Not those of a run, which sums over workers: those of a chain's operators get every tuple once each.
        tuples = sum(one.tuples for one in self._batches)
        makespan = sum(one.makespan * one.tuples for one in self._batches) / tuples if tuples else math.nan
        seconds = sum(one.seconds for one in steady)
        throughput = sum(one.tuples for one in steady) / seconds if seconds else math.nan
        after = " after the first batch" * (len(self._batches) > 1)
        batches = f"{count(len(self._batches))} batch{'es' if len(self._batches) > 1 else ''}"
        parts = [
            f"stopped after {batches}" if stopped else f"done: {batches}",
            f"{count(tuples)} tuples",
            f"{rate(throughput)} tuples/s{after}",
            f"batch p50 {duration(rest.batch_s(0.5))}, p99 {duration(rest.batch_s(0.99))}",
            f"makespan {number(makespan)}",
            f"replication {number(run.replication)} a batch",
            *_malformed(self.malformed),
        ]
        typer.echo(" · ".join(parts), err=True)


def batch_line(metrics: BatchMetrics) -> str:
    """One batch in one line."""
    parts = [
        f"batch {metrics.batch}",
        f"{count(metrics.tuples)} tuples in {duration(metrics.seconds)}",
        f"{rate(metrics.tuples_per_second)} tuples/s",
        f"makespan {number(metrics.makespan)}",
        f"imbalance {fraction(metrics.imbalance)}",
        f"replication {number(metrics.replication)}",
        *([] if math.isnan(metrics.locality) else _locality(metrics)),
        *_hot_keys(metrics.hot_keys),
        *_malformed(metrics.malformed),
    ]
    return " · ".join(parts)


def _locality(metrics: BatchMetrics) -> list[str]:
    """How many tuples stayed on their host, beside what the tables promised; and the states that moved."""
    promised = "" if math.isnan(metrics.promised) else f" of {fraction(metrics.promised)} promised"
    moved = [f"{count(metrics.moved)} states moved"] if metrics.moved else []
    hosts = f"{count(metrics.hosts)} host{'s' if metrics.hosts > 1 else ''}"
    if metrics.hosts == 1 and metrics.locality == 1.0:
        return ["on 1 host, where every tuple is local"]
    return [f"locality {fraction(metrics.locality)}{promised} on {hosts}", *moved]


def _hot_keys(n: int) -> list[str]:
    return [f"{count(n)} hot key{'s' * (n > 1)}"] if n else []


def _malformed(n: int) -> list[str]:
    return [f"{count(n)} malformed"] if n else []


def live_run(grouping: str, batches: Sequence[BatchMetrics]) -> LiveRun:
    """The batches of a query as a report takes them; one with fewer workers than another had none on the rest."""
    n_workers = max(len(metrics.worker_tuples) for metrics in batches)
    worker_tuples = np.zeros((len(batches), n_workers))
    for row, metrics in zip(worker_tuples, batches, strict=True):
        row[: len(metrics.worker_tuples)] = metrics.worker_tuples
    partials = np.array([float(metrics.partials) for metrics in batches])
    with np.errstate(invalid="ignore", divide="ignore"):
        keys = partials / np.array([metrics.replication for metrics in batches])
    seconds = np.array([metrics.seconds for metrics in batches])
    return LiveRun(grouping, seconds, partials, np.nan_to_num(keys), worker_tuples)
