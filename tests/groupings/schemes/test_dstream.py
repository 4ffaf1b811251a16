"""DStream: route for route against a model with an exact set in place of the filter, its signals and its plans."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.groupings import DStream, KeyGrouping, Plan, Report
from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.sketches import CoinSynopsis
from anabranch.streams import Zipf

UNIVERSE = hash_keys(np.arange(400))
# So few false positives that the filter is an exact set.
EXACT = 1e-9

streams = st.builds(
    lambda z, n, seed: UNIVERSE[np.random.default_rng(seed).zipf(z, n) % 400],
    st.floats(1.1, 3.0),
    st.sampled_from([1, 30, 400, 800]),
    st.integers(0, 10_000),
)


class Model:
    """One source, tuple by tuple: the synopsis' changes of mind wait in a queue until they reach the set."""

    def __init__(self, grouping: DStream, n_workers: int, source: int = 0, n_sources: int = 1, seed: int = 0) -> None:
        p = grouping.decline_rate(n_workers)
        self.synopsis = CoinSynopsis(grouping.r, grouping.l, p, grouping.zeta, seed * n_sources + source)
        self.n, self.seed, self.delay = n_workers, seed, grouping.delay
        self.cursor = source * n_workers // n_sources
        self.position = 0
        self.waiting: deque[tuple[int, set[int]]] = deque()
        self.hot: set[int] = set()
        self.ever_hot: set[int] = set()

    def route(self, key: np.uint64) -> int:
        while self.waiting and self.waiting[0][0] <= self.position:
            self.hot = self.waiting.popleft()[1]
            self.ever_hot |= self.hot
        one = np.array([key])
        worker = int(MultiplyShift().first(one, self.n, self.seed)[0])
        if int(key) in self.hot:
            worker = self.cursor
            self.cursor = (self.cursor + 1) % self.n
        self.synopsis.update(one)
        self.position += 1
        self.waiting.append((self.position + self.delay, set(self.synopsis.hot_keys().tolist())))
        return worker


def homes(keys: np.ndarray, n_workers: int) -> list[int]:
    return KeyGrouping().build(n_workers).route(keys).tolist()


@settings(max_examples=100)
@given(
    keys=streams,
    n_workers=st.integers(1, 20),
    r=st.integers(0, 3),
    p=st.none() | st.sampled_from([0.02, 0.3]),
    zeta=st.integers(1, 3),
    delay=st.sampled_from([0, 1, 7, 200, 10_000]),
    sources=st.sampled_from([(0, 1), (2, 3)]),
    seed=st.integers(0, 2),
)
def test_routes_equal_the_model(keys, n_workers, r, p, zeta, delay, sources, seed):
    source, n_sources = sources
    grouping = DStream(r=r, p=p, zeta=zeta, delay=delay, synopsis="local", false_positive_rate=EXACT)
    router = grouping.build(n_workers, source=source, n_sources=n_sources, seed=seed)
    model = Model(grouping, n_workers, source, n_sources, seed)
    assert router.route(keys).tolist() == [model.route(key) for key in keys]
    assert set(router.synopsis.hot_keys().tolist()) == set(model.synopsis.hot_keys().tolist())


@settings(max_examples=20)
@given(keys=streams, n_workers=st.integers(2, 20), r=st.integers(0, 4))
def test_a_key_that_was_never_in_the_filter_has_one_replica(keys, n_workers, r):
    grouping = DStream(r=r, false_positive_rate=EXACT)
    routes = grouping.build(n_workers).route(keys)
    model = Model(grouping, n_workers)
    for key in keys:
        model.route(key)
    strayed = {key for key, a, b in zip(keys.tolist(), routes.tolist(), homes(keys, n_workers), strict=True) if a != b}
    assert strayed <= model.ever_hot


def test_hot_keys_by_round_robin_and_cold_ones_by_hash():
    n_workers = 8
    rng = np.random.default_rng(1)
    cold = hash_keys(np.arange(1000, 6000))
    hot = np.where(rng.random(10_000) < 0.5, UNIVERSE[0], UNIVERSE[1])
    router = DStream(r=2).build(n_workers)
    router.route(hot)
    stream = np.concatenate([hot[:5000], cold])[rng.permutation(10_000)]
    routes = router.route(stream)
    is_hot = np.isin(stream, UNIVERSE[:2])
    loads = np.bincount(routes[is_hot], minlength=n_workers)
    # Round robin over the hot tuples, whichever of the two keys they have: but for the tuples of cold keys that the
    # coins took for hot, which draw from the same cursor.
    assert np.ptp(loads) < 0.05 * loads.mean()
    assert np.mean(routes[~is_hot] == np.array(homes(stream[~is_hot], n_workers))) > 0.9
    steps = np.diff(routes[is_hot]) % n_workers
    assert np.mean(steps == 1) > 0.8


def first_away(delay: int) -> int:
    """Place of the first tuple of a lone key that does not go home."""
    key = UNIVERSE[np.array(homes(UNIVERSE, 8)) == 5][:1]
    routes = DStream(r=3, delay=delay).build(8).route(key.repeat(5000))
    return int(np.flatnonzero(routes != 5)[0])


