"""Off-line greedy is "longest processing time first" on the counts it is given."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.groupings import OfflineGreedy, Plan
from anabranch.hashing import hash_keys

from .. import reference

UNIVERSE = hash_keys(np.arange(6_000))


def placed(counts: list[int], n_workers: int) -> np.ndarray:
    """Load of each worker when the keys come as often as `counts` says."""
    keys = UNIVERSE[: len(counts)]
    router = OfflineGreedy.from_counts(keys, np.array(counts)).build(n_workers)
    return np.bincount(router.route(keys.repeat(counts)), minlength=n_workers)


@settings(max_examples=40)
@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=40), n_workers=st.integers(1, 12))
def test_routes_equal_the_reference(counts, n_workers):
    known = UNIVERSE[: len(counts)]
    asked = UNIVERSE[: len(counts) + 20]
    routes = OfflineGreedy().with_counts(known, np.array(counts)).build(n_workers).route(asked)
    true = dict(zip(known.tolist(), counts, strict=True))
    assert routes.tolist() == reference.offline_greedy_routes(asked.tolist(), n_workers, true)


@settings(max_examples=40)
@given(counts=st.lists(st.integers(1, 20), min_size=1, max_size=7), n_workers=st.integers(1, 3))
def test_the_most_loaded_worker_is_within_a_third_of_the_best_possible(counts, n_workers):
    best = min(
        max(sum(count for count, worker in zip(counts, homes, strict=True) if worker == w) for w in range(n_workers))
        for homes in product(range(n_workers), repeat=len(counts))
    )
    assert placed(counts, n_workers).max() <= (4 / 3 - 1 / (3 * n_workers)) * best + 1e-9


def test_the_bound_is_met_where_it_is_tight():
    assert placed([5, 5, 4, 4, 3, 3, 3], 3).max() == 11


def test_a_large_table_and_one_replica_for_each_key():
    counts = 1 + 10_000 // (1 + np.arange(5_000))
    router = OfflineGreedy.from_counts(UNIVERSE[:5_000], counts).build(8)
    routes = router.route(np.concatenate([UNIVERSE, UNIVERSE[::-1]]))
    assert (routes[:6_000] == routes[:5_999:-1]).all()
    loads = np.bincount(routes[:5_000], weights=counts, minlength=8)
    assert loads.max() - loads.min() <= counts.min()


def test_keys_are_placed_anew_when_workers_change():
    counts = np.arange(100, 0, -1)
    router = OfflineGreedy.from_counts(UNIVERSE[:100], counts).build(4)
    router.set_workers([1, 3, 9])
    fresh = OfflineGreedy.from_counts(UNIVERSE[:100], counts).build(3).route(UNIVERSE[:100])
    assert router.route(UNIVERSE[:100]).tolist() == np.array([1, 3, 9])[fresh].tolist()


def test_counts_are_needed():
    with pytest.raises(ConfigError, match=r"needs the key counts; use OfflineGreedy.from_counts"):
        OfflineGreedy().build(3)
    with pytest.raises(ConfigError, match="equally long, got 2 and 1"):
        OfflineGreedy.from_counts(UNIVERSE[:2], np.array([1]))


def test_its_table_is_what_its_router_does():
    keys, counts = np.array([7, 8, 9, 10], dtype=np.uint64), np.array([5, 4, 3, 3])
    table = OfflineGreedy().table(Plan(tuples=15, hot_keys=keys, hot_counts=counts), 2)
    routes = OfflineGreedy.from_counts(keys, counts).build(2).route(keys)
    assert [table.workers_of(int(key)).tolist() for key in keys] == [[worker] for worker in routes.tolist()]
