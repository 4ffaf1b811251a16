"""Consistent grouping: full virtual workers are passed over, and slow workers hand theirs on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.errors import ConfigError
from anabranch.groupings import ConsistentGrouping, Report
from anabranch.hashing import hash_keys
from anabranch.hashing.family import reseed

from .. import reference

UNIVERSE = hash_keys(np.arange(1_000))

streams = skewed(UNIVERSE[:100], most=600)


@settings(max_examples=40)
@given(
    keys=streams,
    n_workers=st.integers(1, 6),
    virtual=st.integers(1, 5),
    epsilon=st.sampled_from([0.5, 1.0]) | st.floats(0.01, 2),
    seed=st.integers(0, 3),
)
def test_routes_equal_the_reference(keys, n_workers, virtual, epsilon, seed):
    grouping = ConsistentGrouping(epsilon=epsilon, virtual_workers=virtual, max_rehashes=1_000_000)
    router = grouping.build(n_workers, seed=seed)
    routes = router.route(keys)
    assert routes.tolist() == reference.consistent_routes(reseed(keys, seed).tolist(), router.owners.tolist(), epsilon)


@given(keys=streams, n_workers=st.integers(1, 6), max_rehashes=st.integers(1, 5), epsilon=st.floats(0.01, 2))
def test_so_many_rehashes_are_tried_and_then_the_least_loaded_is_taken(keys, n_workers, max_rehashes, epsilon):
    router = ConsistentGrouping(epsilon=epsilon, virtual_workers=1, max_rehashes=max_rehashes).build(n_workers)
    routes = router.route(keys).tolist()
    for virtual, right in reference.replay_consistent(keys.tolist(), routes, n_workers, epsilon, max_rehashes):
        assert virtual in right


@pytest.mark.parametrize(("n_workers", "epsilon"), [(3, 0.5), (4, 1.0), (6, 1.0), (8, 1.0)])
def test_a_virtual_worker_is_full_at_exactly_its_capacity(n_workers, epsilon):
    """Capacities here are whole numbers at every other tuple, so that loads do meet them."""
    keys = UNIVERSE[np.random.default_rng(1).zipf(1.5, 300) % 1_000]
    router = ConsistentGrouping(epsilon=epsilon, virtual_workers=1, max_rehashes=1_000_000).build(n_workers)
    assert router.route(keys).tolist() == reference.consistent_routes(keys.tolist(), list(range(n_workers)), epsilon)


@settings(max_examples=30)
@given(
    keys=streams,
    n_workers=st.integers(1, 6),
    virtual=st.integers(1, 5),
    epsilon=st.floats(0.01, 2),
    max_rehashes=st.integers(1, 100),
)
def test_no_virtual_worker_is_ever_more_than_full(keys, n_workers, virtual, epsilon, max_rehashes):
    router = ConsistentGrouping(epsilon=epsilon, virtual_workers=virtual, max_rehashes=max_rehashes).build(n_workers)
    n_virtual = n_workers * virtual
    for i in range(len(keys)):
        worker = int(router.route(keys[i : i + 1])[0])
        assert router.loads.count.sum() == i + 1
        assert router.loads.count.max() <= 1 + (1 + epsilon) * (i + 1) / n_virtual
        assert router.loads.count[router.owners == worker].sum() > 0


@pytest.mark.parametrize("max_rehashes", [1, 2, 10])
def test_the_least_loaded_is_taken_when_all_that_were_tried_are_full(max_rehashes):
    router = ConsistentGrouping(virtual_workers=5, max_rehashes=max_rehashes).build(4)
    for total in range(1, 401):
        router.route(UNIVERSE[:1])
        assert router.loads.count.max() <= 1 + 1.01 * total / 20
    assert router.loads.count.min() > 0


def test_a_worker_owns_as_many_virtual_workers_as_any_other():
    router = ConsistentGrouping(virtual_workers=7).build(5)
    assert np.bincount(router.owners).tolist() == [7] * 5


def balance(router, seconds_per_tuple: np.ndarray, rounds: int) -> np.ndarray:
    """Tuples of each worker in the last of `rounds` periods, each ended by a report."""
    tuples = np.zeros(len(seconds_per_tuple), dtype=np.int64)
    for step in range(rounds):
        tuples = np.bincount(router.route(hash_keys(np.arange(5_000) + 5_000 * step)), minlength=len(tuples))
        router.observe(Report(now=float(step), worker_tuples=tuples, worker_seconds=tuples * seconds_per_tuple))
    return tuples


@pytest.mark.parametrize("speeds", [[2, 2, 1, 1], [1, 2], [2, 1, 1, 1, 1, 1]])
def test_loads_become_proportional_to_speeds(speeds):
    router = ConsistentGrouping(virtual_workers=20).build(len(speeds))
    speeds = np.array(speeds, dtype=float)
    tuples = balance(router, 1 / speeds, 60)
    assert np.allclose(tuples / tuples.sum(), speeds / speeds.sum(), rtol=0.12)
    assert len(router.owners) == 20 * len(speeds)


def test_loads_follow_a_change_of_speeds():
    router = ConsistentGrouping(virtual_workers=20).build(2)
    balance(router, np.array([1.0, 0.5]), 40)
    tuples = balance(router, np.array([0.5, 1.0]), 60)
    assert np.allclose(tuples / tuples.sum(), [2 / 3, 1 / 3], rtol=0.12)


def test_the_most_overloaded_gives_one_virtual_worker_to_the_most_idle():
    router = ConsistentGrouping(virtual_workers=4).build(5)
    router.observe(Report(worker_tuples=np.ones(5, np.int64), worker_seconds=np.array([9.0, 2.0, 9.5, 25.0, 0.0])))
    assert np.bincount(router.owners).tolist() == [4, 4, 4, 3, 5]
    router.observe(Report(worker_tuples=np.ones(5, np.int64), worker_seconds=np.array([20.0, 2.0, 10.4, 25.0, 0.0])))
    assert np.bincount(router.owners).tolist() == [3, 5, 4, 2, 6]


def test_a_worker_that_came_after_a_report_is_not_taken_for_an_idle_one():
    router = ConsistentGrouping(virtual_workers=6).build(3)
    router.set_workers(range(4))
    before = np.bincount(router.owners, minlength=4)
    router.observe(Report(worker_tuples=np.ones(3, np.int64), worker_seconds=np.array([20.0, 10.0, 6.0])))
    assert (np.bincount(router.owners, minlength=4) - before).tolist() == [-1, 0, 1, 0]


def test_workers_within_the_slack_keep_what_they_have():
    router = ConsistentGrouping(slack=0.2).build(3)
    before = router.snapshot()
    for seconds in ([10.0, 11.9, 8.1], [0.0, 0.0, 0.0], [12.1, 9.0, 9.0], [11.0, 11.0, 7.0]):
        router.observe(Report(worker_tuples=np.ones(3, np.int64), worker_seconds=np.array(seconds)))
    assert router.snapshot() == before


def test_the_last_virtual_worker_is_kept():
    router = ConsistentGrouping(virtual_workers=3).build(2)
    for _ in range(10):
        router.observe(Report(worker_tuples=np.ones(2, np.int64), worker_seconds=np.array([9.0, 1.0])))
    assert np.bincount(router.owners).tolist() == [1, 5]


def test_a_window_keeps_what_was_handed_over():
    router = ConsistentGrouping(virtual_workers=3).build(2)
    router.observe(Report(worker_tuples=np.ones(2, np.int64), worker_seconds=np.array([9.0, 1.0])))
    router.route(UNIVERSE)
    router.begin_window()
    assert np.bincount(router.owners).tolist() == [2, 4]
    assert router.loads.count.sum() == router.total[0] == 0


def test_virtual_workers_are_dealt_out_when_workers_come_and_go():
    router = ConsistentGrouping(virtual_workers=6).build(4)
    before = router.owners.copy()
    router.set_workers([0, 1, 3])
    after = router.workers[router.owners]
    assert np.bincount(after, minlength=4).tolist() == [8, 8, 0, 8]
    assert (after[before != 2] == before[before != 2]).all()
    router.set_workers([0, 1, 3, 9])
    again = router.workers[router.owners]
    assert np.bincount(again, minlength=10)[[0, 1, 3, 9]].tolist() == [6, 6, 6, 6]
    assert (again[again != 9] == after[again != 9]).all()


def test_more_workers_than_virtual_ones_are_refused_and_nothing_changes():
    router = ConsistentGrouping(virtual_workers=2).build(3)
    router.route(UNIVERSE)
    before = router.snapshot()
    with pytest.raises(ConfigError, match="6 virtual workers cannot serve 7 workers; raise virtual_workers"):
        router.set_workers(range(7))
    assert router.snapshot() == before
    assert set(router.route(UNIVERSE).tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0, got 0.0"),
        ({"epsilon": float("nan")}, "epsilon must be above 0, got nan"),
        ({"virtual_workers": 0}, "virtual_workers must be at least 1, got 0"),
        ({"slack": -0.1}, "slack must be at least 0 and below 1, got -0.1"),
        ({"slack": 1.0}, "slack must be at least 0 and below 1, got 1.0"),
        ({"max_rehashes": 0}, "max_rehashes must be at least 1, got 0"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ConfigError, match=message):
        ConsistentGrouping(**parameters)
