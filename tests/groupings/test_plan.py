"""Pooling of reports, and the table."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.errors import SnapshotError
from anabranch.groupings import Plan, Report, ShuffleGrouping, Table
from anabranch.groupings.plan import (
    pack_plan,
    pack_report,
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


def test_a_report_and_a_plan_survive_as_bytes():
    report = Report(3.5, 7, np.array([4, 3]), np.array([0.5, 0.25]), np.array([9], np.uint64), np.array([6]), b"own")
    back = unpack_report(pack_report(report))
    for name in ("now", "tuples", "sketch"):
        assert getattr(back, name) == getattr(report, name)
    for name in ("worker_tuples", "worker_seconds", "hot_keys", "hot_counts"):
        assert getattr(back, name).tolist() == getattr(report, name).tolist()
    for table in (None, to_all(np.array([9], np.uint64), 3), to_all(np.zeros(0, np.uint64), 3)):
        plan = Plan(2, 7, report.hot_keys, report.hot_counts, report.worker_seconds, 5, 1.5, 0.25, table)
        again = unpack_plan(pack_plan(plan))
        assert pack_plan(again) == pack_plan(plan)
        assert (again.version, again.sources, again.now, again.step_s) == (2, 5, 1.5, 0.25)
        assert (again.table is None) == (table is None)


@pytest.mark.parametrize("data", [b"", b"ANBR", pack_report(Report())[:-1], pack_report(Report()) + b"x"])
def test_damaged_bytes_are_an_error(data):
    with pytest.raises(SnapshotError):
        unpack_report(data)


def test_a_report_is_not_a_plan():
    with pytest.raises(SnapshotError, match="expected a plan, found 'report'"):
        unpack_plan(pack_report(Report()))
    with pytest.raises(SnapshotError, match="expected a report, found 'plan'"):
        unpack_report(pack_plan(Plan()))
