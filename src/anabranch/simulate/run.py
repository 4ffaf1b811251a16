"""One grouping on one stream: source → edge → worker → aggregator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np

import anabranch
from anabranch import metrics
from anabranch.arrays import F64
from anabranch.groupings import Grouping
from anabranch.simulate import planned_edge, source
from anabranch.simulate.aggregator import Aggregator
from anabranch.simulate.edge import Edge
from anabranch.simulate.planned_edge import PlannedEdge
from anabranch.simulate.result import Result, Windows
from anabranch.simulate.settings import Settings
from anabranch.simulate.source import Tuples
from anabranch.simulate.worker import IMBALANCE, IMBALANCE_SHARE, SAMPLE_EVERY, Workers
from anabranch.streams import Stream


def simulate(
    stream: Stream,
    grouping: Grouping,
    settings: Settings | None = None,
    *,
    label: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Route a stream with a grouping and measure balance, memory and latency.

    Parameters
    ----------
    stream
        Where the tuples come from.
    grouping
        How they are routed.
    settings
        Sources, workers and clocks.
    label
        What to call the grouping in the result; its name by default.
    progress
        Called with the number of tuples done since the last call.

    Examples
    --------
    >>> from anabranch.groupings import KeyGrouping, ShuffleGrouping
    >>> from anabranch.streams import Zipf
    >>> stream = Zipf(n_tuples=100_000, n_keys=1000, z=1.4)
    >>> hashed = simulate(stream, KeyGrouping(), Settings(n_workers=8))
    >>> shuffled = simulate(stream, ShuffleGrouping(), Settings(n_workers=8))
    >>> shuffled.makespan < 1.01 < hashed.makespan
    True
    >>> hashed.replication, shuffled.replication > 2
    (1.0, True)
    """
    settings = settings or Settings()
    if settings.edge == "planned":
        planned_edge.check(grouping)
    elif grouping.needs_counts:
        grouping = grouping.with_counts(*source.count_keys(stream, settings))
    run = _Run(grouping, settings)
    for tuples in source.in_chunks(source.read(stream, settings), run.edge.chunk):
        for piece in run.cut(tuples):
            run.step(piece)
        if progress is not None:
            progress(len(tuples))
    return run.result(stream, label or grouping.name)


@dataclass(frozen=True)
class _Window:
    """Figures of one window; `most` and `ideal` make its makespan."""

    tuples: int
    most: float
    ideal: float
    imbalance: float
    replication: float
    latency_mean: float
    latency_p50: float
    latency_p99: float


def _column(windows: list[_Window], name: str) -> F64:
    return np.array([getattr(window, name) for window in windows], dtype=np.float64)


def _edge(grouping: Grouping, settings: Settings) -> Edge | PlannedEdge:
    if settings.edge == "planned":
        return PlannedEdge(grouping, settings.n_workers, settings.seed)
    return Edge(grouping, settings.n_sources, settings.n_workers, settings.seed)


