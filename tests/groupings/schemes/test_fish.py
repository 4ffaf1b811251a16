"""FISH: route for route against the reference, its guarantees, workers that come and go, and measured speeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.groupings import Fish, Plan, Report
from anabranch.hashing import HashRing, hash_keys

from ..fish_reference import ReferenceFish, clockwise

UNIVERSE = hash_keys(np.arange(600))

configurations = st.builds(
    Fish,
    epoch=st.sampled_from([1, 7, 50, 400]),
    alpha=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    theta=st.none() | st.sampled_from([1e-9, 0.01, 0.1, 0.5, 1.0]),
    capacity=st.sampled_from([1, 3, 20, 300]),
    d_min=st.sampled_from([1, 2, 3, 5, 1000]),
    interval_s=st.sampled_from([0.5, 4.0, 1000.0]),
    virtual_nodes=st.sampled_from([1, 10]),
    hot_keys=st.sampled_from(["chk", "chk", "d-choices", "w-choices"]),
    assignment=st.sampled_from(["waiting-time", "count"]),
    hashing=st.sampled_from(["ring", "modulo"]),
)
sizes = st.integers(1, 12) | st.sampled_from([2, 16, 40, 150])


def drawn(rng: np.random.Generator, n: int, n_keys: int) -> np.ndarray:
    """Keys with a few hot ones, which differ from one call to the next."""
    return UNIVERSE[(rng.zipf(1.3, n) * rng.integers(1, 5)) % n_keys]


def report(seconds: np.ndarray, tuples: np.ndarray | None = None) -> Report:
    tuples = np.full(len(seconds), 8) if tuples is None else tuples
    return Report(worker_tuples=tuples, worker_seconds=tuples * seconds)


# --- against the reference


@settings(max_examples=150)
@given(
    grouping=configurations,
    n_workers=sizes,
    sources=st.sampled_from([(0, 1), (0, 3), (2, 3)]),
    n_keys=st.sampled_from([3, 30, 600]),
    step_s=st.sampled_from([0.0, 2.0**-6, 0.25]),
    seed=st.integers(0, 3),
    data=st.data(),
)
def test_routes_equal_the_reference(grouping, n_workers, sources, n_keys, step_s, seed, data):
    source, n_sources = sources
    router = grouping.build(n_workers, source=source, n_sources=n_sources, seed=seed)
    reference = ReferenceFish(grouping, n_workers, source, n_sources, seed)
    rng = np.random.default_rng(seed)
    now = 0.0
    for _ in range(data.draw(st.integers(1, 4))):
        keys = drawn(rng, 120, n_keys)
        routes = router.route(keys, now, step_s)
        assert routes.tolist() == [reference.route(int(key), now + i * step_s) for i, key in enumerate(keys)]
        now += 120 * step_s + data.draw(st.sampled_from([0.0, 0.25, 5.0]))
        event = data.draw(st.sampled_from(["report", "report", "workers", "nothing"]))
        if event == "report":
            seconds = rng.choice([0.125, 0.5, 1.0, 3.0], n_workers + 3)
            tuples = rng.integers(0, 3, n_workers + 3)
            router.observe(report(seconds, tuples))
            known = {w: tuples[w] * seconds[w] / tuples[w] for w in reference.workers if tuples[w]}
            if known:
                reference.observe(known)
        elif event == "workers":
            alive = sorted(data.draw(st.sets(st.integers(0, n_workers + 2), min_size=1, max_size=n_workers + 3)))
            router.set_workers(alive)
            reference.set_workers(alive)
    counters, n = router.counters.state, len(reference.keys)
    assert counters.keys[:n].tolist() == reference.keys
    assert counters.counts[:n].tolist() == reference.counts
    assert router.assigned[:n].tolist() == reference.assigned
    assert router.backlog.tolist() == [reference.backlog[worker] for worker in reference.workers]
    assert router.mean_candidates == reference.candidates_seen / reference.tuples


def test_more_hot_keys_than_cached_candidate_lists():
    """Every key is hot, has five workers, and shares its place in the cache with another."""
    grouping = Fish(capacity=600, theta=1e-9, d_min=5, epoch=100)
    router, reference = grouping.build(16), ReferenceFish(grouping, 16, 0, 1, 0)
    keys = np.concatenate([UNIVERSE, UNIVERSE[::-1], UNIVERSE[[0, 256, 512] * 20]])
    assert router.route(keys).tolist() == [reference.route(int(key), 0.0) for key in keys]


@pytest.mark.parametrize("first", [1, 100, 16_384, 20_000])
def test_routes_do_not_depend_on_the_cut_though_time_passes(first):
    """Backlogs drain in the middle of an array as they do between two."""
    keys = drawn(np.random.default_rng(3), 40_000, 600)
    routes = []
    for ends in ([40_000], [first, 40_000]):
        router = Fish(interval_s=2.0).build(6)
        router.observe(report(np.array([1.0, 2.0, 4.0, 1.0, 2.0, 4.0]) / 2**12))
        begins = [0, *ends[:-1]]
        parts = [router.route(keys[b:e], b * 2.0**-10, 2.0**-10) for b, e in zip(begins, ends, strict=True)]
        routes.append(np.concatenate(parts).tolist())
    assert routes[0] == routes[1]


# --- guarantees


@settings(max_examples=25)
@given(
    n_workers=st.integers(3, 40),
    theta=st.sampled_from([0.02, 0.1, 0.3]),
    hashing=st.sampled_from(["ring", "modulo"]),
    seed=st.integers(0, 1000),
)
def test_a_key_that_was_never_hot_has_at_most_two_workers(n_workers, theta, hashing, seed):
    """With a counter a key and no decay, hot is what has more than theta of the tuples so far."""
    keys = drawn(np.random.default_rng(seed), 1_500, 600)
    router = Fish(theta=theta, alpha=1.0, d_min=5, hashing=hashing).build(n_workers)
    # A key is hot while there are few tuples; these are not looked at.
    head = hash_keys(np.arange(10**6, 10**6 + 500))
    router.route(head)
    routes = router.route(keys)
    counts: dict[int, int] = {}
    ever_hot, workers = set(), {}
    for i, (key, worker) in enumerate(zip(keys.tolist(), routes.tolist(), strict=True)):
        counts[key] = counts.get(key, 0) + 1
        if counts[key] > theta * (len(head) + i + 1):
            ever_hot.add(key)
        workers.setdefault(key, set()).add(worker)
    assert all(len(chosen) <= 2 for key, chosen in workers.items() if key not in ever_hot)
    assert len(ever_hot) < len(workers)


@settings(max_examples=25)
@given(n_workers=st.integers(4, 64), i=st.integers(1, 4), d_min=st.integers(1, 3))
def test_a_rarer_key_has_fewer_workers(n_workers, i, d_min):
    """A key that never had more than 2^−i of the highest frequency has n_workers / 2^i candidates or d_min."""
    hottest, other = UNIVERSE[:2]
    router = Fish(theta=1e-9, alpha=1.0, d_min=d_min).build(n_workers)
    router.route(np.full(1 << i, hottest))
    pattern = np.array([other, *[hottest] * (1 << i)])
    routes = router.route(np.tile(pattern, 200))
    allowed = max(n_workers >> i, d_min)
    assert len(set(routes[:: len(pattern)].tolist())) <= allowed
    assert len(set(routes.tolist())) == n_workers
    assert router.mean_candidates == pytest.approx(
        (200 * allowed + (201 << i) * n_workers) / (201 * (1 << i) + 200), rel=1e-12
    )


def test_the_number_of_workers_never_shrinks_while_a_key_has_its_counter():
    was_hot, hottest = UNIVERSE[:2]
    router = Fish(theta=0.01, capacity=2, alpha=1.0).build(16)
    router.route(np.full(100, was_hot))
    router.route(np.full(3_000, hottest))
    assert len(set(router.route(np.full(16, was_hot)).tolist())) == 16


def test_the_number_of_workers_is_forgotten_with_the_counter():
    """The same key, the same counts; only that it lost its counter in between."""
    was_hot, hottest, stranger = UNIVERSE[:3]
    router = Fish(theta=0.01, capacity=2, alpha=1.0).build(16)
    router.route(np.full(100, was_hot))
    router.route(np.full(3_000, hottest))
    router.route(np.array([stranger]))
    assert set(router.report().hot_keys.tolist()) == {int(hottest), int(stranger)}
    routes = router.route(np.full(16, was_hot))
    assert set(routes.tolist()) <= set(clockwise(HashRing(16), was_hot, 2))


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"hot_keys": "w-choices"}, 16),
        ({"theta": 1.0, "alpha": 1.0}, 2),
        ({"hot_keys": "d-choices", "alpha": 1.0}, 16),
        ({"theta": 1e-9, "alpha": 1.0, "d_min": 7}, 16),
    ],
)
def test_mean_candidates(parameters, expected):
    router = Fish(**parameters).build(16)
    assert router.mean_candidates == 0
    router.route(np.full(50, UNIVERSE[0]))
    assert router.mean_candidates == expected


def test_mean_candidates_are_averaged_over_tuples():
    router = Fish(theta=0.3, alpha=1.0).build(16)
    router.route(np.repeat(UNIVERSE[:2], [30, 10]))
    # The second key is cold while it has at most 0.3 of at most 40 tuples.
    assert router.mean_candidates == (30 * 16 + 10 * 2) / 40


def test_hot_keys_of_yesterday_are_cold_today():
    def again(alpha: float) -> int:
        router = Fish(epoch=1000, alpha=alpha, capacity=10_000).build(20)
        assert len(set(router.route(np.full(2000, UNIVERSE[0])).tolist())) == 20
        router.route(hash_keys(np.arange(1000, 6000)))
        router.begin_window()
        return len(set(router.route(np.full(3, UNIVERSE[0])).tolist()))

    assert again(alpha=0.2) == 2
    assert again(alpha=1.0) == 3


# --- waiting times


def test_tuples_go_where_the_wait_is_shortest():
    """All tuples may go anywhere; after the report a worker of half the speed gets half as many."""
    router = Fish(hot_keys="w-choices").build(3)
    for _ in range(40):
        router.observe(report(np.array([0.001, 0.001, 0.002])))
    loads = np.bincount(router.route(np.full(10_000, UNIVERSE[0])), minlength=3)
    assert loads.tolist() == pytest.approx([4000, 4000, 2000], abs=40)


def test_with_counts_speeds_do_not_matter():
    router = Fish(hot_keys="w-choices", assignment="count").build(3)
    router.observe(report(np.array([0.001, 0.001, 0.002])))
    router.route(np.full(3_000, UNIVERSE[0]))
    router.route(np.full(3_000, UNIVERSE[0]), now=1e6)
    assert router.backlog.tolist() == [2000] * 3


def test_a_backlog_drains_with_time_and_speed_for_all_sources_together():
    router = Fish(hot_keys="w-choices", interval_s=10.0).build(2, n_sources=5)
    for _ in range(2):
        router.observe(report(np.array([0.01, 0.04])))
    router.route(np.full(1000, UNIVERSE[0]))
    before = router.backlog.copy()
    router.route(UNIVERSE[:0], now=11.0)
    router.route(UNIVERSE[:1], now=10.0)
    assert router.backlog.sum() == before.sum() + 1
    before = router.backlog.copy()
    worker = int(router.route(UNIVERSE[:1], now=10.5)[0])
    expected = before - 10.5 / (5 * router.seconds)
    expected[worker] += 1
    assert router.backlog.tolist() == expected.tolist()
    router.route(UNIVERSE[:1], now=1e6)
    assert router.backlog.sum() == 1


def test_nothing_drains_before_the_first_report():
    router = Fish().build(2)
    router.route(np.full(1000, UNIVERSE[0]))
    router.route(UNIVERSE[:1], now=1e6)
    assert router.backlog.sum() == 1001


def test_a_window_forgets_the_backlog_and_keeps_the_counts():
    router = Fish().build(4)
    router.route(UNIVERSE)
    counted = router.report()
    router.begin_window()
    assert not router.backlog.any()
    assert router.report().hot_counts.tolist() == counted.hot_counts.tolist()


# --- measured speeds


def test_workers_that_differ_by_noise_are_taken_for_alike():
    rng = np.random.default_rng(1)
    router = Fish().build(16)
    for n_reports in range(1, 200):
        router.observe(report(0.001 * (1 + 0.05 * rng.standard_normal(16))))
        measured, taken = np.ptp(router.measured), np.ptp(router.seconds)
        assert taken < max(0.5 * measured, 2e-5), n_reports
    assert router.seconds.mean() == pytest.approx(0.001, rel=0.01)
    assert np.ptp(router.seconds) < 0.02 * 0.001


def test_half_the_speed_is_learned_within_few_reports():
    rng = np.random.default_rng(2)
    true = np.where(np.arange(16) % 2, 0.002, 0.001)
    router = Fish().build(16)
    for _ in range(5):
        router.observe(report(true * (1 + 0.05 * rng.standard_normal(16))))
    assert router.seconds.tolist() == pytest.approx(true.tolist(), rel=0.15)
    for _ in range(50):
        router.observe(report(true * (1 + 0.05 * rng.standard_normal(16))))
    assert router.seconds.tolist() == pytest.approx(true.tolist(), rel=0.04)


def test_a_worker_that_slows_down_is_noticed():
    router = Fish().build(4)
    for seconds in ([1.0] * 4, [1.0, 1.0, 1.0, 3.0]):
        for _ in range(100):
            router.observe(report(np.array(seconds)))
    assert router.seconds.tolist() == pytest.approx([1.0, 1.0, 1.0, 3.0], rel=0.1)


def test_reports_that_say_nothing_of_speed_change_nothing():
    router = Fish().build(3)
    before = router.snapshot()
    router.observe(Report())
    router.observe(Report(worker_tuples=np.array([1, 2, 3])))
    router.observe(report(np.ones(3), np.zeros(3, dtype=np.int64)))
    router.observe(report(np.zeros(3)))
    assert router.snapshot() == before
    router.observe(report(np.array([0.5, 0.25, 0.0])))
    assert router.measured.tolist() == [0.5, 0.25, 0.375]


# --- workers that come and go


def test_those_that_stay_keep_their_backlog():
    router = Fish().build(5)
    router.observe(report(np.array([1.0, 2.0, 3.0, 4.0, 5.0])))
    router.backlog[:] = [10, 20, 30, 40, 50]
    seconds = router.seconds.copy()
    router.set_workers([1, 3, 4, 7])
    assert router.backlog.tolist() == [20, 40, 50, pytest.approx(110 / 3)]
    assert router.seconds[:3].tolist() == seconds[[1, 3, 4]].tolist()
    assert router.seconds[3] == pytest.approx(seconds[[1, 3, 4]].mean())
    routes = router.route(np.tile(UNIVERSE, 5))
    assert set(routes.tolist()) == {1, 3, 4, 7}


def test_on_the_ring_few_cold_keys_move():
    def moved(hashing: str) -> float:
        router = Fish(hashing=hashing, virtual_nodes=200).build(20)
        before = np.stack(router.candidates.pairs(UNIVERSE)[:2])
        alive = np.array([worker for worker in range(20) if worker != 7])
        router.set_workers(alive.tolist())
        after = alive[np.stack(router.candidates.pairs(UNIVERSE)[:2])]
        return float((np.sort(before, axis=0) != np.sort(after, axis=0)).any(axis=0).mean())

    # The worker that went is one of a key's two candidates with probability 2 / 20.
    assert moved("ring") == pytest.approx(0.1, abs=0.06)
    assert moved("modulo") > 0.8


def test_on_the_ring_a_key_without_the_worker_that_went_stays():
    ring = HashRing(10)
    candidates = np.array([clockwise(ring, key, 2) for key in UNIVERSE])
    stays = (candidates != 4).all(axis=1)
    router = Fish(theta=1.0, alpha=1.0).build(10)
    router.route(hash_keys(np.arange(10**6, 10**6 + 100)))
    router.set_workers([0, 1, 2, 3, 5, 6, 7, 8, 9])
    for key, allowed in zip(UNIVERSE[stays], candidates[stays].tolist(), strict=True):
        assert set(router.route(np.full(3, key)).tolist()) <= set(allowed)


# --- plans


def test_a_router_that_follows_a_plan_knows_recent_counts_and_speeds():
    grouping = Fish(alpha=0.5)
    routers = grouping.build_all(2, 10)
    keys = drawn(np.random.default_rng(5), 5_000, 600)
    for source, router in enumerate(routers):
        router.route(keys[source::2])
    tuples = np.full(10, 100)
    workers = Report(worker_tuples=tuples, worker_seconds=tuples * np.linspace(0.5, 1.4, 10))
    plan = grouping.fold(None, [*(router.report() for router in routers), workers])
    fresh = grouping.build(10, source=1, n_sources=2)
    fresh.follow(plan)
    assert fresh.report().hot_keys[0] == plan.hot_keys[0]
    assert fresh.counters.total == plan.tuples / 2
    assert fresh.counters.top(3)[1].tolist() == (plan.hot_counts[:3] / 2).tolist()
    assert np.corrcoef(fresh.seconds, np.linspace(0.5, 1.4, 10))[0, 1] > 0.99


def test_a_plan_of_other_workers_changes_no_speed():
    router = Fish().build(4)
    before = router.seconds.tolist()
    router.follow(Plan(seconds_per_tuple=np.array([1.0, 2.0])))
    router.follow(Plan(seconds_per_tuple=np.full(4, np.nan)))
    assert router.seconds.tolist() == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -0.1}, "alpha must be from 0 to 1, got -0.1"),
        ({"alpha": 1.1}, "alpha must be from 0 to 1, got 1.1"),
        ({"alpha": float("nan")}, "alpha must be from 0 to 1, got nan"),
        ({"theta": 0.0}, "theta must be above 0 and at most 1, got 0.0"),
        ({"theta": -1.0}, "theta must be above 0 and at most 1, got -1.0"),
        ({"theta": 1.5}, "theta must be above 0 and at most 1, got 1.5"),
        ({"interval_s": 0.0}, "interval_s must be above 0, got 0.0"),
        ({"interval_s": float("nan")}, "interval_s must be above 0, got nan"),
        ({"epoch": 0}, "epoch must be at least 1, got 0"),
        ({"capacity": 0}, "capacity must be at least 1, got 0"),
        ({"d_min": 0}, "d_min must be at least 1, got 0"),
        ({"virtual_nodes": 0}, "virtual_nodes must be at least 1, got 0"),
        ({"hot_keys": "all"}, "hot_keys must be one of chk, d-choices, w-choices, got 'all'"),
        ({"assignment": "luck"}, "assignment must be one of waiting-time, count, got 'luck'"),
        ({"hashing": "md5"}, "hashing must be one of ring, modulo, got 'md5'"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ConfigError) as error:
        Fish(**parameters)
    assert str(error.value) == message
