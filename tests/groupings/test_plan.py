"""Pooling of reports, and the table."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

from anabranch.errors import SnapshotError
from anabranch.groupings import DStream, Plan, Report, ShuffleGrouping, Table
from anabranch.groupings.plan import (
    pack_plan,
    pack_report,
    pool_cold,
    pool_hot_keys,
    pool_seconds,
    to_all,
    unpack_plan,
    unpack_report,
)


def hot(keys: list[int], counts: list[int]) -> Report:
    return Report(tuples=sum(counts), hot_keys=np.array(keys, np.uint64), hot_counts=np.array(counts, np.int64))


def workers(tuples: list[int], seconds: list[float]) -> Report:
    return Report(worker_tuples=np.array(tuples, np.int64), worker_seconds=np.array(seconds))


def test_counts_of_a_key_add_up_over_the_reports_and_come_heaviest_first():
    keys, counts = pool_hot_keys([hot([5, 2**64 - 1], [7, 3]), Report(), hot([2**64 - 1, 8], [9, 7])])
    assert keys.tolist() == [2**64 - 1, 5, 8]
    assert counts.tolist() == [12, 7, 7]
    assert keys.dtype == np.uint64
    assert counts.dtype == np.int64
    assert [len(array) for array in pool_hot_keys([Report()])] == [0, 0]


def at_worker(worker: int, tuples: int, hot_counts: list[int], n_workers: int = 3) -> Report:
    worker_tuples = np.zeros(n_workers, np.int64)
    worker_tuples[worker] = tuples
    return replace(hot(list(range(len(hot_counts))), hot_counts), worker_tuples=worker_tuples)


def test_cold_tuples_are_those_of_a_worker_without_its_heaviest_keys():
    reports = [at_worker(0, 10, [4, 3]), at_worker(2, 7, [7]), at_worker(0, 6, [1]), at_worker(3, 5, [2], 4)]
    assert pool_cold(reports).tolist() == [3 + 5, 0, 0, 3]
    # A sketch may count too much.
    assert pool_cold([at_worker(1, 4, [9])]).tolist() == [0, 0, 0]
    # Nothing is known of who is at home at several workers, nor of workers that name no keys.
    assert pool_cold([workers([3, 4], [1.0, 1.0]), workers([3, 0], [1.0, 0.0]), hot([5], [7])]).tolist() == []


def test_seconds_per_tuple_are_pooled_and_old_figures_stay_where_nothing_came():
    first = pool_seconds(None, [workers([10, 0, 4], [5.0, 0.0, 4.0]), Report(), workers([10, 0, 4], [15.0, 0.0, 4.0])])
    assert first[[0, 2]].tolist() == [1.0, 1.0]
    assert np.isnan(first[1])
    second = pool_seconds(Plan(seconds_per_tuple=first), [workers([0, 2], [0.0, 6.0])])
    assert second.tolist() == [1.0, 3.0, 1.0]
    assert pool_seconds(Plan(seconds_per_tuple=second), [Report()]).tolist() == [1.0, 3.0, 1.0]
    assert len(pool_seconds(None, [])) == 0


def test_a_plan_survives_workers_that_went_away():
    """Fewer workers report than the last plan knew."""
    grouping = ShuffleGrouping()
    plan = grouping.fold(None, [workers([1, 1, 1], [1.0, 2.0, 3.0])])
    plan = grouping.fold(plan, [workers([2], [8.0])])
    assert plan.version == 1
    assert plan.seconds_per_tuple.tolist() == [2.5, 2.0, 3.0]


def test_speeds_are_averaged_over_plans():
    """One batch is a noisy sample: a plan's figure is the mean of all so far, and later one of late batches."""
    grouping, plan = ShuffleGrouping(), None
    noisy = np.random.default_rng(0).normal(1.0, 0.05, 400)
    for seconds in noisy[:20]:
        plan = grouping.fold(plan, [workers([1], [seconds])])
    assert np.isclose(plan.seconds_per_tuple[0], noisy[:20].mean())
    for seconds in noisy[20:]:
        plan = grouping.fold(plan, [workers([1], [seconds])])
    assert abs(plan.seconds_per_tuple[0] - 1) < 0.03
    for _ in range(200):
        plan = grouping.fold(plan, [workers([1], [2.0])])
    assert abs(plan.seconds_per_tuple[0] - 2) < 0.02


