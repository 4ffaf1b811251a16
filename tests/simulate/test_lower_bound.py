from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError, InputError
from anabranch.groupings import Fish, KeyGrouping, ShuffleGrouping
from anabranch.simulate import Change, Settings, bound, simulate
from anabranch.streams import Bursts, Zipf

from .listed import Listed, skewed

# Hundredths, so that the tests can reckon exactly.
MAKESPANS = tuple(percent / 100 for percent in (100, 105, 125, 150, 200))


def listed(keys, batch: int = 1000) -> Listed:
    return Listed(np.array(keys, dtype=np.int64), batch=batch)


def exact(makespan: float) -> Fraction:
    return Fraction(round(100 * makespan), 100)


def whole_windows(keys: list[int], window: int) -> list[list[int]]:
    windows = [keys[first : first + window] for first in range(0, len(keys), window)]
    return [w for w in windows if len(w) == window] or windows


def one_window(keys: list[int], window: int, n_workers: int, makespan: float) -> float:
    """What the most demanding window needs, with one pair for each of the stream's other keys."""
    extra = 0
    for tuples in whole_windows(keys, window):
        share = Fraction(len(tuples), n_workers)
        capacity = max(floor(exact(makespan) * share), ceil(share))
        extra = max(extra, sum(ceil(Fraction(n, capacity)) - 1 for n in Counter(tuples).values()))
    return 1 + extra / len(set(keys))


def figures(keys: list[int], window: int, n_workers: int, routes: tuple[int, ...]) -> tuple[list[Fraction], float]:
    """Makespan of each whole window, and replication, of one assignment of all tuples."""
    makespans = []
    for tuples, workers in zip(whole_windows(keys, window), whole_windows(list(routes), window), strict=True):
        makespans.append(Fraction(max(Counter(workers).values()) * n_workers, len(tuples)))
    return makespans, len(set(zip(keys, routes, strict=True))) / len(set(keys))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=7), st.integers(1, 5), st.integers(1, 3))
