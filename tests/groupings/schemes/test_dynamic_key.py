"""Dynamic key grouping: Table 1, route for route against Algorithms 1 to 6, and when keys are scaled out and down."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.groupings import DynamicKeyGrouping, PartialKeyGrouping
from anabranch.groupings.schemes.dynamic_key import Items
from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.metrics import load_stddev
from anabranch.streams import Country

UNIVERSE = hash_keys(np.arange(3_000))
BABY, TEENAGE, OLD = 0, 1, 2


@dataclass
class Item:
    key: int
    count: float = 0.0
    space: int = BABY
    spread: int = 2
    checked: float = -math.inf


class Reference:
    """Algorithms 1 to 6 in one source. Among equals those come first that were listed first."""

    def __init__(self, grouping: DynamicKeyGrouping, n_workers: int) -> None:
        self.grouping, self.n = grouping, n_workers
        self.items: list[Item] = []
        self.loads = [0] * n_workers
        self.started: float | None = None
        self.scale_outs = self.scale_downs = 0

    def route(self, key: int, now: float) -> int:
        if self.started is None:
            self.started = now
            self.teenage_at, self.old_at = now + self.grouping.teenage_s, now + self.grouping.old_s
        self.manage(now)
        item = next((item for item in self.items if item.key == key), None)
        if item is None:
            item = Item(key)
            self.items.append(item)
        item.count += 1
        worker = self.choose_best_task(item, now)
        self.loads[worker] += 1
        return worker

    def manage(self, now: float) -> None:
        tenth = self.grouping.expected_keys // 10
        teenage, babies = 4 * self.grouping.expected_keys // 10, self.grouping.expected_keys // 2
        if now >= self.teenage_at:
            self.truncate_babies(babies)
            self.promote(BABY, TEENAGE, teenage)
            for item in self.items:
                item.count *= self.grouping.decay
            while self.teenage_at <= now:
                self.teenage_at += self.grouping.teenage_s
        if now >= self.old_at:
            self.promote(TEENAGE, OLD, tenth)
            while self.old_at <= now:
                self.old_at += self.grouping.old_s

    def truncate_babies(self, size: int) -> None:
        others = [item for item in self.items if item.space != BABY]
        babies = [item for item in self.items if item.space == BABY]
        self.items = others + sorted(babies, key=lambda item: -item.count)[:size]

    def promote(self, lower: int, upper: int, size: int) -> None:
        both = [item for item in self.items if item.space in (lower, upper)]
        both.sort(key=lambda item: (-item.count, item.space))
        for place, item in enumerate(both):
            item.space = upper if place < size else lower

    def percent(self, worker: int) -> float:
        load = self.loads[worker] * (100 / sum(self.loads)) if sum(self.loads) else 0.0
        return math.floor(load) if self.grouping.whole_percents else load

    def choose_best_task(self, item: Item, now: float) -> int:
        home = int(MultiplyShift().first(np.array([item.key], dtype=np.uint64), self.n, 0)[0])
        threshold = self.grouping.threshold(self.n)

        def best(width: int) -> tuple[int, int]:
            machines = [(home + j) % self.n for j in range(min(width, self.n))]
            return min(machines, key=lambda w: self.loads[w]), sum(self.percent(w) < threshold for w in machines)

        worker, below = best(item.spread)
        old = item.space == OLD
        warm = now - self.started > self.grouping.warm_up_s
        if not warm or now - item.checked < self.grouping.check_s or not (old or item.spread > 2):
            return worker
        item.checked = now
        if old and self.percent(worker) >= threshold:
            other = (home + item.spread) % self.n
            if item.spread < self.grouping.max_workers(self.n) and self.loads[other] < self.loads[worker]:
                item.spread += 1
                self.scale_outs += 1
                return other
        elif item.spread > 2 and below >= 2:
            item.spread -= 1
            self.scale_downs += 1
            return best(item.spread)[0]
        return worker


# --- Table 1


@pytest.mark.parametrize(
    ("n_workers", "threshold", "most", "whole"),
    [(5, 24.47, 5, 24), (10, 13.16, 8, 13), (20, 7.24, 14, 7), (50, 3.41, 30, 3), (100, 2.00, 51, 2)],
)
def test_table_1(n_workers, threshold, most, whole):
    grouping = DynamicKeyGrouping()
    assert grouping.threshold(n_workers) == pytest.approx(threshold, abs=0.005)
    assert grouping.max_workers(n_workers) == most
    reference_code = DynamicKeyGrouping(whole_percents=True)
    assert reference_code.threshold(n_workers) == whole
    assert reference_code.max_workers(n_workers) == n_workers


# --- against the reference


@settings(max_examples=60)
@given(
    grouping=st.builds(
        DynamicKeyGrouping,
        expected_keys=st.sampled_from([10, 17, 40]),
        warm_up_s=st.sampled_from([0.0, 3.0]),
        teenage_s=st.sampled_from([1.0, 4.0]),
        old_s=st.sampled_from([0.5, 2.0, 8.0]),
        check_s=st.sampled_from([0.0, 0.25, 2.0]),
        decay=st.sampled_from([0.1, 0.5, 1.0]),
        whole_percents=st.booleans(),
    ),
    n_workers=st.integers(2, 20),
    z=st.floats(1.1, 4.0),
    n_keys=st.sampled_from([3, 30, 300]),
    seed=st.integers(0, 10_000),
    gaps=st.lists(st.sampled_from([0.0, 0.5, 30.0]), min_size=1, max_size=4),
)
def test_routes_equal_the_reference(grouping, n_workers, z, n_keys, seed, gaps):
    router, reference = grouping.build(n_workers), Reference(grouping, n_workers)
    rng = np.random.default_rng(seed)
    now, step_s = 5.0, 2.0**-5
    for gap in gaps:
        # The hot keys differ from part to part, so that keys grow old, are overtaken and scaled down again.
        keys = UNIVERSE[(rng.zipf(z, 250) + 7 * rng.integers(0, 3)) % n_keys]
        routes = router.route(keys, now, step_s)
        assert routes.tolist() == [reference.route(int(key), now + i * step_s) for i, key in enumerate(keys)]
        now += len(keys) * step_s + gap
    assert (router.scale_outs, router.scale_downs) == (reference.scale_outs, reference.scale_downs)
    n = len(reference.items)
    assert router.items.spaces[:n].tolist() == [item.space for item in reference.items]
    assert router.items.counts[:n].tolist() == [item.count for item in reference.items]


def algorithm_3(source: list[float], destination: list[float]) -> tuple[list[float], list[float]]:
    """Word for word: occurrences of the key items of both spaces, sorted, heaviest first."""
    source, destination = list(source), list(destination)
    for _ in range(len(destination)):
        if not source or destination[-1] > source[0]:
            break
        destination.insert(0, source.pop(0))
        source.append(destination.pop())
    return source, destination


@settings(max_examples=50)
@given(counts=st.lists(st.integers(1, 12), min_size=5, max_size=60))
def test_promotion_has_the_outcome_of_algorithm_3(counts):
    """Where the upper space is full: the same occurrences end in each space."""
    grouping = DynamicKeyGrouping(expected_keys=50)
    router = grouping.build(3)
    router.route(UNIVERSE[: len(counts)].repeat(counts))
    spaces = router.items.spaces[: len(counts)]
    spaces[:] = TEENAGE
    spaces[:5] = OLD
    by_space = [sorted((c for c, s in zip(counts, spaces, strict=True) if s == space), reverse=True)
                for space in (TEENAGE, OLD)]  # fmt: skip
    expected = [sorted(space) for space in algorithm_3(*by_space)]
    router._promote(TEENAGE, OLD, 5)
    found = [sorted(c for c, s in zip(counts, spaces, strict=True) if s == space) for space in (TEENAGE, OLD)]
    assert found == expected


# --- scaling


def alone(grouping: DynamicKeyGrouping, n_workers: int, seconds: float, step_s: float = 0.01, start: float = 0.0):
    """A router after so many seconds of one key, and its routes."""
    router = grouping.build(n_workers)
    n = round(seconds / step_s)
    return router, router.route(np.full(n, UNIVERSE[0]), start, step_s)


def test_only_old_keys_are_scaled_out():
    """Babies until 15 s, teenagers until 60 s."""
    router, routes = alone(DynamicKeyGrouping(), 10, 59.0)
    assert len(set(routes.tolist())) == 2
    assert router.scale_outs == 0
    router, routes = alone(DynamicKeyGrouping(), 10, 80.0)
    assert router.scale_outs > 0
    first = int(np.flatnonzero(~np.isin(routes, routes[:2]))[0])
    assert first * 0.01 == pytest.approx(60.0, abs=0.02)


def test_nothing_is_scaled_out_while_it_warms_up():
    grouping = DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=30.0)
    router, _ = alone(grouping, 10, 29.9, start=1000.0)
    assert router.items.spaces[0] == OLD
    assert router.scale_outs == 0
    router.route(np.full(50, UNIVERSE[0]), 1030.01, 0.01)
    assert router.scale_outs == 1


@pytest.mark.parametrize(("check_s", "least", "most"), [(0.0, 50, 450), (1.0, 2, 5), (2.0, 2, 3), (100.0, 1, 1)])
def test_a_key_is_scaled_once_in_a_check_interval(check_s, least, most):
    """The key is old from 1 s to 5.5 s."""
    grouping = DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0, check_s=check_s)
    router, _ = alone(grouping, 10, 5.5)
    assert least <= router.scale_outs + router.scale_downs <= most


@settings(max_examples=20)
@given(n_workers=st.integers(2, 60))
def test_the_most_workers_of_a_key(n_workers):
    grouping = DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0, check_s=0.0)
    _, routes = alone(grouping, n_workers, 50.0)
    assert len(set(routes.tolist())) <= max(2, grouping.max_workers(n_workers))


@settings(max_examples=20)
@given(n_workers=st.integers(2, 30), seed=st.integers(0, 1000))
def test_a_key_that_is_not_old_has_two_neighbours(n_workers, seed):
    keys = UNIVERSE[np.random.default_rng(seed).zipf(1.5, 2_000) % 300]
    grouping = DynamicKeyGrouping(expected_keys=10, teenage_s=1.0, old_s=1.0, warm_up_s=0.0)
    router = grouping.build(n_workers)
    ever_old: set[int] = set()
    homes = MultiplyShift().first(keys, n_workers, 0)
    for i in range(0, len(keys), 100):
        now = i * 0.01
        routes = router.route(keys[i : i + 100], now, 0.01)
        ever_old |= set(router.items.keys[router.items.spaces == OLD].tolist())
        distance = (routes - homes[i : i + 100]) % n_workers
        cold = ~np.isin(keys[i : i + 100], np.array(sorted(ever_old), dtype=np.uint64))
        assert (distance[cold] <= 1).all()


def test_keys_are_scaled_down_when_their_load_is_back_to_normal():
    grouping = DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0)
    router, _ = alone(grouping, 10, 20.0)
    assert router.items.spread[0] > 3
    others = hash_keys(np.arange(5000, 5040))
    stream = np.where(np.arange(60_000) % 100 == 0, UNIVERSE[0], np.resize(others, 60_000))
    router.route(stream, 20.0, 0.01)
    at = int(np.flatnonzero(router.items.keys == UNIVERSE[0])[0])
    assert router.items.spread[at] == 2
    assert router.scale_downs == router.scale_outs


def test_without_decay_old_keys_stay_old():
    def still_old(decay: float) -> bool:
        grouping = DynamicKeyGrouping(expected_keys=10, teenage_s=1.0, old_s=1.0, decay=decay)
        router, _ = alone(grouping, 5, 20.0)
        router.route(np.full(1000, UNIVERSE[1]), 20.0, 0.01)
        old = router.items.keys[router.items.spaces == OLD]
        assert len(old) == 1
        return bool(old[0] == UNIVERSE[0])

    assert still_old(decay=1.0)
    assert not still_old(decay=0.5)


def test_spaces_have_their_sizes():
    router = DynamicKeyGrouping().build(10)
    router.route(UNIVERSE.repeat(3), 0.0, 0.007)
    router.route(UNIVERSE[:1], 75.0)
    spaces = np.bincount(router.items.spaces[: int(router.size[0])], minlength=3)
    assert spaces[OLD] == 10
    assert spaces[TEENAGE] == 40
    # All that could be promoted next time, and the key that came after.
    assert spaces[BABY] <= 40 + 50 + 1


# --- the item table


def test_more_keys_than_the_table_had_room_for():
    """Every key keeps its count, whichever of the tables it was entered in."""
    router = DynamicKeyGrouping().build(10)
    routes = router.route(np.concatenate([UNIVERSE, UNIVERSE]))
    n = int(router.size[0])
    assert n == len(UNIVERSE)
    assert len(router.items.keys) > 2 * n
    assert router.items.keys[:n].tolist() == UNIVERSE.tolist()
    assert (router.items.counts[:n] == 2).all()
    homes = np.tile(MultiplyShift().first(UNIVERSE, 10, 0), 2)
    assert set(((routes - homes) % 10).tolist()) == {0, 1}


def test_after_a_cycle_few_items_are_left():
    router = DynamicKeyGrouping().build(10)
    router.route(UNIVERSE)
    router.route(UNIVERSE[:1], 15.0)
    assert int(router.size[0]) == 50, "half of the expected keys"
    assert len(router.items.keys) == 1024
    assert all(len(array) == 1024 for array in router.items)


# --- workers, windows


def test_fewer_workers_cut_the_spread():
    router, _ = alone(DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0), 10, 20.0)
    router.set_workers(range(5))
    assert router.items.spread[0] == 5
    router.set_workers([3])
    assert router.route(UNIVERSE[:1]).tolist() == [3]


def test_a_window_zeroes_the_loads_and_keeps_the_keys():
    router, _ = alone(DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0), 10, 20.0)
    before = Items(*(array.copy() for array in router.items))
    router.begin_window()
    assert not router.loads.any()
    for name in ("keys", "counts", "spaces", "spread"):
        assert (getattr(before, name) == getattr(router.items, name)).all()


def test_loads_that_are_zero_do_not_scale_a_key_down():
    router, _ = alone(DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0), 10, 20.0)
    spread, downs = int(router.items.spread[0]), router.scale_downs
    assert spread > 2
    for batch in range(5):
        router.begin_window()
        router.route(np.full(50, UNIVERSE[0]), 20.0 + batch, 0.01)
    assert (int(router.items.spread[0]), router.scale_downs) == (spread, downs)


def test_time_that_jumps_back_stands_still_and_goes_on_from_there():
    """A plan that is lost has no time, and a batch with more tuples than the last one ends after the next begins."""
    quick = DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0)
    (back, _), (ahead, _) = alone(quick, 10, 20.0), alone(quick, 10, 20.0)
    latest = 2000 * 0.01
    more = np.concatenate([UNIVERSE[:300], np.full(700, UNIVERSE[1])])
    for now in (3.0, 0.0):
        back.begin_window()
        ahead.begin_window()
        assert back.route(more, now, 0.01).tolist() == ahead.route(more, latest, 0.01).tolist()
        latest += 1000 * 0.01
    assert back.snapshot() == ahead.snapshot()
    assert back.items.spread[back.items.keys == UNIVERSE[1]][0] > 2, "a key that is hot after the jump is scaled out"


def test_time_that_stands_still_does_not_show_how_the_tuples_were_cut():
    """Spark hands them over in packs, each with the time that its first tuple would have without the jump."""
    quick = DynamicKeyGrouping(teenage_s=1.0, old_s=1.0, warm_up_s=0.0)
    more = np.concatenate([UNIVERSE[:300], np.full(700, UNIVERSE[1])])
    snapshots = []
    for size in (1000, 10, 1):
        router, _ = alone(quick, 10, 20.0)
        for start in range(0, len(more), size):
            router.route(more[start : start + size], 3.0 + start * 0.0078125, 0.0078125)
        snapshots.append(router.snapshot())
    assert snapshots[0] == snapshots[1] == snapshots[2]


# --- the paper's stream


@pytest.mark.parametrize("parameters", [{}, {"whole_percents": True, "decay": 1.0, "check_s": 60.0}])
def test_one_country_with_most_of_the_tuples(parameters):
    """80 % of the tuples have one key: the load's standard deviation is well below partial key grouping's."""
    stream = Country(n_tuples=400_000, skew_percent=80)
    keys = np.concatenate([hash_keys(batch["key"]) for batch in stream.batches()])

    def stddev(grouping) -> float:
        return load_stddev(np.bincount(grouping.build(10).route(keys, 0.0, 0.002), minlength=10).astype(float))

    assert stddev(PartialKeyGrouping()) > 12
    assert stddev(DynamicKeyGrouping(**parameters)) < 6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"expected_keys": 9}, "expected_keys must be at least 10, got 9"),
        ({"teenage_s": 0.0}, "teenage_s must be above 0, got 0.0"),
        ({"old_s": -1.0}, "old_s must be above 0, got -1.0"),
        ({"old_s": float("nan")}, "old_s must be above 0, got nan"),
        ({"warm_up_s": -0.5}, "warm_up_s must be at least 0, got -0.5"),
        ({"check_s": float("nan")}, "check_s must be at least 0, got nan"),
        ({"decay": 0.0}, "decay must be above 0 and at most 1, got 0.0"),
        ({"decay": 1.5}, "decay must be above 0 and at most 1, got 1.5"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ConfigError) as error:
        DynamicKeyGrouping(**parameters)
    assert str(error.value) == message
