"""Progress of a running query, one line per batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from anabranch.arrays import F64
from anabranch.cli.output import say
from anabranch.metrics import makespan
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
        say(batch_line(metrics) + starting)

    def late(self, malformed: int) -> None:
        """Say what an earlier run had left to put aside."""
        say(f"{count(malformed)} malformed of the batches before are now put aside, too")

    def restart(self, number: int, cause: str) -> None:
        """Say that a query is started again, and why."""
        say(f"restart {number} from the checkpoint: {cause}")

    @property
    def malformed(self) -> int:
        """Malformed rows of all batches."""
        return sum(metrics.malformed for metrics in self._batches)

    def summary(self, *, stopped: bool) -> None:
        """Print what all batches came to."""
        if not self._batches:
            say("stopped before a batch was done" if stopped else "nothing new to read")
            return
        # The first batch starts processes and compiles: what comes after it tells how fast the rest will be. A batch
        # without rows, in which a bounded run hands on what workers hold, tells nothing.
        later = [one for one in self._batches[1:] if one.tuples]
        steady = later or self._batches[:1]
        run, rest = live_run("", self._batches), live_run("", steady)
        # Not those of a run, which sums over workers: those of a chain's operators get every tuple once each.
        tuples = sum(one.tuples for one in self._batches)
        measured = [(one.makespan * one.tuples, one.tuples) for one in self._batches if one.makespan is not None]
        seconds = sum(one.seconds for one in steady)
        throughput = sum(one.tuples for one in steady) / seconds if seconds else math.nan
        after = " after the first batch" if later else ""
        batches = f"{count(len(self._batches))} batch{'es' if len(self._batches) > 1 else ''}"
        parts = [
            f"stopped after {batches}" if stopped else f"done: {batches}",
            f"{count(tuples)} tuples",
            f"{rate(throughput)} tuples/s{after}",
            f"batch p50 {duration(rest.batch_s(0.5))}, p99 {duration(rest.batch_s(0.99))}",
            f"makespan {number(makespan(*np.array(measured).reshape(-1, 2).T))}",
            f"replication {number(run.replication)} a batch",
            *_malformed(self.malformed),
            *_unwritten(sum(one.unwritten for one in self._batches)),
            *_unplanned(sum(one.unplanned for one in self._batches)),
        ]
        say(" · ".join(parts))


def batch_line(metrics: BatchMetrics) -> str:
    """One batch in one line."""
    parts = [
        f"batch {metrics.batch}",
        f"{count(metrics.tuples)} tuples in {duration(metrics.seconds)}",
        f"{rate(metrics.tuples_per_second)} tuples/s",
        f"makespan {number(_known(metrics.makespan))}",
        f"imbalance {fraction(_known(metrics.imbalance))}",
        f"replication {number(_known(metrics.replication))}",
        *([] if metrics.locality is None else _locality(metrics, metrics.locality)),
        *_hot_keys(metrics.hot_keys),
        *_malformed(metrics.malformed),
        *_unwritten(metrics.unwritten),
        *_unplanned(metrics.unplanned),
    ]
    return " · ".join(parts)


def _known(figure: float | None) -> float:
    """A figure as tables show it: one that nothing was measured for is not a number."""
    return math.nan if figure is None else figure


def _locality(metrics: BatchMetrics, locality: float) -> list[str]:
    """How many tuples stayed on their host, beside what the tables promised; and the states that moved."""
    promised = "" if metrics.promised is None else f" of {fraction(metrics.promised)} promised"
    moved = [f"{count(metrics.moved)} states moved"] if metrics.moved else []
    hosts = f"{count(metrics.hosts)} host{'s' if metrics.hosts > 1 else ''}"
    if metrics.hosts == 1 and locality == 1.0:
        return ["on 1 host, where every tuple is local"]
    return [f"locality {fraction(locality)}{promised} on {hosts}", *moved]


def _hot_keys(n: int) -> list[str]:
    return [f"{count(n)} hot key{'s' * (n > 1)}"] if n else []


def _malformed(n: int) -> list[str]:
    return [f"{count(n)} malformed"] if n else []


def _unwritten(n: int) -> list[str]:
    return [f"{count(n)} file{'s' * (n > 1)} not written to the ledger"] if n else []


def _unplanned(n: int) -> list[str]:
    return [f"{count(n)} plan{'s' * (n > 1)} failed"] if n else []


def live_run(grouping: str, batches: Sequence[BatchMetrics]) -> LiveRun:
    """The figures of a query's batches in arrays, as a report takes them: one entry per batch."""
    return LiveRun(
        grouping,
        seconds=np.array([one.seconds for one in batches]),
        partials=np.array([float(one.partials or 0) for one in batches]),
        keys=np.array([float(one.keys or 0) for one in batches]),
        worker_tuples=_in_one_table([one.worker_tuples for one in batches]),
    )


def _in_one_table(worker_tuples: Sequence[list[int]]) -> F64:
    """A row per batch and a column per worker; a batch that had fewer workers has zeros for the others."""
    n_workers = max(1, *map(len, worker_tuples))
    return np.array([row + [0] * (n_workers - len(row)) for row in worker_tuples], dtype=np.float64)
