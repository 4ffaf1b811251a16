"""The simulator in plain Python, one tuple at a time: slow and obviously right."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from anabranch.groupings import Grouping, Report
from anabranch.simulate import Settings


@dataclass
class Window:
    """What one window saw."""

    loads: dict[int, float] = field(default_factory=dict)
    pairs: set[tuple[int, int]] = field(default_factory=set)
    keys: set[int] = field(default_factory=set)
    latencies: list[float] = field(default_factory=list)
    ideal: float = 0.0
    tuples: int = 0
    imbalance: float = 0.0

    @property
    def most(self) -> float:
        return max(self.loads.values())

    @property
    def replication(self) -> float:
        return len(self.pairs) / len(self.keys)


class Reference:
    """Runs on key hashes, arrival times and sources; after `run` its attributes are named as those of `Result`."""

    def __init__(self, grouping: Grouping, settings: Settings) -> None:
        self.grouping, self.settings = grouping, settings
        self.n_ever = settings.n_workers + sum(change.add for change in settings.changes)
        self.speed = [settings.speeds[w % len(settings.speeds)] for w in range(self.n_ever)]
        self.alive = list(range(settings.n_workers))
        self.routers = grouping.build_all(settings.n_sources, settings.n_workers, settings.seed)
        self.noise = np.random.default_rng(settings.seed)
        self.report_due = settings.report_s
        self.unreported = [0] * self.n_ever
        self.plan = None

    def boards(self):
        """Routers without repetition."""
        return list({id(router): router for router in self.routers}.values())

    def run(self, keys: list[int], arrivals: list[float], sources: list[int]) -> Reference:
        loads = [0.0] * self.n_ever
        busy = [0.0] * self.n_ever
        tuples_while_alive = [0] * self.n_ever
        free_at = [0.0] * self.n_ever
        merged_at = 0.0
        pairs: set[tuple[int, int]] = set()
        samples: list[tuple[int, float]] = []
        windows: list[Window] = []
        window = Window()
        self.partials = 0
        for i, (key, arrival, source) in enumerate(zip(keys, arrivals, sources, strict=True)):
            self._change(i)
            self._report(arrival)
            worker = int(self.routers[source].route(np.array([key], dtype=np.uint64), arrival)[0])
            assert worker in self.alive

            work = 1 / self.speed[worker]
            service_s = self.settings.service_s * work
            done = max(arrival, free_at[worker]) + service_s
            free_at[worker] = done
            busy[worker] += service_s
            loads[worker] += work
            self.unreported[worker] += 1
            for w in self.alive:
                tuples_while_alive[w] += 1
            pairs.add((key, worker))

            window.loads[worker] = window.loads.get(worker, 0.0) + work
            window.pairs.add((key, worker))
            window.keys.add(key)
            window.latencies.append(done - arrival)
            window.ideal += 1 / sum(self.speed[w] for w in self.alive)

            if (i + 1) % 1000 == 0:
                samples.append((i + 1, self._imbalance(loads)))
            if (i + 1) % self.settings.window_tuples == 0 or i + 1 == len(keys):
                ready_at = max(arrival, *free_at)
                merging_s = len(window.pairs) * self.settings.merge_seconds / len(self.alive)
                merged_at = max(ready_at, merged_at) + merging_s
                window.latencies = [latency + merged_at - ready_at for latency in window.latencies]
                window.tuples, window.imbalance = i + 1, self._imbalance(loads) / (i + 1)
                self.partials += len(window.pairs)
                windows.append(window)
                window = Window()
                if self.settings.reset_loads and (i + 1) % self.settings.window_tuples == 0:
                    self._begin_window(arrival)

        n = len(keys)
        whole = [w for w in windows if w.tuples % self.settings.window_tuples == 0] or windows
        samples = samples or [(n, self._imbalance(loads))]
        self.windows = windows
        self.tuples, self.keys, self.loads = n, len(set(keys)), loads
        self.imbalance = self._imbalance(loads) / n
        self.imbalance_mean = sum(found for _, found in samples) / len(samples) / n
        self.imbalance_mean_running = sum(found / t for t, found in samples) / len(samples)
        self.makespan = sum(w.most for w in whole) / sum(w.ideal for w in whole)
        self.replication = len(pairs) / len(set(keys))
        self.replication_window = sum(w.replication for w in whole) / len(whole)
        self.load_stddev = self._load_stddev(loads)
        self.latencies = sorted(latency for w in windows for latency in w.latencies)
        self.latency_mean = math.fsum(self.latencies) / n
        self.elapsed = merged_at - arrivals[0]
        self.saturation_rate = min(tuples_while_alive[w] / busy[w] for w in range(self.n_ever) if busy[w])
        merging_s = self.partials * self.settings.merge_seconds / len(self.alive)
        if merging_s:
            self.saturation_rate = min(self.saturation_rate, n / merging_s)
        return self

    def quantile(self, share: float) -> float:
        """The latency at a rank."""
        return self.latencies[max(0, math.ceil(share * len(self.latencies)) - 1)]

    def _imbalance(self, loads: list[float]) -> float:
        mine = [loads[w] for w in self.alive]
        return max(mine) - sum(mine) / len(mine)

    def _load_stddev(self, loads: list[float]) -> float:
        mine = [loads[w] for w in self.alive]
        percent = [100 * load / sum(mine) for load in mine]
        mean = sum(percent) / len(percent)
        return math.sqrt(sum((p - mean) ** 2 for p in percent) / len(percent))

    def _change(self, position: int) -> None:
        for change in self.settings.changes:
            if change.at == position:
                if change.remove is not None:
                    self.alive.remove(change.remove)
                # The next free numbers: after all workers that there have been up to now.
                earlier = [c.add for c in self.settings.changes if c.at < position]
                first = self.settings.n_workers + sum(earlier)
                self.alive += range(first, first + change.add)
                for router in self.boards():
                    router.set_workers(self.alive)

    def _report(self, now: float) -> None:
        if now >= self.report_due:
            report = self._measured(now)
            for router in self.boards():
                router.observe(report)
            while self.report_due <= now:
                self.report_due += self.settings.report_s

    def _measured(self, now: float) -> Report:
        noise = [max(0.01, 1 + self.settings.report_noise * z) for z in self.noise.standard_normal(self.n_ever)]
        seconds = [
            n * self.settings.service_s / speed * factor
            for n, speed, factor in zip(self.unreported, self.speed, noise, strict=True)
        ]
        report = Report(now=now, worker_tuples=np.array(self.unreported), worker_seconds=np.array(seconds))
        self.unreported = [0] * self.n_ever
        return report

    def _begin_window(self, now: float) -> None:
        reports = [router.report() for router in self.boards()]
        self.plan = self.grouping.fold(self.plan, [*reports, self._measured(now)])
        for router in self.boards():
            router.begin_window()
            router.follow(self.plan)
