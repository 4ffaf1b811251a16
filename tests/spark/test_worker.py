"""What workers compute and report, without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anabranch.aggregates import Count, Sum
from anabranch.groupings import KeyGrouping
from anabranch.hashing import hash_keys
from anabranch.spark import Ledger, worker
from anabranch.spark.ledger import KEPT_BATCHES
from anabranch.spark.settings import Settings
from anabranch.spark.task import Task
from anabranch.spark.worker import TUPLES, Bound, Summary, Worker

TYPES = {"value": pa.float64()}


def summary() -> Summary:
    named = {"n": Count(), "total": Sum("value")}
    return Summary(("key",), tuple(Bound(name, one, one.state(TYPES)) for name, one in named.items()))


def worker_of(tmp_path, edge: str = "adaptive") -> Worker:
    return Worker(summary(), Settings(KeyGrouping(), 3, edge, ledger=str(tmp_path), keys=("key",)))


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
    monkeypatch.setattr(worker, "_REPORTED", 2)
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


LISTS = [[9.5], [-0.0, None], None, [], [float("nan"), -float("nan")]]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float32(), [9.5, -0.0, None, float("nan")]),
        (pa.list_(pa.float64()), LISTS),
        (pa.large_list(pa.float32()), LISTS),
        (pa.list_(pa.float64(), 2), [[9.5, 9.5], [-0.0, None], None, [-0.0, float("nan")]]),
        (
            pa.struct([("x", pa.float64()), ("y", pa.list_(pa.struct([("z", pa.float64())])))]),
            [{"x": 9.5, "y": None}, {"x": -0.0, "y": [{"z": -0.0}, None]}, None, {"x": None, "y": []}],
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("start", [0, 1, 2])
def test_keys_have_one_zero_and_one_nan_however_deep(kind, values, start):
    array = pa.array(values, kind).slice(start)
    found = worker.normal(pa.table({"key": array, "v": array}), ("key",))
    found.validate(full=True)
    assert found.schema.field("key").type == kind
    assert repr(found["key"].to_pylist()) == repr(array.to_pylist()).replace("-0.0", "0.0")
    assert repr(found["v"].to_pylist()) == repr(array.to_pylist())


def test_long_values_end_a_chunk_before_its_rows_do(monkeypatch):
    """Arrow cannot put more than 2 GB of strings into one array."""
    monkeypatch.setattr(worker, "_CHUNK_BYTES", 10_000)
    long = pa.record_batch({"k": pa.array(["x" * 1000] * 4)})
    assert [table.num_rows for table in worker.chunks(iter([long] * 8), 1 << 20)] == [12, 12, 8]
    assert [table.num_rows for table in worker.chunks(iter([long] * 8), None)] == [32]
