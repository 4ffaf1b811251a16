"""Plans: folded from the reports of the batch before, written once, and never a reason to stop."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql.datasource import InputPartition

from anabranch.groupings import (
    DistributionAwareKeyGrouping,
    DynamicKeyGrouping,
    Fish,
    Grouping,
    Plan,
    Report,
    Table,
    WChoices,
)
from anabranch.groupings.plan import pack_plan, unpack_plan
from anabranch.spark.edges.adaptive import plan_for
from anabranch.spark.plans import plan_source as plans
from anabranch.spark.plans.ledger import KEPT_BATCHES, Ledger
from anabranch.spark.plans.plan_source import PlanSource, as_rows, fold, plan_of
from anabranch.spark.plans.unwritten import UNPLANNED, UNWRITTEN
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task


def settings_of(grouping: Grouping, edge: str, tmp_path: Path) -> QuerySettings:
    return QuerySettings(grouping, 4, edge, str(tmp_path / "ledger"), keys=("key",))


def worker(number: int, tuples: int, hot: dict[int, int], seconds: float = 0.0) -> Report:
    worker_tuples, worker_seconds = np.zeros(4, np.int64), np.zeros(4)
    worker_tuples[number], worker_seconds[number] = tuples, seconds
    keys, counts = np.array(list(hot), np.uint64), np.array(list(hot.values()), np.int64)
    return Report(0.0, tuples, worker_tuples, worker_seconds, keys, counts)


def test_the_planned_edge_goes_by_the_exact_counts_of_the_workers(tmp_path):
    settings = settings_of(WChoices(theta=0.25), "planned", tmp_path)
    reports = {"worker-000000": worker(0, 60, {7: 50, 8: 10}), "worker-000001": worker(1, 40, {7: 10, 9: 30})}
    plan = fold(settings, None, reports)
    assert plan.tuples == 100
    assert dict(zip(plan.hot_keys.tolist(), plan.hot_counts.tolist(), strict=True)) == {7: 60, 9: 30, 8: 10}
    assert plan.table is not None
    assert sorted(plan.table.keys.tolist()) == [7, 9]
    assert plan.table.workers_of(7).tolist() == [0, 1, 2, 3]


def test_the_planned_edge_learns_from_what_was_observed(tmp_path):
    observed = Report(tuples=100, hot_keys=np.array([7, 8], np.uint64), hot_counts=np.array([60, 10]))
    plan = fold(settings_of(WChoices(theta=0.5), "planned", tmp_path), None, {"observed-0": observed})
    assert plan.table is not None
    assert plan.table.keys.tolist() == [7]


def test_the_adaptive_edge_goes_by_the_sketches_of_its_routers_and_the_seconds_of_the_workers(tmp_path):
    settings = settings_of(Fish(), "adaptive", tmp_path)
    router = Fish().build(4, 0, 2)
    router.route(np.array([7] * 900 + list(range(100, 200)), np.uint64), 0.0)
    reports = {"edge-000000": router.report(), "edge-000001": router.report()}
    reports["worker-000002"] = worker(2, 2000, {7: 5_000}, seconds=4.0)
    plan = fold(settings, None, reports)
    assert plan.sources == 2
    assert plan.seconds_per_tuple[2] == 0.002
    assert plan.hot_keys[0] == 7
    without = fold(settings, None, {name: one for name, one in reports.items() if name.startswith("edge")})
    assert plan.hot_counts.tolist() == without.hot_counts.tolist()


@pytest.mark.parametrize("edge", ["planned", "adaptive"])
def test_an_idle_batch_forgets_nothing(tmp_path, edge):
    settings = settings_of(WChoices(theta=0.25), edge, tmp_path)
    edge_report = Report(tuples=50, hot_keys=np.array([7], np.uint64), hot_counts=np.array([50]))
    reports = {"edge-000000": edge_report, "worker-000000": worker(0, 50, {7: 50}, seconds=1.0)}
    before = fold(settings, None, reports)
    after = fold(settings, before, {})
    assert after.hot_keys.tolist() == before.hot_keys.tolist() == [7]
    assert (after.version, after.tuples, after.sources) == (before.version, before.tuples, before.sources)
    assert after.seconds_per_tuple.tolist()[0] == 0.02
    assert (after.table is None) == (edge == "adaptive")
    assert after.now >= before.now
    assert after.step_s == 0.0


def test_the_first_batch_of_all_has_an_empty_plan(tmp_path):
    for edge in ("planned", "adaptive"):
        plan = fold(settings_of(WChoices(), edge, tmp_path), None, {})
        assert (plan.tuples, plan.sources, len(plan.hot_keys)) == (0, 0, 0)
        assert as_rows(plan).num_rows == 0


def test_a_mapping_that_was_made_stays(tmp_path):
    settings = settings_of(DistributionAwareKeyGrouping(), "planned", tmp_path)
    first = fold(settings, None, {"worker-000000": worker(0, 100, {7: 60, 8: 40})})
    second = fold(settings, first, {"worker-000000": worker(0, 100, {9: 100})})
    assert first.table is not None
    assert second.table is not None
    assert second.table.keys.tolist() == first.table.keys.tolist()
    assert second.hot_keys.tolist() == [9]


def test_time_between_tuples_is_that_between_plans_over_the_tuples_of_a_source(tmp_path, monkeypatch):
    settings = settings_of(Fish(), "adaptive", tmp_path)
    monkeypatch.setattr(plans.time, "time", lambda: 1000.0)
    first = fold(settings, None, {})
    monkeypatch.setattr(plans.time, "time", lambda: 1010.0)
    edge = Report(tuples=0)
    reports = {"edge-000000": edge, "edge-000001": edge, "worker-000000": worker(0, 400, {})}
    second = fold(settings, first, reports)
    assert (first.now, first.step_s, second.now) == (1000.0, 0.0, 1010.0)
    assert second.step_s == 10.0 * 2 / 400


def test_time_does_not_run_backwards_though_the_clock_is_set_back(tmp_path, monkeypatch):
    settings = settings_of(DynamicKeyGrouping(), "adaptive", tmp_path)
    reports = {"edge-000000": Report(), "worker-000000": worker(0, 100, {})}
    plan, plans_made = None, []
    for clock in (90_000.0, 90_010.0, 26_938.0, 26_940.0, 26_945.0):
        monkeypatch.setattr(plans.time, "time", lambda clock=clock: clock)
        plan = fold(settings, plan, reports)
        plan = unpack_plan(pack_plan(plan))
        plans_made.append(plan)
    assert [plan.now for plan in plans_made] == [90_000.0, 90_010.0, 90_010.0, 90_012.0, 90_017.0]
    assert [plan.step_s for plan in plans_made] == [0.0, 0.1, 0.0, 0.02, 0.05]


def test_a_plan_is_made_once_and_then_read(tmp_path):
    settings = settings_of(WChoices(theta=0.25), "planned", tmp_path)
    ledger = Ledger(str(settings.ledger))
    ledger.write_report("q", 0, "worker-000000", worker(0, 50, {7: 50}))
    made = plan_of(settings, "q", 1)
    ledger.write_report("q", 0, "worker-000000", worker(0, 50, {8: 50}))
    again = plan_of(settings, "q", 1)
    assert made.hot_keys.tolist() == again.hot_keys.tolist() == [7]
    assert made.now == again.now


def test_a_plan_follows_the_last_one_there_is_however_long_ago(tmp_path):
    settings = settings_of(WChoices(theta=0.25), "planned", tmp_path)
    ledger = Ledger(str(settings.ledger))
    ledger.write_report("q", 0, "worker-000000", worker(0, 50, {7: 50}))
    plan_of(settings, "q", 1)
    # Batches 1 to 3 left nothing, not even plans.
    later = plan_of(settings, "q", 4)
    assert later.hot_keys.tolist() == [7]
    assert later.table is not None
    assert later.table.keys.tolist() == [7]


def test_old_batches_are_removed_as_new_ones_are_planned(tmp_path):
    settings = settings_of(WChoices(), "planned", tmp_path)
    for batch in range(KEPT_BATCHES + 5):
        plan_of(settings, "q", batch)
    assert Ledger(str(settings.ledger)).batches("q") == list(range(4, KEPT_BATCHES + 5))


def rows(settings: QuerySettings, monkeypatch: pytest.MonkeyPatch, batch: int) -> list[tuple[int, list[int]]]:
    """What a join with the key's hash finds."""
    return read(settings, monkeypatch, batch)[0]