def test_signals_arrive_after_the_delay():
    at_once = first_away(0)
    assert [first_away(delay) - at_once for delay in (1, 2, 50, 3000)] == [1, 2, 50, 3000]


def test_where_too_many_signals_wait_the_oldest_arrive_early():
    keys = hash_keys(np.arange(5_000))
    router = DStream(r=0, zeta=1, p=1e-4, delay=10**9).build(16)
    assert router.route(keys).tolist() == homes(keys, 16)

    def away(some: np.ndarray) -> float:
        router.begin_window()
        return float(np.mean(router.route(some) != np.array(homes(some, 16))))

    assert away(keys[:300]) > 0.5
    assert away(keys[-300:]) == 0


def test_a_global_synopsis_sees_all_sources_and_a_local_one_its_own():
    keys = UNIVERSE[np.random.default_rng(3).zipf(1.5, 6000) % 400]
    shared = DStream(r=2).build_all(3, 10, seed=1)
    assert shared[0] is shared[1] is shared[2]
    shared[0].route(keys)
    assert shared[2].report().tuples == 6000
    local = DStream(r=2, synopsis="local").build_all(3, 10, seed=1)
    assert len({id(router) for router in local}) == 3
    for source, router in enumerate(local):
        router.route(keys[source::3])
        assert router.report().tuples == 2000
    entries = [router.synopsis.entries()[1].tolist() for router in local]
    assert entries[0] != entries[1] != entries[2]
    # Sources begin their round robin at workers of their own.
    fresh = DStream(synopsis="local").build_all(5, 10)
    assert [int(router.meta[0]) for router in fresh] == [0, 2, 4, 6, 8]


def test_a_window_keeps_the_hot_keys_and_begins_the_round_robin_anew():
    router = DStream(r=1).build(8, source=1, n_sources=2)
    router.route(np.full(2001, UNIVERSE[0]))
    router.begin_window()
    assert router.route(np.full(9, UNIVERSE[0])).tolist() == [4, 5, 6, 7, 0, 1, 2, 3, 4]


def test_with_fewer_workers_the_round_robin_goes_on():
    router = DStream(r=1).build(8)
    router.route(np.full(2000, UNIVERSE[0]))
    router.set_workers([2, 5, 7])
    assert np.bincount(router.route(np.full(300, UNIVERSE[0])), minlength=8).tolist() == [0, 0, 100, 0, 0, 100, 0, 100]


# --- plans


def source_report(keys: np.ndarray, bits: list[int], tuples: int = 100) -> Report:
    return Report(tuples=tuples, hot_keys=keys, hot_counts=np.array(bits, dtype=np.int64))


def test_a_plan_pools_the_bits_of_all_sources():
    workers = Report(worker_tuples=np.array([50, 100, 50]), worker_seconds=np.array([5.0, 10.0, 5.0]))
    reports = [source_report(UNIVERSE[:2], [0b1, 0b10]), source_report(UNIVERSE[1:3], [0b100, 0b1000]), workers]
    plan = DStream(zeta=2).fold(None, reports)
    assert plan.tuples == 200
    pooled = dict(zip(plan.hot_keys.tolist(), plan.hot_counts.tolist(), strict=True))
    # Two sources: shifted by one bit, and the first key is gone.
    assert pooled == dict(zip(UNIVERSE[1:3].tolist(), [0b11, 0b100], strict=True))
    assert plan.seconds_per_tuple.tolist() == [0.1] * 3


@pytest.mark.parametrize("keyed", [False, True], ids=["even", "keyed"])
def test_sources_that_pool_what_they_know_replicate_as_one_synopsis_does(keyed):
    """Whether all sources see a hot key or one does; and what they know does not grow from plan to plan."""
    n, grouping = 16, DStream()
    (batch,) = Zipf(n_tuples=10**6, n_keys=100_000, z=1.4).batches(size=10**6)
    keys = hash_keys(batch["key"])
    at = MultiplyShift().first(keys, n, 1) if keyed else np.arange(len(keys)) % n
    shared, plan, known = grouping.build_all(n, n)[0], None, []
    for window in range(5):
        part = slice(window * 200_000, (window + 1) * 200_000)
        routers = [grouping.build(n, source, n) for source in range(n)]
        routes = np.empty(200_000, dtype=np.int32)
        for source, router in enumerate(routers):
            if plan is not None:
                router.follow(plan)
            routes[at[part] == source] = router.route(keys[part][at[part] == source])
        plan = grouping.fold(plan, [router.report() for router in routers])
        known.append(len(plan.hot_keys))
        expected = n_replicas(keys[part], shared.route(keys[part]))
    assert n_replicas(keys[part], routes) <= (1.25 if keyed else 1.02) * expected
    assert max(known[2:]) <= 1.5 * known[0]


def n_replicas(keys: np.ndarray, routes: np.ndarray) -> int:
    return len(np.unique(keys ^ routes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)))