class _Run:
    """The running state of one simulation."""

    def __init__(self, grouping: Grouping, settings: Settings) -> None:
        self.grouping = grouping
        self.settings = settings
        self.edge = _edge(grouping, settings)
        self.workers = Workers(settings)
        self.aggregator = Aggregator(settings)
        self.changes = settings.ordered_changes
        self.n_workers_ever = settings.n_workers
        self.report_at = settings.report_s
        self.position = 0
        self.first_arrival = 0.0
        self.last_arrival = 0.0
        self.router_bytes = 0
        self.histogram = np.zeros(metrics.N_LATENCY_BINS, dtype=np.int64)
        self.latency_sum = 0.0
        self.windows: list[_Window] = []

    def cut(self, tuples: Tuples) -> Iterator[Tuples]:
        """Pieces that end where a window ends, a report is due or workers change.

        A chunk is not cut for a report: what looks ahead hears of it afterwards.
        """
        begin = 0
        while begin < len(tuples):
            self._change_workers()
            self._send_report(float(tuples.arrivals[begin]))
            window = self.settings.window_tuples
            end = begin + window - self.position % window
            if self.changes:
                end = min(end, begin + self.changes[0].at - self.position)
            if self.edge.chunk == 1:
                end = min(end, begin + max(1, int(np.searchsorted(tuples.arrivals[begin:], self.report_at))))
            end = min(end, len(tuples))
            yield tuples.slice(begin, end)
            begin = end

    def step(self, tuples: Tuples) -> None:
        """Route and serve one piece."""
        if self.position == 0:
            self.first_arrival = float(tuples.arrivals[0])
        self.workers.receive(tuples.keys, self.edge.route(tuples), tuples.arrivals)
        self.last_arrival = float(tuples.arrivals[-1])
        self.position += len(tuples)
        if self.position % self.settings.window_tuples == 0:
            self._end_window()
            if self.settings.reset_loads or self.settings.edge == "planned":
                self.edge.begin_window(self.workers.report(self.last_arrival))

    def _change_workers(self) -> None:
        while self.changes and self.changes[0].at <= self.position:
            change = self.changes.pop(0)
            alive = set(self.workers.alive.tolist()) - {change.remove}
            alive |= set(range(self.n_workers_ever, self.n_workers_ever + change.add))
            self.n_workers_ever += change.add
            self.workers.alive = np.array(sorted(alive))
            self.edge.set_workers(sorted(alive))

    def _send_report(self, now: float) -> None:
        if now < self.report_at:
            return
        self.edge.observe(self.workers.report(now))
        periods = int((now - self.report_at) / self.settings.report_s) + 1
        self.report_at += periods * self.settings.report_s

    def _end_window(self) -> None:
        workers = self.workers
        ready_at = max(self.last_arrival, float(workers.free_at.max()))
        n_partials = len(workers.window_pairs)
        delay = self.aggregator.merge(n_partials, ready_at, len(workers.alive))
        histogram = metrics.delayed(workers.histogram, delay)
        n = int(histogram.sum())
        latency_sum = workers.latency_sum + n * delay
        self.windows.append(
            _Window(
                tuples=self.position,
                most=float(workers.window_loads.max()),
                ideal=workers.window_ideal,
                imbalance=metrics.imbalance(workers.loads[workers.alive]) / self.position,
                replication=n_partials / len(workers.window_keys),
                latency_mean=latency_sum / n,
                latency_p50=metrics.latency_quantile(histogram, 0.5),
                latency_p99=metrics.latency_quantile(histogram, 0.99),
            )
        )
        self.histogram += histogram
        self.latency_sum += latency_sum
        self.router_bytes = max(self.router_bytes, self.edge.router_bytes)
        workers.end_window()

    def result(self, stream: Stream, label: str) -> Result:
        """Close the last window and sum up."""
        window = self.settings.window_tuples
        n_whole = len(self.windows)
        if self.position % window:
            self._end_window()
        whole = self.windows[: max(n_whole, 1)]
        workers, n = self.workers, self.position
        described = dict(stream.describe())
        final = metrics.imbalance(workers.loads[workers.alive]) / n
        n_samples = n // SAMPLE_EVERY
        return Result(
            grouping=label,
            parameters=self.grouping.parameters(),
            stream=str(described.pop("name")),
            stream_parameters=described,
            workers=self.settings.n_workers,
            sources=self.settings.n_sources,
            tuples=n,
            keys=len(workers.keys),
            window=window,
            seed=self.settings.seed,
            version=anabranch.__version__,
            settings=self.settings.record(),
            rate=self._rate(),
            imbalance=final,
            # A stream too short for a sample has one: its end.
            imbalance_mean=float(workers.samples[IMBALANCE]) / n_samples / n if n_samples else final,
            imbalance_mean_running=float(workers.samples[IMBALANCE_SHARE]) / n_samples if n_samples else final,
            makespan=metrics.makespan(_column(whole, "most"), _column(whole, "ideal")),
            replication=len(workers.pairs) / len(workers.keys),
            replication_window=float(_column(whole, "replication").mean()),
            partials=self.aggregator.partials,
            load_stddev=metrics.load_stddev(workers.loads[workers.alive]),
            latency_mean=self.latency_sum / n,
            latency_p50=metrics.latency_quantile(self.histogram, 0.5),
            latency_p95=metrics.latency_quantile(self.histogram, 0.95),
            latency_p99=metrics.latency_quantile(self.histogram, 0.99),
            saturation_rate=self._saturation_rate(),
            elapsed=self.aggregator.free_at - self.first_arrival,
            tuples_per_second=n / self.edge.seconds,
            router_bytes=self.router_bytes,
            loads=workers.loads,
            latency_histogram=self.histogram,
            windows=self._per_window(),
        )

    def _rate(self) -> float:
        """Arrivals per second; 0 where all tuples arrived at once."""
        seconds = self.last_arrival - self.first_arrival
        return (self.position - 1) / seconds if seconds > 0 else 0.0

    def _saturation_rate(self) -> float:
        """The arrival rate at which the first worker, or the aggregator, would be busy all the time."""
        workers = self.workers
        busy = workers.tuples * workers.service_s
        used = busy > 0
        by_worker = float((workers.alive_tuples[used] / busy[used]).min())
        merging = self.aggregator.partials * self.aggregator.merge_s / len(workers.alive)
        return min(by_worker, self.position / merging) if merging else by_worker

    def _per_window(self) -> Windows:
        columns = {f.name: _column(self.windows, f.name) for f in fields(_Window)}
        makespan = columns.pop("most") / columns.pop("ideal")
        return Windows(tuples=columns.pop("tuples").astype(np.int64), makespan=makespan, **columns)
