"""States on slots are found again after a restart, whatever the session's settings are by then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch.aggregates import Aggregate, CollectN, Count, Max, Sum, TopK
from anabranch.chain import answers_of, chain
from anabranch.groupings import PartialKeyGrouping, WChoices
from anabranch.spark import Balanced, balance
from anabranch.spark.merging.fingerprint import refusal

from .running import run, stream_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("rocksdb")]

PARTITIONS = "spark.sql.shuffle.partitions"
ZONE, LARGE = "spark.sql.session.timeZone", "spark.sql.execution.arrow.useLargeVarTypes"
KEYS = [f"key {i % 40}" for i in range(400)]


@pytest.fixture
def partitions(spark) -> Iterator[None]:
    before = spark.conf.get(PARTITIONS)
    yield
    spark.conf.set(PARTITIONS, before)


@pytest.fixture
def settings(spark) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in (ZONE, LARGE)}
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def add_file(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"key": KEYS, "v": KEYS}), folder / f"{number:03d}.parquet")


@pytest.mark.parametrize("regime", ["batch", "resident"])
def test_another_number_of_partitions_loses_no_state(spark, partitions, tmp_path, regime):
    folder = tmp_path / "files"
    for number, n_partitions in enumerate((2, 3, 1)):
        spark.conf.set(PARTITIONS, str(n_partitions))
        add_file(folder, number)
        balanced = balance(stream_of(spark, folder), "key", PartialKeyGrouping(), 3, regime=regime)
        done = run(balanced.aggregate(n=Count(), top=TopK("v", 1)), tmp_path / "checkpoint")
        rows = {row["key"]: row for table in done.tables for row in table.to_pylist()}
        assert {row["n"] for row in rows.values()} == {10 * (number + 1)}
        assert len(rows) == 40


def test_another_number_of_workers_is_refused_while_states_are_resident(spark, tmp_path):
    folder = tmp_path / "files"
    add_file(folder, 0)

    def start(n_workers: int) -> dict[str, int]:
        balanced = balance(
            stream_of(spark, folder), "key", PartialKeyGrouping(), n_workers, regime="resident", flush_every=2
        )
        done = run(balanced.aggregate(n=Count()), tmp_path / "checkpoint")
        return {row["key"]: row["n"] for table in done.tables for row in table.to_pylist()}

    assert start(4) == dict.fromkeys(KEYS, 10)
    add_file(folder, 1)
    with pytest.raises(Exception, match="lie on 4 workers, and the query now has 2; go on with n_workers=4"):
        start(2)
    assert start(4) == dict.fromkeys(KEYS, 20)


@pytest.mark.parametrize("edge", ["adaptive", "planned"])
def test_a_bounded_run_hands_on_what_workers_hold_before_it_ends(spark, tmp_path, edge):
    """In one batch more; until then nothing comes out but every third batch."""
    folder, ledger = tmp_path / "files", str(tmp_path / "ledger")
    for number in range(2):
        add_file(folder, number)
    for count in (20, 40):
        balanced = balance(
            stream_of(spark, folder), "key", WChoices(), 3, edge=edge, ledger=ledger, regime="resident", flush_every=10
        )
        done = run(balanced.aggregate(n=Count()), tmp_path / "checkpoint")
        assert [table.num_rows for table in done.tables] == [0, 0, 40]
        assert {row["n"] for row in done.tables[-1].to_pylist()} == {count}
        for number in (2, 3):
            add_file(folder, number)


def test_a_watermark_of_ones_own_is_left_alone_where_states_are_resident(spark, tmp_path):
    """One more would let Spark take the lower of both, or, as a setting has it, the higher."""
    folder = tmp_path / "files"
    numbers(folder, 0)
    df = stream_of(spark, folder).withWatermark("t", "1 second").dropDuplicatesWithinWatermark(["key", "v"])
    balanced = balance(df.select("key", "v"), "key", PartialKeyGrouping(), 2, regime="resident", flush_every=2)
    done = run(balanced.aggregate(n=Count()), tmp_path / "checkpoint")
    assert [progress["eventTime"]["watermark"] for progress in done.progress] == ["1970-01-01T00:00:00.000Z"]


@pytest.mark.parametrize("regime", ["batch", "resident"])
def test_another_time_zone_and_large_types_find_the_states(spark, settings, tmp_path, regime):
    folder = tmp_path / "files"
    folder.mkdir()
    times = pa.array(np.arange(6) // 3 * 3_600_000_000, pa.timestamp("us", "UTC"))
    rows = pa.table({"key": times, "t": times, "v": ["a", "b", "b"] * 2, "blob": [b"x", b"y", b"y"] * 2})
    for number, (zone, large) in enumerate([("UTC", "false"), ("Asia/Kathmandu", "true"), ("Europe/Zurich", "false")]):
        spark.conf.set(ZONE, zone)
        spark.conf.set(LARGE, large)
        pq.write_table(rows, folder / f"{number}.parquet")
        balanced = balance(stream_of(spark, folder), "key", PartialKeyGrouping(), 2, regime=regime, flush_every=1)
        aggregated = balanced.aggregate(t=TopK("t", 1), v=TopK("v", 1), blob=CollectN("blob", 1))
        done = run(aggregated, tmp_path / "checkpoint")
        found = {row["key"].timestamp(): row for table in done.tables for row in table.to_pylist()}
        assert sorted(found) == [0, 3600]
        for key, row in found.items():
            assert [(each["value"].timestamp(), each["count"]) for each in row["t"]] == [(key, 3 * (number + 1))]
            assert row["v"] == [{"value": "b", "count": 2 * (number + 1)}] and row["blob"] == [b"x"]


def numbers(folder: Path, number: int) -> None:
    """Ten rows of a hundred each."""
    folder.mkdir(exist_ok=True)
    rows = {"key": ["a"] * 10, "v": [100] * 10, "w": [1] * 10, "t": pa.array([0] * 10, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), folder / f"{number:03d}.parquet")


class Query:
    """A query on one folder and checkpoint, started again and again, each time with a file more."""

    def __init__(self, spark: SparkSession, folder: Path, windows: bool = False, **settings: Any) -> None:
        self.spark, self.folder, self.windows, self.settings, self.files = spark, folder, windows, settings, 0

    def start(self, *columns: str, **aggregates: Aggregate) -> dict[str, Any]:
        """The answers for the only key, those that are selected."""
        balanced = self.balanced()
        out = balanced.aggregate(**aggregates)
        done = run(out.select(*columns) if columns else out.drop("key", "window"), self.folder / "checkpoint")
        return done.tables[-1].to_pylist()[-1]

    def balanced(self) -> Balanced:
        numbers(self.folder / "files", self.files)
        self.files += 1
        df = stream_of(self.spark, self.folder / "files")
        if not self.windows:
            return balance(df, "key", PartialKeyGrouping(), 2, **self.settings)
        key = ["key", F.window("t", "10 seconds")]
        return balance(df.withWatermark("t", "1 minute"), key, PartialKeyGrouping(), 2, **self.settings)

    def refuses(self, **aggregates: Aggregate) -> None:
        """A query with these is refused, in words that we turn into one line."""
        with pytest.raises(Exception, match="STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE") as caught:
            self.start(**aggregates)
        assert refusal(str(caught.value)) is not None


def test_aggregates_in_another_order_go_on_and_others_are_refused(spark, tmp_path):
    query = Query(spark, tmp_path)
    assert query.start(n=Count(), s=Sum("v")) == {"n": 10, "s": 1000}
    assert query.start(s=Sum("v"), n=Count()) == {"s": 2000, "n": 20}
    query.refuses(n=Sum("v"), s=Count())
    query.refuses(n=Count(), s=Max("v"))
    query.refuses(n=Count(), s=Sum("w"))


def test_states_do_not_depend_on_what_is_selected(spark, tmp_path):
    """Spark keeps no states of columns that are selected nowhere: another select would read those of another column."""
    query = Query(spark, tmp_path)
    assert query.start("n", n=Count(), s=Sum("v")) == {"n": 10}
    assert query.start("s", n=Count(), s=Sum("v")) == {"s": 2000}


def test_aggregates_of_windows_in_another_order_go_on_and_others_are_refused(spark, tmp_path):
    query = Query(spark, tmp_path, windows=True)
    assert query.start("v", v=CollectN("v", 11), w=CollectN("w", 3)) == {"v": [100] * 10}
    assert query.start(w=CollectN("w", 3), v=CollectN("v", 11)) == {"w": [1] * 3, "v": [100] * 11}
    query.refuses(v=CollectN("w", 11), w=CollectN("v", 3))


@pytest.mark.parametrize("regime", ["batch", "resident"])
def test_aggregates_on_slots_in_another_order_go_on_and_others_are_refused(spark, tmp_path, regime):
    query = Query(spark, tmp_path, regime=regime)
    assert query.start(n=Count(), top=TopK("v", 1)) == {"n": 10, "top": [{"value": 100, "count": 10}]}
    assert query.start(top=TopK("v", 1), n=Count()) == {"top": [{"value": 100, "count": 20}], "n": 20}
    query.refuses(n=Count(), top=TopK("w", 1))


def test_what_a_function_returns_is_refused_where_it_is_merged_otherwise(spark, tmp_path):
    query = Query(spark, tmp_path)

    def start(**merge: str) -> dict[str, Any]:
        def summed(rows: pa.Table) -> pa.Table:
            return pa.table({"key": ["a"], "most": [100], "n": [rows.num_rows]})

        schema = ", ".join(["key string", *(f"{name} long" for name in merge)])
        out = query.balanced().per_worker(summed, schema, merge)
        return run(out.drop("key"), tmp_path / "checkpoint").tables[-1].to_pylist()[-1]

    assert start(n="sum", most="max") == {"n": 10, "most": 100}
    assert start(most="max", n="sum") == {"most": 100, "n": 20}
    with pytest.raises(Exception, match="STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"):
        start(most="max", n="max")


def test_aggregates_of_a_chain_in_another_order_go_on_and_others_are_refused(spark, tmp_path):
    """Without a ledger, which would know the operators and their keys."""

    def start(key: str = "v", **aggregates: Aggregate) -> dict[str, Any]:
        numbers(tmp_path / "files", len(list(tmp_path.glob("files/*"))))
        begun = chain(stream_of(spark, tmp_path / "files"), 2).then("key", **aggregates)
        answers = answers_of(begun.then(key, "last", n=Count()).answers(), "key")
        return run(answers.drop("key"), tmp_path / "checkpoint").tables[-1].to_pylist()[-1]

    assert start(n=Count(), s=Sum("v")) == {"n": 10, "s": 1000}
    assert start(s=Sum("v"), n=Count()) == {"s": 2000, "n": 20}
    for other in ({"n": Sum("v"), "s": Count()}, {"n": Count(), "s": Sum("v"), "key": "w"}):
        with pytest.raises(Exception, match="STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE") as caught:
            start(**other)
        assert refusal(str(caught.value)) is not None
