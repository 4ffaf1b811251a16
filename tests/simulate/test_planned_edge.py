"""The planned edge: tables of the window before, drawn from at random; everything else at home."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import groupings
from anabranch.errors import ConfigError
from anabranch.groupings import (
    DistributionAwareKeyGrouping,
    Fish,
    KeyGrouping,
    OfflineGreedy,
    Plan,
    ShuffleGrouping,
    Spillway,
    Table,
    TableGrouping,
    WChoices,
)
from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.simulate import Settings, simulate
from anabranch.simulate.planned_edge import PlannedEdge, check, fits
from anabranch.simulate.source import Tuples
from anabranch.streams import Zipf

from .listed import Listed, skewed

ALL = [getattr(groupings, name) for name in groupings.__all__]


def tuples(keys: np.ndarray, start: int = 0) -> Tuples:
    return Tuples(start, keys, np.zeros(len(keys)), None)


@dataclass(frozen=True)
class Told(KeyGrouping):
    """Key grouping whose table is given; it notes the plans it is asked for."""

    name: ClassVar[str] = "told"
    learns: ClassVar[bool] = True
    answer: Table | None = None
    plans: list[tuple[Plan, int, int]] = field(default_factory=list)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        self.plans.append((plan, n_workers, seed))
        return self.answer


def told(keys: np.ndarray, workers: list[list[int]]) -> Told:
    offsets = np.cumsum([0, *map(len, workers)])
    return Told(answer=Table(keys, offsets, np.concatenate(workers).astype(np.int32)))


@given(seed=st.integers(0, 5), n_workers=st.integers(1, 20), cuts=st.lists(st.integers(0, 3000), max_size=4))
@settings(max_examples=30)
def test_keys_of_the_table_go_to_its_workers_by_weight_and_all_others_home(seed, n_workers, cuts):
    keys = hash_keys(np.random.default_rng(seed).integers(0, 6, 3000))
    listed = [[0, n_workers - 1, n_workers - 1, n_workers - 1], [n_workers // 2]]
    grouping = told(hash_keys([4, 2]), listed)
    edge = PlannedEdge(grouping, n_workers, seed)
    homes = MultiplyShift().first(keys, n_workers, seed)
    assert edge.route(tuples(keys)).tolist() == homes.tolist()
    edge.begin_window(groupings.Report())
    routed = edge.route(tuples(keys, 3000))
    split, moved = keys == hash_keys([4])[0], keys == hash_keys([2])[0]
    assert (routed[~split & ~moved] == homes[~split & ~moved]).all()
    assert (routed[moved] == n_workers // 2).all()
    assert set(routed[split].tolist()) == {0, n_workers - 1}
    if n_workers > 1:
        assert (routed[split] == 0).mean() == pytest.approx(0.25, abs=0.1)
    # Choices go by position: the same however the stream is cut, others under another position.
    again = PlannedEdge(grouping, n_workers, seed)
    again.begin_window(groupings.Report())
    pieces = zip([0, *sorted(cuts)], [*sorted(cuts), 3000], strict=True)
    assert np.concatenate([again.route(tuples(keys[a:b], 3000 + a)) for a, b in pieces]).tolist() == routed.tolist()
    assert n_workers == 1 or again.route(tuples(keys, 9000)).tolist() != routed.tolist()


def test_a_table_that_was_given_is_followed_from_the_first_window_on():
    keys = hash_keys(np.arange(300) % 7)
    grouping = TableGrouping(keys[:3], [1, 0, 2])
    assert PlannedEdge(grouping, 3, 5).route(tuples(keys)).tolist() == grouping.build(3, seed=5).route(keys).tolist()


def test_the_plan_holds_the_exact_counts_of_one_window_and_the_table_before():
    grouping = told(hash_keys([1]), [[0]])
    stream = skewed(3500, 40, seed=3, batch=333)
    simulate(
        stream, grouping, Settings(n_workers=2, window=1000, seed=6, edge="planned", speeds=(2, 1), report_noise=0)
    )
    assert [(n_workers, seed) for _, n_workers, seed in grouping.plans] == [(2, 6)] * 3
    plans, hashes = [plan for plan, _, _ in grouping.plans], hash_keys(stream.keys)
    assert [plan.version for plan in plans] == [0, 1, 2]
    assert plans[0].table is None
    assert plans[1].table is plans[2].table is grouping.answer
    for window, plan in enumerate(plans):
        keys, counts = np.unique(hashes[1000 * window : 1000 * window + 1000], return_counts=True)
        assert plan.tuples == 1000
        assert plan.n_keys == len(keys)
        assert dict(zip(plan.hot_keys.tolist(), plan.hot_counts.tolist(), strict=True)) == dict(
            zip(keys.tolist(), counts.tolist(), strict=True)
        )
        assert (np.diff(plan.hot_counts) <= 0).all()
        assert plan.cold_tuples.tolist() == [0, 0]
        assert plan.seconds_per_tuple == pytest.approx([0.0005, 0.001])


def test_keys_beyond_the_heaviest_are_known_by_home_only():
    keys = hash_keys(np.concatenate([np.arange(2500), np.arange(1500), np.arange(1500), np.arange(2200)]))
    grouping = Told(answer=None)
    edge = PlannedEdge(grouping, 2, 1)
    edge.route(tuples(keys[:700]))
    edge.route(tuples(keys[700:], 700))
    edge.begin_window(groupings.Report())
    plan = grouping.plans[0][0]
    assert len(plan.hot_keys) == 2000
    assert plan.hot_counts.tolist() == [4] * 1500 + [2] * 500
    assert plan.tuples == plan.hot_counts.sum() + plan.cold_tuples.sum() == 7700
    assert plan.n_keys == 2500
    cold = keys[~np.isin(keys, plan.hot_keys)]
    assert plan.cold_tuples.tolist() == np.bincount(MultiplyShift().first(cold, 2, 1), minlength=2).tolist()


def test_reports_between_windows_are_not_lost():
    grouping = told(hash_keys([1]), [[0]])
    given_settings = Settings(
        n_workers=2, window=1000, rate=1000, report_s=0.3, speeds=(4, 1), report_noise=0, edge="planned"
    )
    simulate(Listed(np.arange(2000) % 50), grouping, given_settings)
    assert grouping.plans[1][0].seconds_per_tuple == pytest.approx([0.00025, 0.001])
    # What was observed before the end of the window counts as well as what the window's end brings.
    edge = PlannedEdge(grouping, 2, 0)
    edge.observe(groupings.Report(worker_tuples=np.array([5, 0]), worker_seconds=np.array([10.0, 0.0])))
    edge.begin_window(groupings.Report(worker_tuples=np.array([0, 5]), worker_seconds=np.array([0.0, 5.0])))
    assert edge.plan.seconds_per_tuple.tolist() == [2.0, 1.0]
    edge.begin_window(groupings.Report())
    assert edge.plan.seconds_per_tuple.tolist() == [2.0, 1.0]


def test_router_bytes_are_those_of_the_table():
    edge = PlannedEdge(told(hash_keys([1, 2]), [[0], [1, 1, 0]]), 2, 0)
    assert edge.router_bytes == 8
    edge.begin_window(groupings.Report())
    assert edge.router_bytes == 2 * 8 + 3 * 8 + 4 * 4


@pytest.mark.parametrize("seed", [0, 2])
def test_a_window_late_spillway_balances_what_key_grouping_does_not(seed):
    given_settings = Settings(n_workers=8, n_sources=3, window=50_000, seed=seed, edge="planned")
    stream = Zipf(n_tuples=250_000, n_keys=3000, z=1.4)
    ours, hashed = (simulate(stream, grouping, given_settings) for grouping in (Spillway(), KeyGrouping()))
    # The first window goes home.
    assert ours.windows.makespan[0] == hashed.windows.makespan[0] > 2
    assert ours.windows.makespan[1:].max() < 1.1
    assert ours.replication < 1.02
    assert ours.router_bytes > 0


def test_workers_of_different_speed_are_planned_for():
    given_settings = Settings(n_workers=8, window=50_000, speeds=(2, 1), edge="planned")
    result = simulate(Zipf(n_tuples=250_000, n_keys=3000, z=1.2), Spillway(), given_settings)
    assert result.windows.makespan[1:].max() < 1.15


def test_shuffle_grouping_chooses_any_worker_at_random():
    result = simulate(skewed(20_000, 5, seed=0), ShuffleGrouping(), Settings(n_workers=4, window=5000, edge="planned"))
    assert result.loads.sum() == 20_000
    assert result.loads == pytest.approx([5000] * 4, rel=0.06)
    assert len(set(result.loads.tolist())) > 1
    assert result.replication == 4.0


def test_key_grouping_is_the_same_on_both_edges():
    stream = skewed(5000, 60, seed=1)
    planned, adaptive = (
        simulate(stream, KeyGrouping(), Settings(n_workers=5, window=700, seed=3, edge=edge))
        for edge in ("planned", "adaptive")
    )
    assert planned.loads.tolist() == adaptive.loads.tolist()
    assert planned.record()["settings"]["edge"] == "planned"


def test_hot_keys_go_to_all_workers_under_w_choices():
    result = simulate(skewed(40_000, 5, seed=0), WChoices(), Settings(n_workers=4, window=5000, edge="planned"))
    assert result.windows.makespan[1:].max() < 1.1 < result.windows.makespan[0]


def test_a_run_is_repeatable():
    stream = Zipf(n_tuples=60_000, n_keys=500, z=1.3)
    first, second, other = (
        simulate(stream, Spillway(), Settings(n_workers=6, window=20_000, seed=seed, edge="planned"))
        for seed in (1, 1, 2)
    )
    assert first.loads.tolist() == second.loads.tolist() != other.loads.tolist()


class Unread(Listed):
    """A stream that must not be read."""

    def _read(self, *args: object):  # type: ignore[no-untyped-def]
        pytest.fail("the stream was read")


@pytest.mark.parametrize(
    ("grouping", "message"),
    [
        (Fish(), "fish chooses tuple by tuple and cannot be written as a table, which the planned edge needs; use the"),
        (OfflineGreedy(), "offline-greedy needs the counts of the whole stream, and a window's table has those of"),
    ],
)
def test_a_grouping_that_no_table_can_hold_is_refused_before_the_run(grouping, message):
    with pytest.raises(ConfigError) as caught:
        simulate(Unread(np.arange(10)), grouping, Settings(edge="planned"))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_what_fits_is_what_is_not_refused():
    made = [
        one() for one in ALL if isinstance(one, type) and issubclass(one, groupings.Grouping) and hasattr(one, "name")
    ]
    for grouping in made:
        if fits(grouping):
            check(grouping)
        else:
            with pytest.raises(ConfigError):
                check(grouping)
    fitting = {grouping.name for grouping in made if fits(grouping)}
    assert {"spillway", "key", "shuffle", "w-choices", "dstream", "table", DistributionAwareKeyGrouping.name} == fitting


def test_workers_cannot_change():
    with pytest.raises(ConfigError, match=r"^workers of the planned edge cannot change, got \[0, 1\]"):
        PlannedEdge(KeyGrouping(), 3, 0).set_workers([0, 1])
