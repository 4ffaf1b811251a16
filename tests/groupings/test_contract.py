"""What every exported grouping promises."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hashing.murmur3_family import Murmur3

from anabranch import groupings
from anabranch.errors import ConfigError, InputError, SnapshotError
from anabranch.groupings import (
    ConsistentGrouping,
    DChoices,
    DistributionAwareKeyGrouping,
    DStream,
    DynamicKeyGrouping,
    Fish,
    Grouping,
    KeyGrouping,
    OfflineGreedy,
    OnlineGreedy,
    PartialKeyGrouping,
    Plan,
    Report,
    ShuffleGrouping,
    Spillway,
    StaticTwoChoices,
    TableGrouping,
    WChoices,
)
from anabranch.groupings.plan import pack_report
from anabranch.hashing import hash_keys

EXPORTED = [
    value
    for value in (getattr(groupings, name) for name in groupings.__all__)
    if isinstance(value, type) and issubclass(value, Grouping) and value is not Grouping
]
UNIVERSE = hash_keys(np.arange(2_000))
COUNTS = 1 + 5_000 // (1 + np.arange(1_900))
VARIANTS = [
    KeyGrouping(family=Murmur3()),
    PartialKeyGrouping(choices=1),
    PartialKeyGrouping(choices=5),
    PartialKeyGrouping(estimation="global"),
    PartialKeyGrouping(probe_s=1.0),
    DChoices(capacity=50, theta=0.05),
    WChoices(capacity=60, theta=0.1),
    ConsistentGrouping(virtual_workers=3, epsilon=0.5, max_rehashes=2),
    DistributionAwareKeyGrouping(learning=1_000),
    DStream(r=1, synopsis="local"),
    DStream(r=2, delay=50),
    Fish(epoch=300, alpha=0.5),
    TableGrouping(UNIVERSE[:500], np.arange(500) % 9),
]
# The same class with another parameter, for groupings that have one.
OTHERWISE = {
    Spillway: {"tolerance": 0.1},
    KeyGrouping: {"family": Murmur3()},
    StaticTwoChoices: {"family": Murmur3()},
    OfflineGreedy: {"counts": COUNTS + 1},
    PartialKeyGrouping: {"choices": 4},
    DChoices: {"epsilon": 1e-3},
    WChoices: {"theta": 0.3},
    ConsistentGrouping: {"epsilon": 0.02},
    DStream: {"zeta": 3},
    Fish: {"alpha": 0.5},
    DynamicKeyGrouping: {"expected_keys": 50},
    DistributionAwareKeyGrouping: {"factor": 3.0},
    TableGrouping: {"family": Murmur3()},
}
NEVER_MOVES_A_KEY = (StaticTwoChoices, OnlineGreedy, OfflineGreedy)
SHARES_A_BOARD = (*NEVER_MOVES_A_KEY, DistributionAwareKeyGrouping)


def counted(grouping: Grouping) -> Grouping:
    return grouping.with_counts(UNIVERSE[: len(COUNTS)], COUNTS) if grouping.needs_counts else grouping


ALL = [counted(grouping) for grouping in (*(cls() for cls in EXPORTED), *VARIANTS)]
every_class = pytest.mark.parametrize("cls", EXPORTED)
every_grouping = pytest.mark.parametrize("grouping", ALL, ids=repr)


def stream(n: int, seed: int = 0) -> np.ndarray:
    return UNIVERSE[np.random.default_rng(seed).zipf(1.3, n) % len(UNIVERSE)]


def equal(one: bytes | np.ndarray, other: bytes | np.ndarray) -> bool:
    """Compared in here, because pytest takes minutes to explain how two long lists differ."""
    return one == other if isinstance(one, bytes) else np.array_equal(one, other)


# --- the configuration


@every_class
def test_it_is_documented(cls):
    assert cls.summary().endswith(".")
    assert cls.summary() != Grouping.summary()
    assert cls.paper
    assert cls.name in groupings.names()
    assert cls.__doc__.index("When to use it") < cls.__doc__.index("Guarantees") < cls.__doc__.index("Examples")
    assert "References" in cls.__doc__


@every_class
def test_it_is_a_frozen_dataclass(cls):
    grouping = cls()
    assert is_dataclass(grouping)
    for field in fields(grouping):
        with pytest.raises(FrozenInstanceError):
            setattr(grouping, field.name, None)


@every_grouping
def test_a_pickled_configuration_routes_alike(grouping):
    copy = pickle.loads(pickle.dumps(grouping))
    keys = stream(3_000)
    assert copy.parameters() == grouping.parameters()
    assert equal(copy.build(7).route(keys), grouping.build(7).route(keys))


@every_class
def test_no_seed_is_the_same_seed_to_routers_and_tables(cls):
    for method in (cls.build, cls.build_all, cls.table):
        assert signature(method).parameters["seed"].default == 0


@every_class
def test_only_those_that_ask_for_counts_use_them(cls):
    with_counts = cls().with_counts(UNIVERSE[:3], np.array([5, 2, 1]))
    assert (with_counts == cls()) == (not cls.needs_counts)


@every_grouping
def test_bad_sizes_are_refused(grouping):
    for n_workers in (0, -1):
        with pytest.raises(ConfigError, match=f"n_workers must be at least 1, got {n_workers}"):
            grouping.build(n_workers)
        with pytest.raises(ConfigError, match="n_workers must be at least 1"):
            grouping.build_all(2, n_workers)
    for source, n_sources in ((1, 1), (-1, 2), (5, 3)):
        with pytest.raises(
            ConfigError, match=f"source must be from 0 to n_sources - 1 = {n_sources - 1}, got {source}"
        ):
            grouping.build(4, source=source, n_sources=n_sources)
    with pytest.raises(ConfigError, match="n_sources must be at least 1, got 0"):
        grouping.build_all(0, 4)


# --- routes


@every_grouping
@pytest.mark.parametrize("n_workers", [1, 2, 3, 7, 64, 1000])
def test_routes_are_in_range(grouping, n_workers):
    for source in (0, 2):
        routes = grouping.build(n_workers, source=source, n_sources=3).route(stream(2_000))
        assert routes.dtype == np.int32
        assert routes.shape == (2_000,)
        assert routes.min() >= 0
        assert routes.max() < n_workers


@every_grouping
def test_the_same_seed_gives_the_same_routes(grouping):
    keys = stream(20_000)
    one, two, other = (grouping.build(7, seed=seed).route(keys) for seed in (3, 3, 4))
    assert equal(one, two)
    by_hash = not isinstance(grouping, ShuffleGrouping | OnlineGreedy)
    assert equal(one, other) != by_hash


@every_grouping
@pytest.mark.parametrize("first", [1, 777, 16_384, 16_385, 39_999])
def test_routes_do_not_depend_on_how_the_stream_is_cut(grouping, first):
    keys = stream(40_000)
    whole, cut = grouping.build(7), grouping.build(7)
    first = first // cut.chunk * cut.chunk
    together = whole.route(keys)
    apart = np.concatenate([cut.route(keys[:first]), cut.route(keys[first:])])
    assert (together == apart).all()
    assert equal(whole.snapshot(), cut.snapshot())


@every_grouping
@pytest.mark.parametrize("first", [777, 16_385])
def test_nor_though_time_passes(grouping, first):
    """Three minutes: what is done every so many seconds is done in the middle of an array too."""
    keys, step_s = stream(40_000), 2.0**-8
    whole, cut = grouping.build(7), grouping.build(7)
    together = whole.route(keys, 1.0, step_s)
    first = first // cut.chunk * cut.chunk
    apart = np.concatenate(
        [cut.route(keys[:first], 1.0, step_s), cut.route(keys[first:], 1.0 + first * step_s, step_s)]
    )
    assert (together == apart).all()
    assert whole.snapshot() == cut.snapshot()


@every_grouping
def test_a_seed_may_be_any_whole_number(grouping):
    for seed in (-1, 2**63, 2**64 + 5, -(2**80)):
        routes = grouping.build(7, source=1, n_sources=2, seed=seed).route(stream(1_000))
        assert 0 <= routes.min() <= routes.max() < 7


@every_grouping
def test_empty_arrays_pass_and_change_nothing(grouping):
    router = grouping.build(5)
    router.route(stream(100))
    before = router.snapshot()
    assert router.route(np.zeros(0, dtype=np.uint64)).dtype == np.int32
    assert equal(router.snapshot(), before)


@every_grouping
def test_read_only_and_strided_arrays_route_alike(grouping):
    keys = stream(2_000)
    frozen = keys.copy()
    frozen.flags.writeable = False
    strided = np.repeat(keys, 2)[::2]
    expected = grouping.build(7).route(keys)
    assert equal(grouping.build(7).route(frozen), expected)
    assert equal(grouping.build(7).route(strided), expected)
    assert equal(frozen, keys)


@every_grouping
@pytest.mark.parametrize(
    "keys",
    [np.arange(3), np.zeros(3), np.array(["a"]), np.zeros((2, 2), np.uint64), [1, 2], np.zeros(2, ">u8")],
    ids=["int64", "float", "text", "two dimensions", "list", "big endian"],
)
def test_anything_but_hashes_is_refused(grouping, keys):
    router = grouping.build(3)
    before = router.snapshot()
    with pytest.raises(InputError, match=r"use hashing\.hash_keys"):
        router.route(keys)
    assert equal(router.snapshot(), before)


# --- several sources


@every_grouping
def test_build_all_gives_a_router_for_each_source(grouping):
    routers = grouping.build_all(3, 7, seed=2)
    assert len(routers) == 3
    keys = stream(3_000)
    if routers[0] is routers[1]:
        assert routers[2] is routers[0]
        alternating = np.concatenate([routers[i % 3].route(keys[i : i + 1]) for i in range(1_000)])
        assert equal(alternating, grouping.build(7, seed=2).route(keys[:1_000]))
    else:
        for source, router in enumerate(routers):
            alone = grouping.build(7, source=source, n_sources=3, seed=2)
            assert router.source == source
            assert equal(router.route(keys), alone.route(keys))


def test_the_groupings_that_share_a_board():
    shared = {repr(grouping) for grouping in ALL if len({id(router) for router in grouping.build_all(3, 4)}) == 1}
    assert shared == {
        repr(grouping)
        for grouping in ALL
        if isinstance(grouping, SHARES_A_BOARD)
        or (isinstance(grouping, PartialKeyGrouping) and grouping.estimation == "global")
        or (isinstance(grouping, DStream) and grouping.synopsis == "global")
    }


# --- changing workers


@every_grouping
@settings(max_examples=12)
@given(changes=st.lists(st.sets(st.integers(0, 12), min_size=1, max_size=10), min_size=1, max_size=5))
def test_routes_go_only_to_workers_alive(grouping, changes):
    router = grouping.build(10, source=1, n_sources=2)
    router.route(stream(200))
    for seed, workers in enumerate(changes):
        router.set_workers(workers)
        assert router.n_workers == len(workers)
        assert set(router.route(stream(300, seed)).tolist()) <= workers
        router.begin_window()
        assert set(router.route(stream(300, seed)).tolist()) <= workers


@every_grouping
def test_a_newcomer_gets_tuples(grouping):
    """Keys that must stay where they are do stay, so the newcomer is offered new ones."""
    router = grouping.build(4)
    router.route(UNIVERSE[:1_000])
    router.set_workers([0, 1, 2, 3, 4])
    assert np.bincount(router.route(UNIVERSE[1_000:]), minlength=5)[4] > 20


@every_grouping
def test_the_same_workers_again_change_nothing(grouping):
    router = grouping.build(6)
    router.route(stream(3_000))
    twin = grouping.build(6)
    twin.restore(router.snapshot())
    twin.set_workers([5, 4, 3, 2, 1, 0, 0])
    served, expected = twin.route(stream(2_000, 1)), router.route(stream(2_000, 1))
    # Ties are dealt anew, so loads are compared where the choice is among all workers.
    if isinstance(grouping, DChoices | WChoices | OnlineGreedy | ConsistentGrouping):
        served, expected = (np.sort(np.bincount(routes, minlength=6)) for routes in (served, expected))
        assert np.abs(served - expected).max() <= 0.2 * expected.mean()
    else:
        assert equal(served, expected)


@every_grouping
def test_at_least_one_worker_must_stay(grouping):
    router = grouping.build(4)
    before = router.snapshot()
    with pytest.raises(ConfigError, match="at least one worker must stay, got none"):
        router.set_workers([])
    with pytest.raises(ConfigError, match="must not be negative, got -1"):
        router.set_workers([2, -1])
    assert equal(router.snapshot(), before)


# --- windows


@pytest.mark.parametrize("grouping", [one for one in ALL if not one.learns or isinstance(one, OfflineGreedy)], ids=repr)
def test_a_window_routes_as_the_one_before_where_nothing_else_is_learned(grouping):
    router = grouping.build(7, source=1, n_sources=3)
    keys = stream(5_000)
    first = router.route(keys)
    router.begin_window()
    assert equal(router.route(keys), first)


@every_grouping
def test_it_learns_where_counts_of_keys_matter_to_anything_that_it_hands_on(grouping):
    router = grouping.build(7)
    router.route(stream(5_000))
    report = router.report()
    hands_on = len(report.hot_keys) > 0 or bool(report.sketch) or grouping.keeps_router
    assert grouping.learns == (hands_on or grouping.needs_counts)
    if grouping.has_table() and not grouping.learns:
        counted = Plan(tuples=5_000, hot_keys=UNIVERSE[:3], hot_counts=np.array([900, 800, 700]))
        one, other = grouping.table(Plan(), 7), grouping.table(counted, 7)
        assert equal(one.keys, other.keys)
        assert equal(one.workers, other.workers)


@pytest.mark.parametrize("grouping", [one for one in ALL if not one.splits_keys], ids=repr)
@pytest.mark.parametrize("n_workers", [1, 7])
def test_a_table_that_splits_no_key_names_each_once(grouping, n_workers):
    plan = Plan(tuples=5_000, hot_keys=UNIVERSE[:3], hot_counts=np.array([900, 800, 700]))
    table = grouping.table(plan, n_workers)
    assert len(table.keys) == len(table.workers) == len(np.unique(table.keys))


@pytest.mark.parametrize("grouping", [one for one in ALL if isinstance(one, NEVER_MOVES_A_KEY)], ids=repr)
def test_a_key_that_never_moves_stays_through_a_window(grouping):
    """Last come first: with homes forgotten, others would be found."""
    router = grouping.build(7, source=1, n_sources=3)
    keys = stream(5_000)
    first = router.route(keys)
    router.begin_window()
    assert equal(router.route(keys[::-1]), first[::-1])


@every_grouping
def test_a_window_keeps_what_is_known_of_keys(grouping):
    router = grouping.build(7, source=1, n_sources=3)
    router.route(stream(5_000))
    before = pack_report(router.report())
    router.begin_window()
    assert equal(pack_report(router.report()), before)


@every_grouping
def test_a_window_zeroes_the_loads(grouping):
    """Tuples of new keys meet workers that look alike: whoever was busy in the window before, it leaves no trace."""
    strangers, found = hash_keys(np.arange(10_000, 10_070)), []
    for later in (UNIVERSE, UNIVERSE[::-1]):
        router = grouping.build(7)
        router.route(stream(2_000))
        router.route(later[np.random.default_rng(1).zipf(1.3, 3_001) % len(later)])
        router.begin_window()
        found.append(router.route(strangers))
    assert equal(*found)


# --- snapshots


@every_grouping
@pytest.mark.parametrize("workers", [None, [1, 4, 6], [0, 1, 2, 3, 4, 5, 6, 7, 8]], ids=["same", "fewer", "more"])
def test_a_restored_router_continues_identically(grouping, workers):
    router = grouping.build(7, source=1, n_sources=2, seed=5)
    router.route(stream(3_000))
    if workers is not None:
        router.set_workers(workers)
        router.route(stream(1_000, 1))
    data = router.snapshot()
    assert isinstance(data, bytes)
    twin = grouping.build(7, source=1, n_sources=2, seed=5)
    twin.restore(data)
    assert equal(twin.snapshot(), data)
    for step in range(3):
        keys = stream(2_000, 2 + step)
        assert equal(twin.route(keys), router.route(keys))
        if step == 0:
            for each in (router, twin):
                each.begin_window()
        if step == 1:
            for each in (router, twin):
                each.set_workers([2, 3])
    assert equal(twin.snapshot(), router.snapshot())
    assert twin.nbytes == router.nbytes


@every_grouping
def test_a_snapshot_is_a_copy(grouping):
    router = grouping.build(5)
    router.route(stream(500))
    data = router.snapshot()
    one, two = grouping.build(5), grouping.build(5)
    one.restore(data)
    two.restore(data)
    one.route(stream(500, 1))
    assert equal(two.snapshot(), data)
    assert equal(router.snapshot(), data)


@every_grouping
def test_a_router_built_for_another_number_of_workers_can_be_restored(grouping):
    router, other = grouping.build(400), grouping.build(3)
    router.route(stream(3_000))
    other.restore(router.snapshot())
    assert other.n_workers == 400
    keys = stream(3_000, 1)
    assert equal(other.route(keys), router.route(keys))
    for each in (router, other):
        each.follow(Plan(tuples=10_000, hot_keys=UNIVERSE, hot_counts=np.arange(2_000, 0, -1)))
    assert equal(other.route(keys), router.route(keys))


@pytest.fixture(scope="module")
def snapshots() -> dict[str, bytes]:
    made = {}
    for grouping in ALL:
        router = grouping.build(5)
        router.route(stream(500))
        made[repr(grouping)] = router.snapshot()
    return made


def refused(router, data: bytes, match: str) -> None:
    before = router.snapshot()
    with pytest.raises(SnapshotError, match=match):
        router.restore(data)
    assert equal(router.snapshot(), before)


@every_grouping
def test_a_truncated_snapshot_is_refused(grouping, snapshots):
    router, data = grouping.build(5), snapshots[repr(grouping)]
    router.route(stream(50))
    for length in (0, 1, 4, 5, 20, 24, 25, 30, len(data) // 2, len(data) - 1):
        refused(router, data[:length], "not a router snapshot|damaged")
    refused(router, data + b"\0", "damaged")


@every_grouping
@settings(max_examples=25)
@given(data=st.binary(max_size=200), prefix=st.integers(0, 40))
def test_random_bytes_raise_nothing_but_a_snapshot_error(grouping, snapshots, data, prefix):
    router = grouping.build(5)
    for junk in (data, snapshots[repr(grouping)][:prefix] + data):
        refused(router, junk, "snapshot")


@every_grouping
@settings(max_examples=25)
@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(grouping, snapshots, at, bit):
    data = bytearray(snapshots[repr(grouping)])
    data[int(at * len(data))] ^= 1 << bit
    refused(grouping.build(5), bytes(data), "not a router snapshot|damaged|format")


@every_grouping
def test_another_format_is_named(grouping, snapshots):
    data = bytearray(snapshots[repr(grouping)])
    data[4] = 9
    refused(grouping.build(5), bytes(data), "format 9, this version reads 1")


@every_grouping
def test_the_snapshot_of_another_grouping_is_refused(grouping, snapshots):
    for other in ALL:
        if repr(other) != repr(grouping):
            refused(grouping.build(5), snapshots[repr(other)], "snapshot is of a router with")


@every_class
def test_the_snapshot_of_other_parameters_is_refused(cls):
    grouping = counted(cls())
    router = grouping.build(5)
    assert (cls in OTHERWISE) == bool(fields(cls)), "OTHERWISE must name another value of one of its parameters"
    if cls in OTHERWISE:
        refused(router, replace(grouping, **OTHERWISE[cls]).build(5).snapshot(), "with parameters")
    refused(router, grouping.build(5, seed=1).snapshot(), "with seed 1, this one has 0")
    refused(router, grouping.build(5, source=1, n_sources=2).snapshot(), "with source 1, this one has 0")


# --- reports and plans


@every_grouping
def test_plans_are_numbered_and_carry_the_measured_speeds(grouping):
    router = grouping.build(3)
    routes = router.route(stream(3_000))
    tuples = np.bincount(routes, minlength=3)
    workers = Report(now=1.0, worker_tuples=tuples, worker_seconds=tuples * np.array([1.0, 2.0, 4.0]))
    plan = None
    for version in range(3):
        plan = grouping.fold(plan, [router.report(), workers])
        assert isinstance(plan, Plan)
        assert plan.version == version
        assert plan.tuples == router.report().tuples
        assert np.allclose(plan.seconds_per_tuple[tuples > 0], np.array([1.0, 2.0, 4.0])[tuples > 0])
    assert grouping.fold(plan, []).version == 3


@every_grouping
def test_following_and_observing_keep_routes_in_range(grouping):
    router = grouping.build(4, source=1, n_sources=2)
    router.route(stream(2_000))
    tuples = np.array([700, 100, 100, 100])
    report = Report(now=5.0, worker_tuples=tuples, worker_seconds=tuples * 0.5)
    router.observe(report)
    router.observe(Report())
    router.follow(grouping.fold(None, [router.report(), report]))
    router.follow(grouping.fold(None, []))
    routes = router.route(stream(2_000, 1))
    assert 0 <= routes.min() <= routes.max() < 4
