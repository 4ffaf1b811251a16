"""FISH as its paper tells it (Algorithms 1, 2, 3), tuple by tuple in plain Python, with the deviations of `Fish`."""

from __future__ import annotations

import math

import numpy as np

from anabranch.groupings import Fish
from anabranch.groupings.schemes.head import distinct_choices, fewest_choices
from anabranch.hashing import HashRing
from anabranch.hashing.family import candidate_sequence, reseed


def clockwise(ring: HashRing, key: np.uint64, n: int) -> list[int]:
    """The next `n` distinct workers clockwise of the key."""
    owners = np.roll(ring.owners, -int(np.searchsorted(ring.points, key)))
    return list(dict.fromkeys(owners.tolist()))[:n]


class ReferenceFish:
    """One source. Workers are known by their numbers, not by their places."""

    def __init__(self, grouping: Fish, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        self.grouping, self.source, self.n_sources, self.seed = grouping, source, n_sources, seed
        self.workers = list(range(n_workers))
        self.epoch = grouping.epoch or max(1000, 40 * n_workers)
        self.capacity = grouping.capacity or max(1000, 10 * n_workers)
        # Slots in the order in which they were taken; of several least counts the first slot's is replaced.
        self.keys: list[int] = []
        self.counts: list[float] = []
        self.assigned: list[int] = []
        self.in_epoch, self.total = 0, 0.0
        self.backlog = dict.fromkeys(self.workers, 0.0)
        self.measured = dict.fromkeys(self.workers, 1.0)
        self.seconds = dict.fromkeys(self.workers, 1.0)
        self.drained_at = 0.0
        self.reports = dict.fromkeys(self.workers, 0)
        self.tuples = self.candidates_seen = 0
        self.lists: dict[int, list[int]] = {}

    def route(self, key: int, now: float) -> int:
        self.drain(now)
        slot = self.count(key)
        if self.tuples % 100 == 0:
            self.head_choices = self.solve()
        if key not in self.lists:
            self.lists[key] = self.candidates(key)
        candidates = self.lists[key][: self.choices(slot)]
        self.tuples += 1
        self.candidates_seen += len(candidates)
        if len(candidates) == len(self.workers):
            start = self.source * len(self.workers) // self.n_sources
            candidates = self.workers[start:] + self.workers[:start]
        worker = min(candidates, key=self.wait)
        self.backlog[worker] += 1
        return worker

    # --- Algorithm 1

    def count(self, key: int) -> int:
        if self.in_epoch == self.epoch:
            self.counts = [count * self.grouping.alpha for count in self.counts]
            self.total *= self.grouping.alpha
            self.in_epoch = 0
        if key in self.keys:
            slot = self.keys.index(key)
            self.counts[slot] += 1
        elif len(self.keys) < self.capacity:
            slot = len(self.keys)
            self.keys.append(key)
            self.counts.append(1.0)
            self.assigned.append(0)
        else:
            slot = self.counts.index(min(self.counts))
            self.keys[slot] = key
            self.counts[slot] += 1
            self.assigned[slot] = 0
        self.total += 1
        self.in_epoch += 1
        return slot

    # --- Algorithm 2

    def choices(self, slot: int) -> int:
        n = len(self.workers)
        theta = self.grouping.theta or 1 / (4 * n)
        if not self.counts[slot] > theta * self.total:
            return 2
        if self.grouping.hot_keys == "w-choices":
            return n
        if self.grouping.hot_keys == "d-choices":
            return self.head_choices
        index = math.frexp(max(self.counts) / self.counts[slot])[1] - 1
        d = max(n // 2**index, min(self.grouping.d_min, n))
        self.assigned[slot] = max(d, self.assigned[slot])
        return self.assigned[slot]

    def solve(self) -> int:
        """D-Choices' d for the keys that are hot now; `fewest_choices` has a test of its own."""
        n = len(self.workers)
        theta = self.grouping.theta or 1 / (4 * n)
        hot = sorted((count / self.total for count in self.counts if count > theta * self.total), reverse=True)
        return int(distinct_choices(fewest_choices(np.array(hot), 1e-4, n), n))

    def candidates(self, key: int) -> list[int]:
        mixed = reseed(np.array([key], dtype=np.uint64), self.seed)
        n = len(self.workers)
        if self.grouping.hashing == "ring":
            ring = HashRing(self.workers, virtual_nodes=self.grouping.virtual_nodes, seed=self.seed)
            return clockwise(ring, mixed[0], n)
        high, low = divmod(int(mixed[0]), 2**32)
        second = (high % n + low % (n - 1) + 1) % n if n > 1 else 0
        places = np.empty(n, dtype=np.int32)
        candidate_sequence(high % n, second, n, places)
        return [self.workers[place] for place in places]

    # --- Algorithm 3

    def wait(self, worker: int) -> float:
        by_time = self.grouping.assignment == "waiting-time"
        return self.backlog[worker] * (self.seconds[worker] if by_time else 1.0)

    def drain(self, now: float) -> None:
        passed = now - self.drained_at
        if not passed > self.grouping.interval_s:
            return
        if self.grouping.assignment == "waiting-time" and any(self.reports.values()):
            for worker in self.workers:
                served = passed / (self.n_sources * self.seconds[worker])
                self.backlog[worker] = max(0.0, self.backlog[worker] - served)
        self.drained_at = now

    def observe(self, seconds: dict[int, float]) -> None:
        """Measured seconds per tuple of the workers that received any."""
        if not any(self.reports.values()):
            self.measured = dict.fromkeys(self.workers, float(np.mean(list(seconds.values()))))
        for worker, measured in seconds.items():
            self.reports[worker] += 1
            self.measured[worker] += (measured - self.measured[worker]) / min(self.reports[worker], 40)
        mean, variance = np.mean(list(self.measured.values())), np.var(list(self.measured.values()))
        noise = {w: (0.05 * mean) ** 2 / min(max(self.reports[w], 1), 79) for w in self.workers}
        real = max(0.0, variance - np.mean(list(noise.values())))
        self.seconds = {w: float(mean + real / (real + noise[w]) * (self.measured[w] - mean)) for w in self.workers}

    def set_workers(self, workers: list[int]) -> None:
        for name in ("backlog", "measured", "seconds"):
            old = getattr(self, name)
            stayed = [old[worker] for worker in workers if worker in old]
            newcomer = float(np.mean(stayed)) if stayed else 1.0
            setattr(self, name, {worker: old.get(worker, newcomer) for worker in workers})
        self.reports = {worker: self.reports.get(worker, 0) for worker in workers}
        self.workers, self.lists = workers, {}