def test_a_table_has_the_keys_above_twice_the_decline_rate_on_all_workers():
    plan = Plan(tuples=1_000, hot_keys=UNIVERSE[:3], hot_counts=np.array([700, 201, 200]))
    table = DStream(p=0.1).table(plan, 3)
    assert table.keys.tolist() == UNIVERSE[:2].tolist()
    assert all(table.workers_of(int(key)).tolist() == [0, 1, 2] for key in UNIVERSE[:2])
    assert table.workers_of(int(UNIVERSE[2])).tolist() == []


def test_a_plan_needs_no_report_of_the_workers():
    plan = DStream().fold(None, [source_report(UNIVERSE[:1], [0b11])])
    assert plan.hot_keys.tolist() == UNIVERSE[:1].tolist()
    assert DStream().fold(plan, []).version == 1


def test_a_router_that_follows_a_plan_knows_the_hot_keys_from_its_first_tuple():
    grouping = DStream(r=3, synopsis="local", false_positive_rate=EXACT)
    routers = grouping.build_all(2, 8)
    stream = np.where(np.random.default_rng(2).random(8000) < 0.7, UNIVERSE[0], UNIVERSE[5:6])
    for source, router in enumerate(routers):
        router.route(stream[source::2])
    plan = grouping.fold(None, [router.report() for router in routers])
    fresh, ignorant = (grouping.build(8, source=1, n_sources=2) for _ in range(2))
    fresh.follow(plan)
    hot = np.tile(UNIVERSE[[0, 5]], 4)
    assert fresh.route(hot).tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    assert ignorant.route(hot).tolist() == homes(hot, 8)
    stranger = UNIVERSE[100:101]
    assert fresh.route(stranger).tolist() == homes(stranger, 8)


def test_signals_on_their_way_end_with_a_plan():
    """The plan knows what they would have said, and more."""
    router, goes_on = (DStream(r=0, delay=1000, p=0.01, false_positive_rate=EXACT).build(8) for _ in range(2))
    key, others = UNIVERSE[:1], hash_keys(np.arange(1000, 2100))
    for each in (router, goes_on):
        each.route(key.repeat(200))
    router.follow(Plan())
    for each in (router, goes_on):
        each.route(others)
    assert goes_on.filter.contains(key)[0]
    assert not router.filter.contains(key)[0]
    assert router.route(key).tolist() == homes(key, 8)


# --- parameters


@pytest.mark.parametrize("n_workers", [1, 10, 100])
@pytest.mark.parametrize("window", [1, 1000, 50_000, 10**9])
def test_for_stream_lets_vectors_decline_at_least_twice_a_window(n_workers, window):
    grouping = DStream.for_stream(n_workers, window)
    assert grouping.p == 1 / (10 * n_workers)
    assert 0 <= grouping.r <= 20
    declines = window * grouping.p / 2**grouping.r
    # Where even r = 0 is too slow there is nothing to choose; beyond r = 20 nothing to gain.
    if grouping.r > 0:
        assert declines >= 2
    if grouping.r < 20:
        assert declines < 4
    grouping.build(n_workers)


def test_for_stream_finds_the_keys_it_promises_within_a_window():
    n_workers, window = 10, 50_000
    rng = np.random.default_rng(4)
    shares = np.array([4, 3, 2]) / (5 * n_workers)
    ranks = np.searchsorted(np.cumsum(shares), rng.random(window))
    stream = np.where(ranks < 3, UNIVERSE[ranks], hash_keys(np.arange(1000, 1000 + window)))
    router = DStream.for_stream(n_workers, window).build(n_workers)
    router.route(stream)
    assert set(UNIVERSE[:3].tolist()) <= set(router.synopsis.hot_keys().tolist())


def test_the_default_decline_rate_follows_the_workers():
    assert DStream().decline_rate(50) == 1 / 500
    assert DStream(p=0.3).decline_rate(50) == 0.3
    assert DStream().build(50).synopsis.p == 1 / 500


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"r": 48}, "r must be at least 0, l at least 1 and r + l at most 63, got r=48, l=16"),
        ({"r": -1}, "r must be at least 0, l at least 1 and r + l at most 63, got r=-1, l=16"),
        ({"l": 0}, "r must be at least 0, l at least 1 and r + l at most 63, got r=6, l=0"),
        ({"p": 1.0}, "p must be at least 0 and below 1, got 1.0"),
        ({"p": -0.1}, "p must be at least 0 and below 1, got -0.1"),
        ({"p": float("nan")}, "p must be at least 0 and below 1, got nan"),
        ({"p": 0.0}, "p must be above 0, got 0; without decline the synopsis never forgets a key"),
        ({"zeta": 0}, "zeta must be from 1 to l = 16, got 0"),
        ({"zeta": 17}, "zeta must be from 1 to l = 16, got 17"),
        ({"false_positive_rate": 0.0}, "false_positive_rate must be between 0 and 1, got 0.0"),
        ({"false_positive_rate": 1.0}, "false_positive_rate must be between 0 and 1, got 1.0"),
        ({"synopsis": "none"}, 'synopsis must be "global" or "local", got \'none\''),
        ({"delay": -1}, "delay must be at least 0 tuples, got -1"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ConfigError) as error:
        DStream(**parameters)
    assert str(error.value) == message
