"""Distribution-aware key grouping: what is learned, the mapping that follows, and plans."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.groupings import DistributionAwareKeyGrouping, KeyGrouping, Plan
from anabranch.hashing import hash_keys

UNIVERSE = hash_keys(np.arange(2_000))


def drawn(n: int, seed: int = 0, z: float = 1.4, n_keys: int = 2_000) -> np.ndarray:
    return UNIVERSE[np.random.default_rng(seed).zipf(z, n) % n_keys]


def workers_of(routes: np.ndarray, keys: np.ndarray) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for key, worker in zip(keys.tolist(), routes.tolist(), strict=True):
        found.setdefault(key, set()).add(worker)
    return found


def longest_processing_time(weights: list[int], n_workers: int) -> list[int]:
    """Worker of each weight: heaviest first to the least loaded, of equals the first."""
    loads, placed = [0] * n_workers, [0] * len(weights)
    for i in sorted(range(len(weights)), key=lambda i: -weights[i]):
        placed[i] = loads.index(min(loads))
        loads[placed[i]] += weights[i]
    return placed


def test_while_it_learns_tuples_go_by_hash():
    keys = drawn(3_000)
    router = DistributionAwareKeyGrouping(learning=2_000).build(10, seed=3)
    by_hash = KeyGrouping().build(10, seed=3).route(keys)
    routes = np.concatenate([router.route(keys[:1_500]), router.route(keys[1_500:])])
    assert routes[:2_000].tolist() == by_hash[:2_000].tolist()
    assert routes[2_000:].tolist() != by_hash[2_000:].tolist()


@settings(max_examples=20)
@given(n_workers=st.integers(1, 30), seed=st.integers(0, 1000), cut=st.integers(1, 2_999))
def test_after_it_every_key_has_one_worker(n_workers, seed, cut):
    grouping = DistributionAwareKeyGrouping(learning=1_000)
    routers = grouping.build_all(3, n_workers, seed=seed)
    routers[0].route(drawn(1_000, seed))
    keys = drawn(3_000, seed + 1)
    routes = np.concatenate([routers[1].route(keys[:cut]), routers[2].route(keys[cut:])])
    assert all(len(workers) == 1 for workers in workers_of(routes, keys).values())


def test_the_mapping_is_shared():
    routers = DistributionAwareKeyGrouping(learning=100).build_all(3, 7)
    assert routers[0] is routers[1] is routers[2]


def heavy_keys(router) -> set[int]:
    """Keys that have an entry of their own in the mapping."""
    nobody = np.full(len(UNIVERSE), -1, dtype=np.int32)
    out = np.empty(len(UNIVERSE), dtype=np.int32)
    router.table.look_up(UNIVERSE, nobody, out)
    return set(UNIVERSE[out >= 0].tolist())


@settings(max_examples=40)
@given(
    n_workers=st.integers(1, 12),
    n_keys=st.sampled_from([5, 60, 2_000]),
    theta=st.none() | st.sampled_from([0.02, 0.1, 0.4]),
    factor=st.sampled_from([0.5, 2.0, 5.0]),
    seed=st.integers(0, 1000),
)
def test_the_mapping_is_longest_processing_time_first(n_workers, n_keys, theta, factor, seed):
    learning = 800
    router = DistributionAwareKeyGrouping(learning=learning, theta=theta, factor=factor).build(n_workers)
    keys = drawn(learning, seed, 1.2, n_keys)
    router.route(keys)
    # Heavy: SpaceSaving's count less its error is at least ⌈theta m⌉.
    share = 1 / (5 * n_workers) if theta is None else theta
    assert router.sketch.capacity == math.ceil(2 / share)
    top = list(zip(*(array.tolist() for array in router.sketch.top()), strict=True))
    heavy = [(key, count) for key, count, error in top if count - error >= math.ceil(share * learning)]
    assert heavy_keys(router) == {key for key, _ in heavy}
    true = Counter(keys.tolist())
    assert all(true[key] >= share * learning for key, _ in heavy)
    # Buckets weigh what they received without the heavy keys.
    n_buckets = math.ceil(factor * n_workers)
    buckets = [0] * n_buckets
    bucket_of = dict(zip(UNIVERSE.tolist(), router._bucket(UNIVERSE).tolist(), strict=True))
    for key, count in true.items():
        buckets[bucket_of[key]] += count
    for key, count in heavy:
        buckets[bucket_of[key]] -= count
    weights = [count for _, count in heavy] + [max(0, weight) for weight in buckets]
    placed = longest_processing_time(weights, n_workers)
    own = {key: worker for (key, _), worker in zip(heavy, placed, strict=False)}
    expected = [own.get(key, placed[len(heavy) + bucket_of[key]]) for key in UNIVERSE.tolist()]
    assert router.route(UNIVERSE).tolist() == expected


def test_every_key_with_its_share_is_heavy_where_counters_suffice():
    """All counts are exact with a counter a key."""
    keys = np.repeat(UNIVERSE[:4], [50, 20, 19, 11])
    router = DistributionAwareKeyGrouping(learning=100, theta=0.2).build(5)
    router.route(keys)
    assert heavy_keys(router) == set(UNIVERSE[:2].tolist())


def test_it_balances_better_than_hashing():
    learned, later = drawn(50_000, 1, 1.2), drawn(50_000, 2, 1.2)
    router = DistributionAwareKeyGrouping(learning=50_000, factor=20).build(8)
    router.route(learned)
    loads = np.bincount(router.route(later), minlength=8)
    by_hash = np.bincount(KeyGrouping().build(8).route(later), minlength=8)
    hottest = max(Counter(later.tolist()).values())
    assert loads.max() <= 1.05 * max(hottest, loads.mean())
    assert by_hash.max() > 1.2 * loads.max()


def test_other_workers_get_a_mapping_of_what_was_learned():
    grouping = DistributionAwareKeyGrouping(learning=5_000)
    router, fresh = grouping.build(8), grouping.build(8)
    for each in (router, fresh):
        each.route(drawn(5_000))
    heavy = heavy_keys(router)
    router.set_workers([1, 4, 5])
    keys = drawn(5_000, 1)
    routes = router.route(keys)
    assert set(routes.tolist()) == {1, 4, 5}
    assert all(len(workers) == 1 for workers in workers_of(routes, keys).values())
    assert heavy_keys(router) < heavy
    router.set_workers(range(8))
    assert router.route(keys).tolist() == fresh.route(keys).tolist()


def test_workers_may_change_while_it_learns():
    router = DistributionAwareKeyGrouping(learning=1_000).build(8)
    router.route(drawn(500))
    router.set_workers([2, 6])
    assert router.route(drawn(500, 1)).tolist() == [
        [2, 6][place] for place in KeyGrouping().build(2).route(drawn(500, 1))
    ]
    loads = np.bincount(router.route(drawn(1_000, 2)), minlength=7)
    assert loads[[2, 6]].sum() == 1_000
    assert loads[[2, 6]].min() > 0


# --- plans


def test_a_table_maps_the_heavy_keys_for_good():
    grouping = DistributionAwareKeyGrouping(theta=0.1)
    plan = Plan(tuples=1_000, hot_keys=UNIVERSE[:4], hot_counts=np.array([400, 300, 100, 99]))
    table = grouping.table(plan, 3)
    assert table.keys.tolist() == UNIVERSE[:3].tolist()
    assert [table.workers_of(int(key)).tolist() for key in UNIVERSE[:4]] == [[0], [1], [2], []]
    later = Plan(tuples=1_000, hot_keys=UNIVERSE[5:6], hot_counts=np.array([900]), table=table)
    assert grouping.table(later, 3) is table


def test_without_heavy_keys_a_table_is_empty_and_may_still_be_made():
    grouping = DistributionAwareKeyGrouping(theta=0.5)
    empty = grouping.table(Plan(tuples=10, hot_keys=UNIVERSE[:1], hot_counts=np.array([4])), 3)
    assert not len(empty.keys)
    plan = Plan(tuples=10, hot_keys=UNIVERSE[:1], hot_counts=np.array([9]), table=empty)
    assert grouping.table(plan, 3).keys.tolist() == UNIVERSE[:1].tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"learning": 0}, "learning must be at least 1 tuple, got 0"),
        ({"theta": 0.0}, "theta must be above 0 and at most 1, got 0.0"),
        ({"theta": 1.1}, "theta must be above 0 and at most 1, got 1.1"),
        ({"factor": 0.0}, "factor must be above 0, got 0.0"),
        ({"factor": float("nan")}, "factor must be above 0, got nan"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ConfigError) as error:
        DistributionAwareKeyGrouping(**parameters)
    assert str(error.value) == message
