"""Event-time windows: rows, watermark, state and late tuples as in plain Spark, batch by batch."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.aggregates import CollectN, Count, Sum
from anabranch.errors import ConfigError
from anabranch.groupings import KeyGrouping, PartialKeyGrouping, WChoices
from anabranch.spark import balance

from .running import Run, rows_of, run, stream_of, write_files

pytestmark = pytest.mark.spark

START = dt.datetime(2026, 1, 1)
WINDOWS = {"tumbling": ("10 seconds",), "sliding": ("20 seconds", "10 seconds")}


def table(number: int) -> pa.Table:
    """Twenty seconds of tuples; from the third micro-batch on some that are a minute late."""
    rng = np.random.default_rng(number)
    seconds = list(number * 20 + rng.random(200) * 20)
    keys: list[str | None] = list(rng.choice(["hot"] * 6 + ["b", "c"], 200))
    if number >= 3:
        seconds += list((number - 3) * 20 + rng.random(20) * 20)
        keys += ["late"] * 20
    keys[7] = None
    times = [START + dt.timedelta(seconds=second) for second in seconds]
    return pa.table({"key": keys, "t": pa.array(times, pa.timestamp("us", "UTC")), "v": [0.25] * len(keys)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_files(tmp_path_factory.mktemp("event-time") / "files", [table(number) for number in range(5)])


def events(spark: SparkSession, folder: Path) -> DataFrame:
    return stream_of(spark, folder).withWatermark("t", "20 seconds")


def watched(done: Run) -> list[tuple[object, ...]]:
    """What Spark says of each batch: watermark, rows in the state, and rows too late for it."""
    found = []
    for progress in done.progress:
        (state,) = progress["stateOperators"]
        watermark = (progress["eventTime"] or {}).get("watermark")
        found.append((progress["batchId"], watermark, state["numRowsTotal"], state["numRowsDroppedByWatermark"]))
    return found


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("tumbling", "append"), ("tumbling", "update"), ("tumbling", "complete"), ("sliding", "append")],
)
def test_windows_are_those_of_plain_spark(spark, folder, tmp_path, kind, mode):
    df, window = events(spark, folder), F.window("t", *WINDOWS[kind])
    plain = df.groupBy("key", window).agg(F.sum("v").alias("sum"), F.count("*").alias("n"))
    ours = balance(df, ["key", window], KeyGrouping(), 3).aggregate(sum=Sum("v"), n=Count())
    wanted, found = run(plain, tmp_path / "plain", mode), run(ours, tmp_path / "ours", mode)
    assert [rows_of(table, 2) for table in found.tables] == [rows_of(table, 2) for table in wanted.tables]
    assert watched(found) == watched(wanted)
    if mode != "complete":
        assert sum(dropped for *_, dropped in watched(found)) > 0
        assert sum(table.num_rows for table in found.tables) > 20


@pytest.mark.parametrize("edge", ["adaptive", "planned"])
def test_split_keys_keep_rows_watermark_and_state(spark, folder, tmp_path, edge):
    """A late key that was split is counted once a part among the late rows: only that figure may differ."""
    df, window = events(spark, folder), F.window("t", "10 seconds")
    plain = df.groupBy(window, "key").agg(F.count("*").alias("n"))
    balanced = balance(df, [window, "key"], WChoices(), 3, edge=edge, ledger=str(tmp_path / "ledger"))
    wanted = run(plain, tmp_path / "plain", "append")
    found = run(balanced.aggregate(n=Count()), tmp_path / "ours", "append")
    assert [rows_of(table, 2) for table in found.tables] == [rows_of(table, 2) for table in wanted.tables]
    assert [state[:3] for state in watched(found)] == [state[:3] for state in watched(wanted)]


def test_a_function_over_arrow_tables_keeps_the_window(spark, folder, tmp_path):
    def count(table: pa.Table) -> pa.Table:
        struct = table["window"].combine_chunks()
        starts, ends = struct.flatten()
        grouped = pa.table({"start": starts, "end": ends}).group_by(["start", "end"]).aggregate([([], "count_all")])
        fields = [grouped[name].combine_chunks().cast(starts.type) for name in ("start", "end")]
        return pa.table({"window": pa.StructArray.from_arrays(fields, ["start", "end"]), "n": grouped["count_all"]})

    df, window = events(spark, folder), F.window("t", "10 seconds")
    plain = df.groupBy(window).agg(F.count("*").alias("n"))
    balanced = balance(df, window, PartialKeyGrouping(), 3)
    schema = "window struct<start:timestamp,end:timestamp>, n bigint"
    found = run(balanced.per_worker(count, schema, {"n": "sum"}), tmp_path / "ours", "append")
    wanted = run(plain, tmp_path / "plain", "append")
    assert [rows_of(table, 1) for table in found.tables] == [rows_of(table, 1) for table in wanted.tables]


def test_spark_marks_windows_and_watermarks_by_the_metadata_that_is_put_back(spark, folder):
    """These keys are internal to Spark. Where this fails, `restore_metadata` and `event_time` need new ones."""
    df = events(spark, folder)
    window = df.select(F.window("t", "10 seconds")).schema["window"].metadata
    assert window == {"spark.watermarkDelayMs": 20_000, "spark.timeWindow": True}
    assert df.schema["t"].metadata == {"spark.watermarkDelayMs": 20_000}
    ours = balance(df, F.window("t", "10 seconds"), PartialKeyGrouping(), 3).aggregate(n=Count())
    assert ours.schema["window"].metadata == window


def test_without_the_metadata_append_mode_would_be_refused(spark, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("anabranch.spark.columns.keys.restore_metadata", lambda df, *_: df)
    ours = balance(events(spark, folder), F.window("t", "10 seconds"), KeyGrouping(), 2).aggregate(n=Count())
    with pytest.raises(Exception, match="watermark"):
        run(ours, tmp_path / "checkpoint", "append")


def test_session_windows_are_refused(spark, folder):
    df = events(spark, folder)
    with pytest.raises(ConfigError, match=r"session_window is a session window.*use tumbling or sliding windows"):
        balance(df, ["key", F.session_window("t", "10 seconds")], PartialKeyGrouping(), 2)
    batch = spark.read.parquet(str(folder))
    with pytest.raises(ConfigError, match="session window"):
        balance(batch, F.session_window("t", "10 seconds").alias("visit"), PartialKeyGrouping(), 2)


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_aggregates_that_only_python_merges_have_windows_too(spark, folder, tmp_path, mode):
    """The ten smallest values of a window are the same whether Spark or the aggregate merges them."""
    df, window = events(spark, folder), F.window("t", "10 seconds")
    df = df.withColumn("late_by", F.date_format("t", "ss.SSSSSS"))
    plain = df.groupBy("key", window).agg(
        F.slice(F.sort_array(F.collect_list("late_by")), 1, 10).alias("few"), F.count("*").alias("n")
    )
    balanced = balance(df, ["key", window], PartialKeyGrouping(), 3)
    ours = balanced.aggregate(few=CollectN("late_by", 10), n=Count())
    wanted, found = run(plain, tmp_path / "plain", mode), run(ours, tmp_path / "ours", mode)
    assert [rows_of(table, 2) for table in found.tables] == [rows_of(table, 2) for table in wanted.tables]
    assert sum(table.num_rows for table in found.tables) > 20


def test_the_resident_regime_refuses_windows(spark, folder):
    with pytest.raises(ConfigError, match="the resident regime does not know event time"):
        balance(
            events(spark, folder), F.window("t", "10 seconds"), PartialKeyGrouping(), 2, regime="resident"
        ).aggregate(n=Count())