def test_a_table_lists_the_workers_of_a_key():
    table = Table(np.array([7, 9], np.uint64), np.array([0, 1, 4]), np.array([3, 0, 1, 1], np.int32))
    assert table.workers_of(7).tolist() == [3]
    assert table.workers_of(9).tolist() == [0, 1, 1]
    assert table.workers_of(8).tolist() == []
    assert table.workers_of(8).dtype == np.int32


# --- as bytes


def as_lists(value: Any) -> Any:
    """To be compared by `==`, with the types of arrays."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.tolist()
    if is_dataclass(value):
        return {field.name: as_lists(getattr(value, field.name)) for field in fields(value)}
    return value


def assert_set(value: Report | Plan) -> None:
    """No field has its default, or losing it would not show."""
    given, default = as_lists(value), as_lists(type(value)())
    assert [name for name in given if given[name] == default[name]] == []


def test_every_field_of_a_report_survives_as_bytes():
    report = Report(
        now=3.5,
        tuples=7,
        worker_tuples=np.array([4, 3]),
        worker_seconds=np.array([0.5, 0.25]),
        hot_keys=np.array([9], np.uint64),
        hot_counts=np.array([6]),
        sketch=b"own",
        partials=11,
    )
    assert_set(report)
    assert as_lists(unpack_report(pack_report(report))) == as_lists(report)


@pytest.mark.parametrize("keys", [[9], []])
def test_every_field_of_a_plan_survives_as_bytes(keys):
    plan = Plan(
        version=2,
        tuples=7,
        hot_keys=np.array([9], np.uint64),
        hot_counts=np.array([6]),
        seconds_per_tuple=np.array([0.5, 0.25]),
        sources=5,
        now=1.5,
        step_s=0.25,
        table=to_all(np.array(keys, np.uint64), 3),
        n_keys=41,
        cold_tuples=np.array([8, 1]),
        clock=99.5,
        idle=np.array([3]),
    )
    assert_set(plan)
    assert as_lists(unpack_plan(pack_plan(plan))) == as_lists(plan)
    assert as_lists(unpack_plan(pack_plan(Plan()))) == as_lists(Plan())


@pytest.mark.parametrize("data", [b"", b"ANBR", pack_report(Report())[:-1], pack_report(Report()) + b"x"])
def test_damaged_bytes_are_an_error(data):
    with pytest.raises(SnapshotError):
        unpack_report(data)


def test_a_report_is_not_a_plan():
    with pytest.raises(SnapshotError, match="expected a plan, found 'report'"):
        unpack_plan(pack_report(Report()))
    with pytest.raises(SnapshotError, match="expected a report, found 'plan'"):
        unpack_report(pack_plan(Plan()))


def test_exact_counts_make_a_table_whatever_routers_report():
    """DStream's routers report bit vectors, which its `fold` pools as such."""
    exact = Report(tuples=100, hot_keys=np.array([7, 8], np.uint64), hot_counts=np.array([90, 10]), partials=2)
    first = DStream().plan_from_counts(None, [exact], 4)
    assert (first.hot_counts.tolist(), first.n_keys, first.cold_tuples.tolist()) == ([90, 10], 2, [])
    assert first.table is not None and first.table.keys.tolist() == [7, 8]
    second = DStream().plan_from_counts(first, [exact], 4, cold_tuples=np.array([1, 0, 0, 0]))
    assert (second.version, second.cold_tuples.tolist()) == (1, [1, 0, 0, 0])