def read(
    settings: QuerySettings, monkeypatch: pytest.MonkeyPatch, batch: int
) -> tuple[list[tuple[int, list[int]]], int]:
    """The source's rows that have a hash, and how many plans were not written."""
    monkeypatch.setattr(Task, "current", classmethod(lambda cls: Task("q", batch, 0)))
    source = PlanSource({"settings": base64.b64encode(pickle.dumps(settings)).decode()})
    reader = source.reader(None)  # type: ignore[arg-type]
    assert len(reader.partitions()) == 1
    (found,) = list(reader.read(InputPartition(0)))
    pairs = zip(found["hash"].to_pylist(), found["workers"].to_pylist(), strict=True)
    assert found.num_rows > 0, "without a row nothing could be counted"
    return [pair for pair in pairs if pair[0] is not None], sum(found[UNWRITTEN].to_pylist())


def test_the_source_gives_the_table_of_the_batch(tmp_path, monkeypatch):
    settings = settings_of(WChoices(theta=0.25), "planned", tmp_path)
    hot = 2**64 - 7
    Ledger(str(settings.ledger)).write_report("q", 0, "worker-000000", worker(0, 50, {hot: 50}))
    assert rows(settings, monkeypatch, 1) == [(-7, [0, 1, 2, 3])]
    assert rows(settings, monkeypatch, 0) == []


