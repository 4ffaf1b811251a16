"""The simulator against the plain-Python one, and against what can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import metrics
from anabranch.groupings import Fish, KeyGrouping, OfflineGreedy, PartialKeyGrouping, ShuffleGrouping, parse
from anabranch.simulate import METRICS, Change, Result, Settings, simulate
from anabranch.streams import Zipf

from .listed import Listed, skewed
from .reference import Reference

# All whose routes depend on the order of arrival alone: those that go by time take the mean step of many tuples.
GROUPINGS = [
    "key",
    "shuffle",
    "partial-key",
    "partial-key(choices=3, probe_s=0.3)",
    "partial-key(estimation='global')",
    "static-two-choices",
    "online-greedy",
    "offline-greedy",
    "d-choices",
    "w-choices",
    "consistent(virtual_workers=20)",
    "dstream",
    "distribution-aware(learning=500)",
]
EDGES = metrics.latency_edges()


def reference_of(stream: Listed, name: str, given: Settings) -> Reference:
    grouping = parse(name)
    hashes = stream.hashes()[: given.limit]
    if grouping.needs_counts:
        keys, counts = np.unique(np.array(hashes, dtype=np.uint64), return_counts=True)
        grouping = OfflineGreedy.from_counts(keys, counts)
    n = len(hashes)
    use_ts = stream.ts is not None and given.rate is None
    arrivals = stream.ts.tolist() if use_ts else [i / given.arrival_rate for i in range(stream.n_tuples)]
    sources = stream.sources(given.n_sources, given.source_key)
    return Reference(grouping, given).run(hashes, arrivals[:n], sources[:n])


def assert_equal(result: Result, expected: Reference, given: Settings) -> None:
    for name in ("tuples", "keys", "partials"):
        assert getattr(result, name) == getattr(expected, name), name
    for name in (
        "imbalance",
        "imbalance_mean",
        "imbalance_mean_running",
        "makespan",
        "replication",
        "replication_window",
        "load_stddev",
        "latency_mean",
        "saturation_rate",
        "elapsed",
    ):
        assert getattr(result, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-12), name
    assert result.loads == pytest.approx(expected.loads)
    assert result.latency_histogram.sum() == result.tuples
    # A delay moves samples from the middle of their bin, which adds half a bin to the bin in which a quantile lies.
    bins = 1.0 if given.merge_seconds == 0 else 1.5
    for name, share in (("latency_p50", 0.5), ("latency_p95", 0.95), ("latency_p99", 0.99)):
        assert getattr(result, name) == pytest.approx(expected.quantile(share), rel=bins / 32), name
    assert_equal_windows(result, expected)


def assert_equal_windows(result: Result, expected: Reference) -> None:
    windows = expected.windows
    assert result.windows.tuples.tolist() == [w.tuples for w in windows]
    assert result.windows.imbalance == pytest.approx([w.imbalance for w in windows], abs=1e-12)
    assert result.windows.makespan == pytest.approx([w.most / w.ideal for w in windows])
    assert result.windows.replication == pytest.approx([w.replication for w in windows])
    assert result.windows.latency_mean == pytest.approx([math.fsum(w.latencies) / len(w.latencies) for w in windows])
    for found, window in zip(result.windows.latency_p50, windows, strict=True):
        rank = max(0, math.ceil(0.5 * len(window.latencies)) - 1)
        assert found == pytest.approx(sorted(window.latencies)[rank], rel=1.5 / 32)


@st.composite
def worlds(draw) -> tuple[Listed, Settings]:
    """A stream of a few thousand tuples and settings that need not fit it."""
    n = draw(st.sampled_from([700, 2500, 3000, 4000]))
    n_workers = draw(st.integers(1, 7))
    seed = draw(st.integers(0, 5))
    stream = skewed(
        n,
        draw(st.sampled_from([1, 40, 600])),
        seed,
        origin=np.random.default_rng(seed).integers(0, 9, n) if draw(st.booleans()) else None,
        ts=np.sort(np.random.default_rng(seed).random(n)) * n / n_workers / 800 if draw(st.booleans()) else None,
        batch=draw(st.sampled_from([333, 1000, 5000])),
    )
    changes = []
    if draw(st.booleans()):
        first = draw(st.integers(0, n - 1))
        changes.append(Change(first, add=draw(st.integers(1, 2))))
        if draw(st.booleans()):
            changes.append(Change(draw(st.integers(first + 1, n + 100)), remove=draw(st.integers(0, n_workers))))
        if draw(st.booleans()):
            changes.append(Change(draw(st.integers(first + 1, n)), add=1))
            changes.reverse()
    given = Settings(
        n_workers=n_workers,
        n_sources=draw(st.sampled_from([1, 3, 5])),
        window=draw(st.sampled_from([250, 500, 999, 1000, 3000, 6000, None])),
        seed=seed,
        rate=draw(st.sampled_from([None, 3217.0])),
        merge_s=draw(st.sampled_from([None, 0.0, 0.002])),
        speeds=draw(st.sampled_from([(1.0,), (2.0, 1.0), (0.3, 1.0, 4.0)])),
        report_s=draw(st.sampled_from([0.0917, 10.0])),
        reset_loads=draw(st.booleans()),
        source_key=draw(st.sampled_from([None, "key"] + ([] if stream.origin is None else ["origin"]))),
        changes=tuple(changes),
        limit=draw(st.sampled_from([None, None, 1800])),
    )
    return stream, given


@pytest.mark.parametrize("name", GROUPINGS)
@settings(max_examples=25)
@given(world=worlds())
def test_every_metric_is_that_of_the_plain_simulator(name, world):
    stream, given = world
    assert_equal(simulate(stream, parse(name), given), reference_of(stream, name, given), given)


@pytest.mark.parametrize("window", [1, 7])
def test_windows_of_a_few_tuples(window):
    stream = skewed(230, 20, seed=1)
    given = Settings(n_workers=3, n_sources=3, window=window, reset_loads=True)
    assert_equal(simulate(stream, PartialKeyGrouping(), given), reference_of(stream, "partial-key", given), given)


def test_makespan_by_hand():
    # Key grouping with one key and two workers: every window's tuples are on one worker, and half is ideal.
    one_key = Listed(np.zeros(4000, dtype=np.int64))
    assert simulate(one_key, KeyGrouping(), Settings(n_workers=2, window=1000)).makespan == pytest.approx(2.0)
    # The worker of speed 4 needs a quarter of the time for its half; capacity is 5.
    two_speeds = simulate(one_key, ShuffleGrouping(), Settings(n_workers=2, n_sources=1, speeds=(4, 1), window=1000))
    assert two_speeds.makespan == pytest.approx(500 / (1000 / 5))


def test_a_partial_last_window_is_left_out_of_makespan_and_replication_per_window():
    # The first 1000 tuples have ten keys in equal number, the rest has one.
    keys = np.concatenate([np.arange(1000) % 10, np.zeros(900, dtype=np.int64)])
    given = Settings(n_workers=4, n_sources=1, window=1000)
    whole = simulate(Listed(keys[:1000]), PartialKeyGrouping(), given)
    longer = simulate(Listed(keys), PartialKeyGrouping(), given)
    assert longer.makespan == whole.makespan
    assert longer.replication_window == whole.replication_window
    assert longer.partials > whole.partials
    assert longer.windows.tuples.tolist() == [1000, 1900]


def test_a_stream_shorter_than_a_window_counts_as_one():
    one_key = Listed(np.zeros(900, dtype=np.int64))
    result = simulate(one_key, KeyGrouping(), Settings(n_workers=4, window=1000))
    assert result.makespan == pytest.approx(4.0)
    assert result.replication_window == 1.0
    assert result.windows.tuples.tolist() == [900]


def test_a_stream_shorter_than_a_sample_is_sampled_at_its_end():
    result = simulate(Listed(np.zeros(900, dtype=np.int64)), KeyGrouping(), Settings(n_workers=4))
    assert result.imbalance == result.imbalance_mean == result.imbalance_mean_running == 0.75


def test_the_measured_rate_is_the_rate_asked_for():
    result = simulate(skewed(2000, 10, seed=0), KeyGrouping(), Settings(rate=1234.0))
    assert result.rate == pytest.approx(1234.0)


def test_the_default_rate_is_four_fifths_of_what_the_workers_can_serve():
    given = Settings(n_workers=3, speeds=(2.0, 1.0), service_s=0.01)
    assert given.arrival_rate == pytest.approx(0.8 * 5 / 0.01)
    assert simulate(skewed(2000, 10, seed=0), KeyGrouping(), given).rate == pytest.approx(400.0)


def test_the_same_seed_gives_the_same_result():
    def run(seed: int) -> dict[str, object]:
        given = Settings(n_workers=5, seed=seed, speeds=(2, 1), report_s=0.5, window=2000)
        record = simulate(Zipf(n_tuples=20_000, n_keys=300, z=1.1), parse("consistent"), given).record()
        return {name: value for name, value in record.items() if name != "tuples_per_second"}

    assert run(7) == run(7)
    assert run(7)["loads"] != run(8)["loads"]


def test_limit_is_the_same_as_a_shorter_stream():
    given = Settings(n_workers=4, window=500)
    limited = simulate(Zipf(n_tuples=9000, n_keys=50, z=1.0), PartialKeyGrouping(), replace(given, limit=1700))
    shorter = simulate(Zipf(n_tuples=1700, n_keys=50, z=1.0), PartialKeyGrouping(), given)
    assert limited.tuples == 1700
    assert limited.loads.tolist() == shorter.loads.tolist()
    assert limited.latency_mean == shorter.latency_mean


def test_offline_greedy_counts_only_the_tuples_that_are_read():
    # Key 1 is rare at first: with counts of the whole stream it would have a worker of its own.
    keys = np.concatenate([np.repeat([0, 1, 2], [500, 1, 499]), np.full(2000, 1)])
    result = simulate(Listed(keys), OfflineGreedy(), Settings(n_workers=2, limit=1000))
    assert sorted(result.loads.tolist()) == [500.0, 500.0]


def test_the_bytes_of_a_router_are_the_most_that_it_had():
    stream, given = skewed(3000, 50, seed=0), Settings(n_workers=8, window=500)
    most = simulate(stream, PartialKeyGrouping(), given).router_bytes
    fewer = tuple(Change(1200, remove=worker) for worker in range(1, 8))
    assert simulate(stream, PartialKeyGrouping(), replace(given, changes=fewer)).router_bytes == most
    assert simulate(stream, PartialKeyGrouping(), replace(given, n_workers=1)).router_bytes < most


def test_progress_adds_up_to_the_stream():
    steps: list[int] = []
    simulate(skewed(2500, 10, seed=0, batch=400), KeyGrouping(), progress=steps.append)
    assert sum(steps) == 2500
    assert len(steps) == 7


def test_the_label_stands_in_the_result_and_the_name_without_one():
    stream = skewed(100, 10, seed=0)
    assert simulate(stream, KeyGrouping(), label="mine").grouping == "mine"
    assert simulate(stream, KeyGrouping()).grouping == "key"


def test_every_metric_is_a_field_of_the_result():
    result = simulate(skewed(1500, 10, seed=0), KeyGrouping())
    # All figures, which stand between what the run was made with and the arrays.
    names = [field.name for field in fields(Result)]
    assert list(METRICS) == names[names.index("rate") + 1 : names.index("loads")]
    assert all(math.isfinite(getattr(result, name)) for name in METRICS)


def test_plans_do_not_pass_on_the_noise_of_one_window():
    """With loads reset at each window, as on Spark, workers that are alike stay balanced under noisy reports."""
    as_on_spark = Settings(n_workers=16, reset_loads=True, report_noise=0.05)
    assert simulate(Zipf(1_000_000, 10_000, 1.2), Fish(), as_on_spark).makespan < 1.02