def test_no_assignment_of_all_beats_the_bound(keys, window, n_workers):
    found = bound(listed(keys), Settings(n_workers=n_workers, window=window), makespans=MAKESPANS)
    for routes in product(range(n_workers), repeat=len(keys)):
        makespans, replication = figures(keys, window, n_workers, routes)
        mean = sum(makespans) / len(makespans)
        assert float(mean) >= found.makespan - 1e-12
        for makespan, at in zip(MAKESPANS, found.replications[1:], strict=True):
            if max(makespans) <= exact(makespan):
                assert replication >= at.replication - 1e-12
            if mean <= exact(makespan):
                assert replication >= at.replication_total - 1e-12
        if float(mean) <= found.makespan + 1e-12:
            assert replication >= found.replications[0].replication - 1e-12


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=200),
    st.integers(1, 60),
    st.integers(1, 9),
    st.sampled_from(MAKESPANS),
)
def test_it_is_no_weaker_than_the_most_demanding_window(keys, window, n_workers, makespan):
    found = bound(listed(keys), Settings(n_workers=n_workers, window=window), makespans=[makespan])
    at = found.replications[1]
    assert at.replication >= one_window(keys, window, n_workers, makespan) - 1e-12
    if len(whole_windows(keys, window)) == 1:
        assert at.replication == pytest.approx(one_window(keys, window, n_workers, makespan))
        assert at.replication == at.replication_mean == at.replication_total
    assert 1 <= at.replication_mean <= at.replication_total <= at.replication <= found.replications[0].replication


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 9))
def test_the_wrap_around_rule_needs_no_more_than_is_enough(keys, n_workers):
    found = bound(listed(keys), Settings(n_workers=n_workers, window=len(keys)))
    filled = [(key, i // found.share) for i, key in enumerate(sorted(keys))]
    assert max(worker for _, worker in filled) < n_workers
    assert len(set(filled)) / len(set(keys)) <= found.replication_enough


@given(st.integers(1, 40), st.integers(1, 500), st.integers(1, 90))
def test_neither_batches_nor_a_partial_last_window_matter(batch, n, window):
    def extra_pairs(keys, batch):
        found = bound(listed(keys, batch), Settings(n_workers=4, window=window))
        return [(at.replication - 1) * found.keys for at in found.replications]

    keys = skewed(n, 20, seed=n).keys.tolist()
    whole = keys[: n // window * window] or keys
    assert extra_pairs(keys, batch) == pytest.approx(extra_pairs(whole, 1000))


def test_known_values():
    # Two windows of ten tuples, four workers: three tuples a worker at best.
    first = [1] * 7 + [2] * 2 + [3]
    second = [2] * 4 + [1] * 4 + [4, 5]
    found = bound(listed(first + second + [6]), Settings(n_workers=4, window=10), makespans=[1.6, 1.2])
    assert (found.tuples, found.keys, found.share) == (21, 6, 3)
    assert found.makespan == 1.2
    # Key 1 is on three workers in the first window, key 2 on two in the second.
    assert found.replications[0].replication == found.replications[2].replication == 1 + 3 / 6
    # There is no room to let a window go.
    assert found.replications[0].replication_mean == 1 + 3 / 6
    # With four a worker key 1 is on two, in the first; with 3 + 5 and 4 + 4 at least one window still splits it.
    assert found.replications[1].replication == found.replications[1].replication_mean == 1 + 1 / 6
    assert found.replication_enough == (3 + 3) / 3


def test_a_mean_can_let_one_window_go():
    hot, even = [1] * 8, [1, 2, 3, 4, 5, 6, 7, 8]
    found = bound(listed(hot + even * 9), Settings(n_workers=4, window=8), makespans=[1.25, 1.3])
    # Ten windows of two a worker: six more for the hot one make 26 / 20.
    assert [at.replication for at in found.replications] == [1 + 3 / 8] * 3
    assert [at.replication_mean for at in found.replications] == [1 + 3 / 8, 1 + 1 / 8, 1]


def test_windows_with_other_hot_keys_add_up():
    # Ten windows of two a worker, each with a hot key of its own and eight others that come in every window.
    keys = [key for number in range(10) for key in [10 + number] * 8 + list(range(8))]
    found = bound(listed(keys), Settings(n_workers=8, window=16), makespans=[1.5])
    at = found.replications[1]
    # With three a worker each hot key is on three. One with four would be on two, but then one with two is on four.
    assert at.replication_mean == 1 + 2 / 18
    assert at.replication == at.replication_total == 1 + 20 / 18


def test_what_one_window_needs_is_needed_by_all_together():
    """Prices between the capacities, 2 and 3 with two workers and 4 with one, could be met by half a window each."""
    found = bound(listed([1] * 8), Settings(n_workers=2, window=4), makespans=[1.5])
    assert found.replications[1].replication_mean == found.replications[1].replication_total == 2


def test_a_stream_shorter_than_a_window_is_one():
    found = bound(listed([1, 1, 1, 2, 3]), Settings(n_workers=2, window=100))
    assert (found.share, found.makespan) == (3, 6 / 5)
    assert found.replications[0].replication == 1


@pytest.mark.parametrize("stream", [Zipf(200_000, 5000, 1.4), Bursts(200_000, 5000, 1.2, share=0.5)], ids=repr)
@pytest.mark.parametrize("grouping", [KeyGrouping(), ShuffleGrouping(), Fish()], ids=lambda g: g.name)
def test_the_groupings_keep_to_it(stream, grouping):
    taken = Settings(n_workers=7, n_sources=2)
    result = simulate(stream, grouping, taken)
    found = bound(stream, taken, makespans=[result.makespan, result.windows.makespan.max()])
    assert (found.tuples, found.keys, found.window) == (result.tuples, result.keys, result.window)
    assert result.makespan >= found.makespan - 1e-12
    assert result.replication >= found.replications[1].replication_total
    assert result.replication >= found.replications[2].replication


def test_the_limit_and_the_seed_are_kept():
    stream = Zipf(50_000, 1000, 1.4)
    found = bound(stream, Settings(n_workers=4, window=5000, limit=20_000, seed=3))
    assert found.tuples == 20_000
    assert found.keys == len(np.unique(np.concatenate([b["key"] for b in stream.batches(3, stop=20_000)])))


def test_the_record_is_json():
    record = json.loads(json.dumps(bound(Zipf(1000, 10, 1.4), Settings(n_workers=4, window=100)).record()))
    assert record["stream"] == "zipf"
    assert record["stream_parameters"] == {"n_tuples": 1000, "n_keys": 10, "z": 1.4}
    assert [at["makespan"] for at in record["replications"]] == [1.0, 1.05]


def test_progress_counts_every_tuple():
    done: list[int] = []
    bound(listed(range(2500)), Settings(window=700), progress=done.append)
    assert done == [1000, 1000, 500]


@pytest.mark.parametrize("makespan", [0.99, float("nan"), float("inf")])
def test_a_makespan_is_at_least_one(makespan):
    with pytest.raises(ConfigError, match=r"^makespan must be at least 1, got "):
        bound(listed([1]), makespans=[makespan])


@pytest.mark.parametrize("other", [{"speeds": (2.0, 1.0)}, {"changes": (Change(5, add=1),)}])
def test_workers_are_alike_and_stay(other):
    with pytest.raises(ConfigError, match="leave speeds and changes out"):
        bound(listed([1]), Settings(**other))


def test_a_stream_without_tuples():
    with pytest.raises(InputError, match="the stream has no tuples"):
        bound(listed([]))
