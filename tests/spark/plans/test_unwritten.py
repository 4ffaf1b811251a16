"""What the ledger does not take costs balance, and neither a query nor an answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from anabranch.aggregates import Count, Sum
from anabranch.chain import chain
from anabranch.spark import balance
from anabranch.spark.plans.unwritten import UNWRITTEN, attempt, flagged, unplanned_in, unwritten_in
from anabranch.spark.progress import unreported

from ..running import run, stream_of, write_files


def test_what_cannot_be_written_is_said_once_a_process(caplog):
    def fails() -> None:
        raise OSError(28, "No space left on device")

    assert [attempt("here\x1b", write) for write in (fails, lambda: None, fails)] == [1, 0, 1]
    assert attempt("there", fails) == 1
    said = caplog.messages
    assert [line.partition(" was not written")[0] for line in said] == [
        r"ledger here\x1b",
        "ledger there",
    ]
    assert "No space left on device" in said[0]


@pytest.mark.parametrize("sizes", [[], [1], [3, 2], [0, 4]])
def test_the_last_rows_bring_what_the_report_came_to(sizes):
    reported = []
    batches = (pa.record_batch({"a": range(n)}) for n in sizes)
    found = list(flagged(batches, lambda: reported.append(1) or 7))
    assert [batch["a"].to_pylist() for batch in found] == [list(range(n)) for n in sizes]
    assert [sum(batch[UNWRITTEN].to_pylist()) for batch in found] == [0] * (len(sizes) - 1) + [7] * bool(sizes)
    assert reported == [1]


def test_the_count_of_a_batch_is_in_its_progress():
    metrics = {
        "anabranch_unwritten_1": {"files": 2, "plans": 1},
        "anabranch_unwritten_2": {"files": None},
        "mine": {"files": 5},
    }
    progress = {"batchId": 3, "numInputRows": 9, "durationMs": {}, "observedMetrics": metrics}
    assert unwritten_in(progress) == unreported(progress).unwritten == 2
    assert unplanned_in(progress) == unreported(progress).unplanned == 1
    assert unwritten_in({"observedMetrics": None}) == unwritten_in({}) == 0


class Replaced:
    """A stream of which a file of another kind takes the ledger's place after the first batch."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger

    def __call__(self) -> None:
        shutil.rmtree(self.ledger)
        self.ledger.write_text("in the way")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("edge", "grouping", "regime", "files"),
    [("adaptive", "spillway", "batch", 5), ("planned", "w-choices", "batch", 3), ("adaptive", "fish", "resident", 5)],
)
def test_a_query_goes_on_when_a_file_takes_the_place_of_its_ledger(
    spark: SparkSession, tmp_path: Path, rocksdb, edge, grouping, regime, files
):
    """Then each batch misses its plan, and the reports of its two workers and, on the adaptive edge, two sources."""
    rng = np.random.default_rng(0)
    tables = [
        pa.table({"key": np.where(rng.random(4000) < 0.4, 0, rng.integers(0, 50, 4000)), "v": rng.integers(0, 9, 4000)})
        for _ in range(3)
    ]
    ledger = tmp_path / "ledger"
    df = stream_of(spark, write_files(tmp_path / "in", tables)).repartition(2)
    out = balance(df, "key", grouping, 2, edge=edge, ledger=str(ledger), regime=regime).aggregate(n=Count(), s=Sum("v"))
    done = run(out, tmp_path / "checkpoint", after_batch={0: Replaced(ledger)})
    whole = pa.concat_tables(tables).group_by("key").aggregate([("v", "count"), ("v", "sum")])
    wanted = {
        key: (n, s)
        for key, n, s in zip(*(whole[name].to_pylist() for name in ("key", "v_count", "v_sum")), strict=True)
    }
    assert {key: row for (key,), row in done.last(1).items()} == wanted
    assert [unwritten_in(progress) for progress in done.progress] == [0, files, files]


@pytest.mark.spark
def test_a_chain_goes_on_when_a_file_takes_the_place_of_its_ledger(spark: SparkSession, tmp_path: Path, rocksdb):
    """Its progress counts the tables only, which are decided once a batch."""
    tables = [pa.table({"key": ["a", "b", "a"], "v": [number, 2, 2]}) for number in range(3)]
    ledger = tmp_path / "ledger"
    begun = chain(stream_of(spark, write_files(tmp_path / "in", tables)), 2, ledger=str(ledger))
    answers = begun.then("key", n=Count()).then("v", n=Count()).answers()
    done = run(answers, tmp_path / "checkpoint", after_batch={0: Replaced(ledger)})
    found = {}
    for row in (row for table in done.tables for row in table.to_pylist()):
        each = row[row["operator"]]
        found[row["operator"], each[row["operator"]]] = each["n"]
    assert found == {("key", "a"): 6, ("key", "b"): 3, ("v", 0): 1, ("v", 1): 1, ("v", 2): 7}
    assert [unwritten_in(progress) for progress in done.progress] == [0, 1, 1]
