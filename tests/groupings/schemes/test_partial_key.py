"""Partial key grouping: route for route against the reference, and the theorems of its paper (section IV)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed
from tests.hashing.murmur3_family import Murmur3

from anabranch.errors import ConfigError
from anabranch.groupings import KeyGrouping, PartialKeyGrouping, Report
from anabranch.hashing import MultiplyShift, hash_keys

from .. import reference

UNIVERSE = hash_keys(np.arange(100))

streams = skewed(UNIVERSE, most=600)


def imbalance(routes: np.ndarray, n_workers: int) -> float:
    loads = np.bincount(routes, minlength=n_workers)
    return float(loads.max() - loads.mean())


@settings(max_examples=50)
@given(keys=streams, n_workers=st.integers(1, 12), choices=st.integers(1, 14))
def test_routes_equal_the_reference(keys, n_workers, choices):
    routes = PartialKeyGrouping(choices=choices).build(n_workers).route(keys)
    assert routes.tolist() == reference.partial_key_routes(keys.tolist(), n_workers, choices)


def test_ties_go_to_the_first_choice():
    first, second = MultiplyShift().pairs(UNIVERSE, 10, 0)
    for key, a, b in zip(UNIVERSE, first.tolist(), second.tolist(), strict=True):
        assert PartialKeyGrouping().build(10).route(np.full(4, key)).tolist() == [a, b, a, b]


def test_candidates_that_coincide_are_one():
    family = Murmur3()
    keys = np.arange(1000, dtype=np.uint64)
    first, second = family.pairs(keys, 10, 0)
    alone = int(np.flatnonzero(first == second)[0])
    routes = PartialKeyGrouping(family=family).build(10).route(np.full(5, keys[alone]))
    assert set(routes.tolist()) == {int(first[alone])}


@pytest.mark.parametrize("choices", [1, 2, 3, 7])
def test_a_key_has_at_most_as_many_replicas_as_choices(choices, zipf):
    routers = PartialKeyGrouping(choices=choices).build_all(n_sources=3, n_workers=20)
    pairs = {pair for router in routers for pair in zip(zipf.tolist(), router.route(zipf).tolist(), strict=True)}
    replicas = np.unique([key for key, _ in pairs], return_counts=True)[1]
    assert replicas.max() == choices


def test_one_choice_is_key_grouping(zipf):
    assert (PartialKeyGrouping(choices=1).build(9).route(zipf) == KeyGrouping().build(9).route(zipf)).all()


def uniform_routes(n_workers: int, choices: int, seed: int) -> np.ndarray:
    """The theorems' hardest case: 5 n keys, all alike, and m = 40 n² tuples."""
    keys = hash_keys(np.random.default_rng(seed).integers(0, 5 * n_workers, 40 * n_workers**2))
    return PartialKeyGrouping(choices=choices).build(n_workers, seed=seed).route(keys)


@pytest.mark.parametrize("n_workers", [10, 20, 50])
def test_theorem_4_1(n_workers):
    """Imbalance is O(m/n) with two choices and O(m/n · ln n / ln ln n) with one, but for 1/n of the hash functions."""
    mean = 40 * n_workers
    seeds = range(40)
    two = [imbalance(uniform_routes(n_workers, 2, seed), n_workers) <= 0.25 * mean for seed in seeds]
    log = math.log(n_workers) / math.log(math.log(n_workers))
    one = [imbalance(uniform_routes(n_workers, 1, seed), n_workers) <= 2 * mean * log for seed in seeds]
    assert np.mean(two) >= 1 - 1 / n_workers
    assert np.mean(one) >= 1 - 1 / n_workers


@pytest.mark.parametrize("n_workers", [10, 20, 50])
def test_theorem_4_2(n_workers):
    """With one choice the imbalance is of that order: on 5 n keys well above what two choices leave."""
    mean = 40 * n_workers
    one = np.mean([imbalance(uniform_routes(n_workers, 1, seed), n_workers) for seed in range(40)])
    assert one > 0.5 * mean


