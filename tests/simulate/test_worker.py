"""Queues: what is known of them without a simulator."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch import metrics
from anabranch.groupings import KeyGrouping, ShuffleGrouping
from anabranch.simulate import Settings, simulate
from anabranch.simulate.worker import Workers
from anabranch.streams import Zipf

from .listed import Listed

ONE_WORKER = {"n_workers": 1, "n_sources": 1, "service_s": 0.01, "merge_s": 0.0}


def test_regular_arrivals_below_capacity_never_wait():
    given = Settings(**ONE_WORKER, rate=50.0, window=10_000)
    result = simulate(Zipf(n_tuples=100_000, n_keys=9, z=1.0), KeyGrouping(), given)
    assert result.latency_mean == pytest.approx(0.01)
    assert result.latency_p99 == pytest.approx(0.01, rel=1 / 32)
    assert result.windows.latency_mean == pytest.approx(np.full(10, 0.01))


def test_random_arrivals_at_half_of_capacity_wait_as_the_formula_says():
    # M/D/1 (Pollaczek–Khinchine): the mean wait is ρ / (2 (1 − ρ)) service times, half of one at ρ = 0.5.
    gaps = np.random.default_rng(5).exponential(1 / 50, 400_000)
    stream = Listed(np.zeros(400_000, dtype=np.int64), ts=np.cumsum(gaps), batch=50_000)
    result = simulate(stream, KeyGrouping(), Settings(**ONE_WORKER, window=100_000))
    assert result.latency_mean == pytest.approx(0.015, rel=0.02)
    # No runaway: the last quarter waits no longer than the first.
    assert result.windows.latency_mean == pytest.approx(np.full(4, 0.015), rel=0.05)


def test_the_latency_of_an_overloaded_worker_grows_linearly():
    # Each tuple takes 10 ms and the next comes after 5 ms: the queue is 5 ms longer after each.
    given = Settings(**ONE_WORKER, rate=200.0, window=1000)
    result = simulate(Zipf(n_tuples=20_000, n_keys=9, z=1.0), KeyGrouping(), given)
    assert np.diff(result.windows.latency_mean) == pytest.approx(np.full(19, 5.0))
    assert result.latency_mean == pytest.approx(0.01 + 0.005 * 19_999 / 2)
    assert result.elapsed == pytest.approx(200.0)


def test_saturation_rate_is_where_the_busiest_worker_has_no_pause():
    one_key = Listed(np.zeros(3000, dtype=np.int64))
    given = Settings(n_workers=4, service_s=0.01, merge_s=0.0)
    assert simulate(one_key, KeyGrouping(), given).saturation_rate == pytest.approx(100.0)
    assert simulate(one_key, ShuffleGrouping(), given).saturation_rate == pytest.approx(400.0)
    # 12 partial states (one key, four workers, three windows) that take 10 s each, on four tasks.
    slow = Settings(n_workers=4, service_s=0.01, merge_s=10.0, window=1000, n_sources=1)
    assert simulate(one_key, ShuffleGrouping(), slow).saturation_rate == pytest.approx(3000 / (12 * 10 / 4))


@pytest.mark.parametrize("service_s", [1e-15, 3e-7, 0.02, 5e3])
def test_latencies_are_binned_between_the_edges(service_s):
    workers = Workers(Settings(n_workers=1, service_s=service_s))
    workers.receive(np.zeros(3, np.uint64), np.zeros(3, np.int32), np.zeros(3))
    edges = metrics.latency_edges()
    expected = np.clip(np.searchsorted(edges, service_s * np.array([1, 2, 3]), side="right") - 1, 0, len(edges) - 2)
    assert np.repeat(np.arange(len(workers.histogram)), workers.histogram).tolist() == expected.tolist()


def test_the_key_hash_zero_counts_as_a_key():
    workers = Workers(Settings(n_workers=2))
    hashes = np.array([0, 0, 7], dtype=np.uint64)
    workers.receive(hashes, np.array([0, 1, 1], dtype=np.int32), np.zeros(3))
    assert len(workers.keys) == 2
    assert len(workers.pairs) == 3