def test_the_source_has_one_row_for_the_adaptive_edge_to_wait_for(tmp_path, monkeypatch):
    settings = settings_of(Fish(), "adaptive", tmp_path)
    assert rows(settings, monkeypatch, 0) == []
    assert Ledger(str(settings.ledger)).plan("q", 0) is not None


def test_the_source_never_raises(tmp_path, monkeypatch, caplog):
    (tmp_path / "ledger").write_text("in the way")
    assert rows(settings_of(WChoices(), "planned", tmp_path), monkeypatch, 3) == []
    assert read(settings_of(Fish(), "adaptive", tmp_path), monkeypatch, 3) == ([], 1)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"ledger {tmp_path}/ledger was not written")


def test_a_grouping_that_fails_leaves_the_last_plan_in_force_and_is_counted(tmp_path, monkeypatch, caplog):
    settings = settings_of(WChoices(theta=0.25), "planned", tmp_path)
    ledger = Ledger(str(settings.ledger))
    ledger.write_report("q", 0, "worker-000000", worker(0, 50, {7: 50}))
    first = plan_of(settings, "q", 1)
    ledger.write_report("q", 1, "worker-000000", worker(0, 50, {8: 50}))

    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("no table here")

    monkeypatch.setattr(WChoices, "table", failing)
    monkeypatch.setattr(Task, "current", classmethod(lambda cls: Task("q", 2, 0)))
    (found,) = plans._PlanReader(settings).read(InputPartition(0))
    assert found["hash"].to_pylist() == first.table.keys.view(np.int64).tolist() == [7]
    assert (found[UNWRITTEN].to_pylist(), found[UNPLANNED].to_pylist()) == ([0], [1])
    assert caplog.messages == ["no new plan for batch 2, so the last one stays in force: no table here"]


@pytest.mark.parametrize("edge", ["planned", "adaptive"])
def test_a_batch_whose_plan_cannot_be_written_goes_by_the_last_one(tmp_path, monkeypatch, edge):
    settings = settings_of(WChoices(theta=0.25), edge, tmp_path)
    ledger = Ledger(str(settings.ledger))
    for batch, hot in enumerate((7, 8)):
        router = Report(tuples=50, hot_keys=np.array([hot], np.uint64), hot_counts=np.array([50]))
        ledger.write_report("q", batch, "edge-000000", router)
        ledger.write_report("q", batch, "worker-000000", worker(0, 50, {hot: 50}))
        plan_of(settings, "q", batch)
    Path(str(settings.ledger), "q", f"{2:012d}").write_text("in the way")
    found, unwritten = read(settings, monkeypatch, 2)
    assert unwritten == 1
    assert edge == "adaptive" or found == [(7, [0, 1, 2, 3])]
    for _ in range(2):
        assert plan_for(settings, Task("q", 2, 0)).hot_keys.tolist() == [7]
    # Plans that `forget` may remove in the course of the batch are not looked at, or attempts at a task would differ.
    assert plan_for(settings, Task("q", 1 + KEPT_BATCHES, 0)).hot_keys.tolist() == [7]
    assert len(plan_for(settings, Task("q", 2 + KEPT_BATCHES, 0)).hot_keys) == 0


def test_a_plan_that_could_be_written_counts_nothing(tmp_path, monkeypatch):
    for edge in ("planned", "adaptive"):
        assert read(settings_of(WChoices(), edge, tmp_path / edge), monkeypatch, 0)[1] == 0


def test_rows_of_a_table_keep_weights_and_signs():
    table = Table(np.array([2**64 - 1, 5], np.uint64), np.array([0, 3, 4]), np.array([1, 1, 2, 0], np.int32))
    found = as_rows(Plan(table=table))
    assert found["hash"].to_pylist() == [-1, 5]
    assert found["workers"].to_pylist() == [[1, 1, 2], [0]]
    assert as_rows(Plan()).schema == found.schema