@settings(max_examples=30)
@given(n_workers=st.integers(2, 40), share=st.floats(0.1, 1), choices=st.integers(1, 4), seed=st.integers(0, 1000))
def test_imbalance_is_at_least_what_the_hottest_key_forces(n_workers, share, choices, seed):
    rng = np.random.default_rng(seed)
    keys = np.where(rng.random(3_000) < share, UNIVERSE[0], UNIVERSE[rng.integers(1, 100, 3_000)])
    hottest = (keys == UNIVERSE[0]).mean()
    routes = PartialKeyGrouping(choices=choices).build(n_workers, seed=seed).route(keys)
    assert imbalance(routes, n_workers) >= (hottest / choices - 1 / n_workers) * len(keys) - 1e-6


def test_local_estimates_balance_as_a_whole(zipf):
    """Imbalance over all sources is at most the sum of the local ones (section III-B)."""
    routers = PartialKeyGrouping().build_all(n_sources=5, n_workers=8)
    parts = [router.route(zipf[source::5]) for source, router in enumerate(routers)]
    assert imbalance(np.concatenate(parts), 8) <= sum(imbalance(part, 8) for part in parts) + 1e-9


def test_the_global_oracle_sees_the_load_of_all_sources():
    oracle = PartialKeyGrouping(estimation="global").build_all(n_sources=2, n_workers=10)
    local = PartialKeyGrouping().build_all(n_sources=2, n_workers=10)
    one = UNIVERSE[:1]
    assert oracle[0].route(one)[0] != oracle[1].route(one)[0]
    assert local[0].route(one)[0] == local[1].route(one)[0]


def test_probing_sets_the_loads_to_what_the_workers_report():
    key = UNIVERSE[:1]
    first, second = (int(worker[0]) for worker in MultiplyShift().pairs(key, 10, 0))
    router = PartialKeyGrouping(probe_s=10.0).build(10)
    tuples = np.zeros(10, dtype=np.int64)
    tuples[first] = 3
    router.observe(Report(now=4.0, worker_tuples=tuples))
    assert router.loads.tolist() == [0] * 10
    router.observe(Report(now=10.0, worker_tuples=tuples))
    assert router.loads.tolist() == (2 * tuples).tolist()
    assert router.route(key.repeat(8)).tolist() == [second] * 6 + [first, second]
    router.observe(Report(now=19.0, worker_tuples=tuples))
    assert router.loads[second] == 7
    router.observe(Report(now=20.0, worker_tuples=tuples))
    assert router.loads.tolist() == (4 * tuples).tolist()


def test_without_probing_reports_are_ignored():
    router = PartialKeyGrouping().build(3)
    before = router.snapshot()
    router.observe(Report(now=100.0, worker_tuples=np.array([5, 5, 5])))
    assert router.snapshot() == before
    probing = PartialKeyGrouping(probe_s=1.0).build(3)
    before = probing.snapshot()
    probing.observe(Report(now=100.0, tuples=7))
    assert probing.snapshot() == before


def test_probing_follows_the_workers_alive():
    router = PartialKeyGrouping(probe_s=1.0).build(4)
    router.set_workers([1, 3])
    router.observe(Report(now=1.0, worker_tuples=np.array([9, 2, 9, 5])))
    assert router.loads.tolist() == [2, 5]


def test_a_newcomer_starts_at_the_mean_load():
    router = PartialKeyGrouping().build(3)
    router.loads[:] = [10, 20, 60]
    router.set_workers([0, 1, 5])
    assert router.loads.tolist() == [10, 20, 15]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"choices": 0}, "choices must be at least 1, got 0"),
        ({"estimation": "psychic"}, 'estimation must be "local" or "global", got \'psychic\''),
        ({"probe_s": 0.0}, "probe_s must be above 0, got 0.0"),
        ({"probe_s": float("nan")}, "probe_s must be above 0, got nan"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ConfigError, match=message):
        PartialKeyGrouping(**parameters)


def test_a_window_begins_without_loads_and_without_reports():
    router = PartialKeyGrouping(probe_s=10.0).build(4)
    router.route(UNIVERSE)
    router.observe(Report(now=4.0, worker_tuples=np.array([5, 0, 0, 0])))
    router.begin_window()
    assert router.loads.tolist() == [0] * 4
    router.observe(Report(now=10.0, worker_tuples=np.array([0, 2, 0, 0])))
    assert router.loads.tolist() == [0, 2, 0, 0]
