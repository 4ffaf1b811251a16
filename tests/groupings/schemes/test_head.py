"""D-Choices and W-Choices against exact counts: which keys are hot, where they go, and what a plan hands on."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.errors import ConfigError
from anabranch.groupings import DChoices, PartialKeyGrouping, Plan, Report, WChoices
from anabranch.groupings.schemes.head import distinct_choices, solve_choices
from anabranch.hashing import MultiplyShift, hash_keys

from .. import reference

UNIVERSE = hash_keys(np.arange(300))
BOTH = pytest.mark.parametrize("cls", [DChoices, WChoices])

# So few keys that every key has its own counter, and estimates are exact.
streams = skewed(UNIVERSE, most=1_500, least=1)


def imbalance(routes: np.ndarray, n_workers: int) -> float:
    loads = np.bincount(routes, minlength=n_workers)
    return float(loads.max() - loads.mean()) / len(routes)


@settings(max_examples=30)
@given(keys=streams, n_workers=st.integers(1, 15), theta=st.none() | st.floats(0.01, 0.5))
def test_w_choices_chooses_as_the_reference(keys, n_workers, theta):
    routes = WChoices(theta=theta).build(n_workers).route(keys)
    share = theta or 1 / (5 * n_workers)
    replay = reference.replay_head(keys.tolist(), routes.tolist(), n_workers, share, lambda total, counts: n_workers)
    for worker, right in replay:
        assert worker in right


# Here both sides of the condition are equal but for rounding. In which of them the reference rounds the other way
# depends on the processor.
@example(keys=UNIVERSE[np.random.default_rng(3780).zipf(1.1239, 1_500) % 300], n_workers=23, theta=None, epsilon=0.0)
@example(keys=UNIVERSE[np.random.default_rng(29).zipf(1.1297, 1_500) % 300], n_workers=29, theta=None, epsilon=0.0)
@settings(max_examples=30)
@given(
    keys=streams,
    n_workers=st.integers(1, 30),
    theta=st.none() | st.floats(0.01, 0.5),
    epsilon=st.sampled_from([0.0, 1e-4, 0.01]),
)
def test_d_choices_chooses_as_the_reference(keys, n_workers, theta, epsilon):
    router = DChoices(theta=theta, epsilon=epsilon).build(n_workers)
    routes, found = [], []
    for i in range(len(keys)):
        routes += router.route(keys[i : i + 1]).tolist()
        found.append(router.head_choices)
    share = theta or 1 / (5 * n_workers)
    schedule = reference.DChoicesSchedule(n_workers, share, epsilon, found)
    replay = reference.replay_head(keys.tolist(), routes, n_workers, share, schedule)
    for (worker, right), choices in zip(replay, found, strict=True):
        assert worker in right
        assert choices == schedule.choices


@pytest.mark.parametrize("n_tuples", [5_000, 250_000])
def test_choices_are_solved_for_after_every_twentieth_of_the_tuples_but_after_10_000_at_most(n_tuples):
    """The hottest key comes and goes with every solving, so that each finds other choices than the one before."""
    router, schedule = DChoices(theta=0.05).build(100), reference.DChoicesSchedule(100, 0.05, 1e-4)
    counts, rng, found = Counter(), np.random.default_rng(0), [router.head_choices]

    def route(n: int) -> None:
        keys = np.where(rng.random(n) < 0.5 * (len(found) % 2), UNIVERSE[0], UNIVERSE[rng.integers(1, 300, n)])
        router.route(keys)
        counts.update(keys.tolist())

    while counts.total() < n_tuples:
        route(schedule.next - 1 - counts.total())
        assert router.head_choices == found[-1]
        route(1)
        assert router.head_choices == schedule(counts.total(), counts)
        found.append(router.head_choices)
    assert np.count_nonzero(np.diff(found)) > 0.8 * len(found)


@BOTH
@settings(max_examples=20)
@given(keys=streams, n_workers=st.integers(2, 15), source=st.integers(0, 2))
def test_a_key_that_was_never_hot_has_at_most_two_replicas(cls, keys, n_workers, source):
    routes = cls().build(n_workers, source=source, n_sources=3).route(keys)
    first, second = MultiplyShift().pairs(keys, n_workers, 0)
    counts: Counter[int] = Counter()
    ever_hot, strayed = set(), set()
    for total, (key, worker, a, b) in enumerate(zip(keys.tolist(), routes, first, second, strict=True), start=1):
        counts[key] += 1
        if counts[key] >= total / (5 * n_workers):
            ever_hot.add(key)
        if worker not in (a, b):
            strayed.add(key)
    assert strayed <= ever_hot


@settings(max_examples=50)
@given(
    counts=st.lists(st.integers(0, 20) | st.integers(0, 1_000), min_size=1, max_size=40),
    others=st.integers(0, 5_000),
    n_workers=st.integers(1, 60),
    theta=st.none() | st.floats(0.001, 0.5),
    epsilon=st.sampled_from([0.0, 1e-4, 0.01, 0.5]),
)
def test_the_number_of_choices_is_the_smallest_that_fits(counts, others, n_workers, theta, epsilon):
    total = sum(counts) + others + 1
    share = theta or 1 / (5 * n_workers)
    order = np.argsort(counts, kind="stable").astype(np.int32)
    solved = solve_choices(np.array(counts, dtype=np.int64), order, total, share, epsilon, n_workers)
    assert solved in reference.solve_choices(counts, total, share, epsilon, n_workers)


def test_more_skew_needs_more_choices():
    def solved(share: float) -> int:
        return solve_choices(np.array([int(share * 1000)]), np.zeros(1, np.int32), 1000, 0.004, 1e-4, 50)

    choices = [solved(share) for share in (0.01, 0.1, 0.3, 0.6, 0.9)]
    assert choices == sorted(choices)
    assert choices[0] == 2
    assert choices[-1] > 20


def test_a_number_of_hashes_becomes_the_workers_they_reach():
    assert [distinct_choices(d, 10) for d in (2, 3, 5, 9, 10, 50)] == [2, 3, 5, 7, 10, 10]
    assert [distinct_choices(2, n) for n in (2, 3, 100, 10_000)] == [2, 2, 2, 2]


@BOTH
@pytest.mark.parametrize("n_workers", [10, 50])
def test_they_balance_where_two_choices_do_not(cls, n_workers, zipf):
    parts = [router.route(zipf[i::5]) for i, router in enumerate(cls().build_all(5, n_workers))]
    assert imbalance(np.concatenate(parts), n_workers) < 0.005
    assert imbalance(PartialKeyGrouping().build(n_workers).route(zipf), n_workers) > 0.05


def test_d_choices_needs_fewer_replicas(zipf):
    def pairs(cls) -> int:
        return len(set(zip(zipf.tolist(), cls().build(100).route(zipf).tolist(), strict=True)))

    assert pairs(DChoices) < 0.9 * pairs(WChoices)


@BOTH
def test_too_few_counters_make_cold_keys_look_hot(cls, zipf):
    def pairs(capacity: int) -> int:
        routes = cls(capacity=capacity).build(50).route(zipf)
        return len(set(zip(zipf.tolist(), routes.tolist(), strict=True)))

    assert pairs(50) > 1.5 * pairs(1000)


# --- reports and plans


def reports_of(routers, zipf: np.ndarray) -> list[Report]:
    routes = [router.route(zipf[i :: len(routers)]) for i, router in enumerate(routers)]
    tuples = np.bincount(np.concatenate(routes), minlength=routers[0].n_workers)
    return [*(router.report() for router in routers), Report(worker_tuples=tuples, worker_seconds=tuples * 0.5)]


@BOTH
def test_a_plan_pools_what_the_sources_counted(cls, zipf):
    plan = cls(capacity=2_000).fold(None, reports_of(cls(capacity=2_000).build_all(2, 10), zipf))
    keys, counts = np.unique(zipf, return_counts=True)
    assert plan.tuples == len(zipf)
    assert dict(zip(plan.hot_keys.tolist(), plan.hot_counts.tolist(), strict=True)) == dict(
        zip(keys.tolist(), counts.tolist(), strict=True)
    )
    assert (np.diff(plan.hot_counts) <= 0).all()
    assert plan.seconds_per_tuple.tolist() == [0.5] * 10


@BOTH
@pytest.mark.parametrize("n_sources", [1, 2, 5])
def test_a_router_that_follows_a_plan_knows_the_hot_keys_from_its_first_tuple(cls, n_sources, zipf):
    n_workers = 10
    # A key whose candidates are no source's first worker, and so hot that its choices are all workers.
    starts = [router.rotation for router in cls().build_all(n_sources, n_workers)]
    pairs = np.stack(MultiplyShift().pairs(UNIVERSE, n_workers, 0))
    hottest = UNIVERSE[~np.isin(pairs, starts).any(axis=0)][0]
    keys = np.where(np.arange(len(zipf)) // n_sources % 10 < 9, hottest, zipf)
    plan = cls().fold(None, reports_of(cls().build_all(n_sources, n_workers), keys))
    for router in cls().build_all(n_sources, n_workers):
        router.follow(plan)
        first = router.route(np.array([hottest]))
        assert first.tolist() == [router.rotation]
        others = router.route(np.full(n_workers - 1, hottest))
        assert sorted([*first.tolist(), *others.tolist()]) == list(range(n_workers))
        assert router.report().tuples == len(keys) // n_sources + n_workers


@BOTH
def test_a_router_that_follows_a_plan_knows_that_a_new_key_is_cold(cls, zipf):
    stranger = hash_keys([10**9])
    plan = cls().fold(None, reports_of(cls().build_all(2, 10), zipf))
    follower, ignorant = cls().build(10, source=1, n_sources=2), cls().build(10, source=1, n_sources=2)
    follower.follow(plan)
    candidates = {int(worker[0]) for worker in MultiplyShift().pairs(stranger, 10, 0)}
    assert set(follower.route(stranger.repeat(20)).tolist()) == candidates
    assert len(set(ignorant.route(stranger.repeat(20)).tolist())) == 10


@BOTH
def test_each_source_takes_its_share_of_a_plan(cls):
    router = cls().build(4, source=2, n_sources=5)
    router.route(UNIVERSE)
    router.follow(Plan(tuples=1_000, hot_keys=UNIVERSE[:3], hot_counts=np.array([600, 50, 4])))
    report = router.report()
    assert report.tuples == 200
    assert report.hot_keys.tolist() == UNIVERSE[:2].tolist()
    assert report.hot_counts.tolist() == [120, 10]


@BOTH
def test_a_plan_of_more_keys_than_counters_is_cut(cls):
    router = cls(capacity=3).build(4)
    router.follow(Plan(tuples=1_000, hot_keys=UNIVERSE[:9], hot_counts=np.arange(90, 0, -10)))
    assert router.report().hot_counts.tolist() == [90, 80, 70]


@BOTH
def test_a_window_keeps_what_was_counted(cls, zipf):
    router = cls().build(10)
    router.route(zipf)
    before = router.report()
    router.begin_window()
    after = router.report()
    assert after.tuples == before.tuples == len(zipf)
    assert after.hot_counts.tolist() == before.hot_counts.tolist()


def test_the_table_of_w_choices_has_the_hot_keys_on_all_workers(zipf):
    table = WChoices().table(WChoices().fold(None, reports_of(WChoices().build_all(2, 10), zipf)), 10)
    keys, counts = np.unique(zipf, return_counts=True)
    hot = set(keys[counts >= len(zipf) / 50].tolist())
    assert len(hot) > 2
    assert set(table.keys.tolist()) == hot
    for key in hot:
        assert table.workers_of(key).tolist() == list(range(10))
    assert table.workers_of(int(keys[counts.argmin()])).tolist() == []


def test_changed_workers_are_solved_for_anew(zipf):
    router = DChoices().build(40)
    router.route(zipf)
    assert router.head_choices < 40
    router.set_workers(range(30))
    assert router.head_choices == 30
    router.route(zipf[:1])
    schedule = reference.DChoicesSchedule(30, 1 / 150, 1e-4)
    counts = dict(zip(router.report().hot_keys.tolist(), router.report().hot_counts.tolist(), strict=True))
    assert router.head_choices == schedule(router.report().tuples, Counter(counts)) < 30


@BOTH
def test_bad_parameters_are_refused(cls):
    for theta in (0, -0.1, 1.1, float("nan")):
        with pytest.raises(ConfigError, match=f"theta must be above 0 and at most 1, got {theta}"):
            cls(theta=theta)
    with pytest.raises(ConfigError, match="capacity must be at least 1, got 0"):
        cls(capacity=0)


def test_a_negative_tolerance_is_refused():
    for epsilon in (-1e-9, float("nan")):
        with pytest.raises(ConfigError, match="epsilon must be at least 0"):
            DChoices(epsilon=epsilon)
