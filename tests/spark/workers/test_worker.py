"""What workers compute and report, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from anabranch.aggregates import Aggregate, Count, Groups, StateColumn, Sum, TopK, Types
from anabranch.groupings import KeyGrouping
from anabranch.hashing import hash_keys
from anabranch.spark import Ledger
from anabranch.spark.plans.ledger import KEPT_BATCHES
from anabranch.spark.plans.unwritten import UNWRITTEN
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task
from anabranch.spark.workers import heaviest, worker
from anabranch.spark.workers.partial_states import TUPLES, BoundAggregate, PartialStates
from anabranch.spark.workers.worker import Worker

TYPES = {"value": pa.float64()}


def summary() -> PartialStates:
    named = {"n": Count(), "total": Sum("value")}
    return PartialStates(("key",), tuple(BoundAggregate(name, one, one.state(TYPES)) for name, one in named.items()))


def worker_of(tmp_path, edge: str = "adaptive") -> Worker:
    return Worker(summary(), QuerySettings(KeyGrouping(), 3, edge, ledger=str(tmp_path), keys=("key",)))


def batches(n: int, size: int) -> list[pa.RecordBatch]:
    rng = np.random.default_rng(3)
    table = pa.table({"key": rng.integers(0, 50, n), "value": rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n)})
    return table.to_batches(max_chunksize=size)


@pytest.mark.parametrize(("chunk", "size"), [(1, 100), (64, 10), (300, 7), (10_000, 1000)])
def test_partial_states_do_not_depend_on_how_rows_come_in_pieces(tmp_path, monkeypatch, chunk, size):
    whole, _, _ = worker_of(tmp_path).summarise(iter(batches(1000, 1000)))
    monkeypatch.setattr(worker, "_CHUNK", chunk)
    pieces, tuples, _ = worker_of(tmp_path).summarise(iter(batches(1000, size)))
    assert tuples == 1000
    assert pieces.sort_by("key").equals(whole.sort_by("key"))


def test_a_worker_without_rows_has_no_states(tmp_path):
    assert worker_of(tmp_path).summarise(iter([])) == (None, 0, 0.0)


def test_a_report_names_the_heaviest_keys_by_the_hash_that_the_edge_sees(tmp_path, monkeypatch):
    monkeypatch.setattr(heaviest, "_REPORTED", 2)
    made = worker_of(tmp_path)
    partial = pa.table({"key": ["a", "b", "c"], TUPLES: [5, 9, 7]})
    made.report(Task("query", 4, 1), partial, 21, 2.0)
    (report,) = Ledger(str(tmp_path)).reports("query", 4).values()
    assert report.hot_keys.tolist() == hash_keys(["b", "c"]).tolist()
    assert report.hot_counts.tolist() == [9, 7]
    assert report.worker_tuples.tolist() == [0, 21, 0]
    assert report.worker_seconds.tolist() == [0, 2.0, 0]


def test_seconds_too_few_to_measure_are_not_reported(tmp_path):
    worker_of(tmp_path).report(Task("query", 4, 1), None, 5, 0.01)
    (report,) = Ledger(str(tmp_path)).reports("query", 4).values()
    assert report.worker_seconds.tolist() == [0, 0, 0]
    assert report.tuples == 5


@pytest.mark.parametrize("edge", ["adaptive", "local"])
def test_old_reports_are_removed_whatever_the_edge(tmp_path, edge):
    made = worker_of(tmp_path, edge)
    for batch in range(KEPT_BATCHES + 5):
        for partition in range(2):
            made.report(Task("query", batch, partition), None, 0, 0.0)
    assert Ledger(str(tmp_path)).batches("query") == list(range(4, KEPT_BATCHES + 5))


def worker_with(aggregate: Aggregate, kind: pa.DataType) -> Worker:
    bound = BoundAggregate("a", aggregate, aggregate.state({"value": kind}))
    return Worker(PartialStates(("key",), (bound,)), QuerySettings(KeyGrouping(), 3, "adaptive", keys=("key",)))


def test_an_aggregate_that_shows_how_rows_were_split_gets_all_of_a_worker_at_once(monkeypatch):
    """Each half has another value than "c" in first place: in pieces, "c" would be dropped before it is added up."""
    monkeypatch.setattr(worker, "_CHUNK", 7)
    values = list("aaabbcc") + list("dddeecc")
    rows = pa.table({"key": [1] * len(values), "value": values})
    made = worker_with(TopK("value", k=1, capacity=1), pa.string())
    partial, tuples, _ = made.summarise(iter(rows.to_batches(max_chunksize=7)))
    assert tuples == 14
    assert partial["__anabranch_a__heaviest"].to_pylist() == [[{"value": "c", "count": 4}]]


@dataclass(frozen=True)
class Chained(Aggregate):
    """The values of a key, one after the other as they come: an aggregate of a user's own."""

    order_sensitive: ClassVar[bool] = True

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("value",)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("text", pa.string()),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        texts = [""] * groups.n
        for code, value in zip(groups.codes.tolist(), columns[0].to_pylist(), strict=True):
            texts[code] += str(value)
        return (pa.array(texts),)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.string()


@pytest.mark.parametrize("seed", range(3))
def test_an_aggregate_that_shows_the_order_of_rows_gets_them_sorted_and_at_once(monkeypatch, seed):
    monkeypatch.setattr(worker, "_CHUNK", 10)
    rows = pa.table({"key": [i % 2 for i in range(40)], "value": [i // 2 % 10 for i in range(40)]})
    shuffled = rows.take(np.random.default_rng(seed).permutation(40))
    partial, _, _ = worker_with(Chained(), pa.int64()).summarise(iter(shuffled.to_batches(max_chunksize=3)))
    found = dict(zip(partial["key"].to_pylist(), partial["__anabranch_a__text"].to_pylist(), strict=True))
    assert found == dict.fromkeys((0, 1), "00112233445566778899")


def test_a_report_that_cannot_be_written_is_counted_beside_the_states(tmp_path, caplog):
    (tmp_path / "ledger").write_text("in the way")
    partials = []
    for folder in (tmp_path / "ledger", tmp_path / "other", tmp_path / "ledger"):
        (partial,) = worker_of(folder)(iter(batches(1000, 100)))
        partials.append(partial)
    assert [sum(partial[UNWRITTEN].to_pylist()) for partial in partials] == [1, 0, 1]
    states, others, _ = (pa.Table.from_batches([partial]).drop([UNWRITTEN]) for partial in partials)
    assert states.equals(others)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("edge", ["adaptive", "local"])
def test_where_old_reports_cannot_be_removed_a_worker_goes_on(tmp_path, monkeypatch, edge):
    monkeypatch.setattr(Ledger, "batches", lambda *_: (_ for _ in ()).throw(PermissionError("read-only")))
    assert worker_of(tmp_path, edge).report(Task("query", 30, 0), None, 0, 0.0) == 0
