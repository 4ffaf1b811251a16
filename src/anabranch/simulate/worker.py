"""Workers: what each receives, how its queue grows, and which keys it holds."""

from __future__ import annotations

import numpy as np

from anabranch import metrics
from anabranch.arrays import F64, I32, I64, U64
from anabranch.containers.hash_set import HashSet, insert
from anabranch.groupings import Report
from anabranch.kernels import njit
from anabranch.simulate.settings import Settings

SAMPLE_EVERY = 1000
# Cells of `Workers.samples`: tuples so far, and the sums of I(t) and of I(t)/t over every 1000th of them.
_SEEN, IMBALANCE, IMBALANCE_SHARE = 0, 1, 2
_PAIR = np.uint64(0xD6E8FEB86659FD93)


class Workers:
    """One FIFO queue per worker, fed in the order of arrival; loads are work, in tuples of a worker of speed 1.

    Keys and (key, worker) pairs are counted exactly, up to collisions of 64-bit hashes.
    """

    def __init__(self, settings: Settings) -> None:
        n = settings.n_workers_ever
        self.speeds = settings.worker_speeds
        self.service_s = settings.service_s / self.speeds
        self.alive = np.arange(settings.n_workers)
        self.loads = np.zeros(n)
        self.window_loads = np.zeros(n)
        self.alive_tuples = np.zeros(n)
        self.free_at = np.zeros(n)
        self.tuples = np.zeros(n, dtype=np.int64)
        self._reported_tuples = np.zeros(n, dtype=np.int64)
        self._noise = np.random.default_rng(settings.seed)
        self._noise_level = settings.report_noise
        self.keys, self.pairs = HashSet(), HashSet()
        self.window_keys, self.window_pairs = HashSet(), HashSet()
        self.latency_sum = 0.0
        self.histogram = np.zeros(metrics.N_LATENCY_BINS, dtype=np.int64)
        self.window_ideal = 0.0
        self.samples = np.zeros(3)

    @property
    def capacity(self) -> float:
        """Tuples that the workers alive serve while one of speed 1 serves one."""
        return float(self.speeds[self.alive].sum())

    def receive(self, keys: U64, workers: I32, arrivals: F64) -> None:
        """Take in tuples, in the order of arrival."""
        n = len(keys)
        self.window_ideal += n / self.capacity
        self.alive_tuples[self.alive] += n
        latency = np.empty(n)
        _serve(workers, arrivals, self.service_s, self.free_at, latency)
        self.latency_sum += float(latency.sum())
        _bin(latency.view(np.int64), self.histogram)
        _load(workers, 1 / self.speeds, self.alive, self.loads, self.window_loads, self.tuples, self.samples)
        for held in (self.keys, self.pairs, self.window_keys, self.window_pairs):
            held.reserve(n)
        _hold(
            keys,
            workers,
            self.keys.table,
            self.keys.size,
            self.pairs.table,
            self.pairs.size,
            self.window_keys.table,
            self.window_keys.size,
            self.window_pairs.table,
            self.window_pairs.size,
        )

    def report(self, now: float) -> Report:
        """Tuples and measured seconds per worker since the last report; the measurement is noisy."""
        new = self.tuples - self._reported_tuples
        self._reported_tuples = self.tuples.copy()
        noise = np.maximum(0.01, 1 + self._noise_level * self._noise.standard_normal(len(new)))
        return Report(now=now, worker_tuples=new, worker_seconds=new * self.service_s * noise)

    def end_window(self) -> None:
        """Forget what belongs to the window."""
        self.window_loads[:] = 0
        self.window_ideal = 0.0
        self.window_keys.clear()
        self.window_pairs.clear()
        self.histogram = np.zeros_like(self.histogram)
        self.latency_sum = 0.0


@njit(cache=True)
def _serve(workers: I32, arrivals: F64, service_s: F64, free_at: F64, latency: F64) -> None:
    for i in range(len(workers)):
        worker = workers[i]
        done = max(arrivals[i], free_at[worker]) + service_s[worker]
        free_at[worker] = done
        latency[i] = done - arrivals[i]


@njit(cache=True)
def _bin(latency_bits: I64, histogram: I64) -> None:
    for i in range(len(latency_bits)):
        place = (latency_bits[i] >> metrics.LATENCY_SHIFT) - metrics.LATENCY_OFFSET
        histogram[min(max(place, 0), len(histogram) - 1)] += 1


@njit(cache=True)
def _load(workers: I32, work: F64, alive: I64, loads: F64, window_loads: F64, tuples: I64, samples: F64) -> None:
    """Add up loads, and the imbalance of every 1000th tuple."""
    seen = np.int64(samples[_SEEN])
    for i in range(len(workers)):
        worker = workers[i]
        loads[worker] += work[worker]
        window_loads[worker] += work[worker]
        tuples[worker] += 1
        seen += 1
        if seen % SAMPLE_EVERY == 0:
            most, total = 0.0, 0.0
            for w in alive:
                most = max(most, loads[w])
                total += loads[w]
            imbalance = most - total / len(alive)
            samples[IMBALANCE] += imbalance
            samples[IMBALANCE_SHARE] += imbalance / seen
    samples[_SEEN] = seen


@njit(cache=True)
def _hold(
    keys: U64,
    workers: I32,
    all_keys: U64,
    n_keys: I64,
    all_pairs: U64,
    n_pairs: I64,
    window_keys: U64,
    n_window_keys: I64,
    window_pairs: U64,
    n_window_pairs: I64,
) -> None:
    """Note keys and pairs. What the window has seen already is in the large sets too, and need not touch them."""
    for i in range(len(keys)):
        pair = (keys[i] ^ (np.uint64(workers[i] + 1) * _PAIR)) * _PAIR
        pair ^= pair >> np.uint64(29)
        if insert(window_pairs, n_window_pairs, pair):
            insert(all_pairs, n_pairs, pair)
            if insert(window_keys, n_window_keys, keys[i]):
                insert(all_keys, n_keys, keys[i])
