from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from anabranch.apps import ConsoleSink, FolderSink, MemorySink, latest
from anabranch.errors import ConfigError


def frame(spark: SparkSession, **counts: int) -> DataFrame:
    return spark.createDataFrame(list(counts.items()), "word string, count long")


def test_a_folder_belongs_to_one_checkpoint(tmp_path: Path):
    sink = FolderSink(str(tmp_path / "out"))
    sink.claim("first")
    sink.claim("first")
    with pytest.raises(ConfigError, match="output of another query"):
        sink.claim("second")


def test_a_folder_with_files_of_others_is_refused(tmp_path: Path):
    (tmp_path / "part-0.parquet").write_text("")
    with pytest.raises(ConfigError, match="choose an empty folder"):
        FolderSink(str(tmp_path)).claim("first")


@pytest.mark.spark
def test_a_batch_that_is_written_again_replaces_its_own_files_alone(spark: SparkSession, tmp_path: Path):
    sink = FolderSink(str(tmp_path))
    sink.claim("first")
    sink.write(frame(spark, a=1, b=1), 0)
    sink.write(frame(spark, a=2, c=7), 1)
    sink.write(frame(spark, a=3), 1)
    assert sink.batches() == [0, 1]
    read = spark.read.parquet(str(tmp_path))
    assert sorted(map(tuple, read.collect())) == [("a", 1, 0), ("a", 3, 1), ("b", 1, 0)]
    assert {row.word: row["count"] for row in latest(spark, str(tmp_path), "word").collect()} == {"a": 3, "b": 1}


@pytest.mark.spark
def test_what_a_crash_left_half_written_is_neither_read_nor_in_the_way(spark: SparkSession, tmp_path: Path):
    sink = FolderSink(str(tmp_path))
    sink.write(frame(spark, a=1), 0)
    left = tmp_path / "_anabranch_writing" / "batch=1" / "_temporary" / "0"
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_bytes(b"half")
    assert spark.read.parquet(str(tmp_path)).count() == 1
    sink.write(frame(spark, b=2), 1)
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path)).collect())) == [("a", 1, 0), ("b", 2, 1)]


@pytest.mark.spark
def test_the_console_shows_the_heaviest_rows(spark: SparkSession):
    shown: list[str] = []
    ConsoleSink("count", show=shown.append, rows=2).write(frame(spark, a=1, bb=30, c=2), 7)
    ConsoleSink("count", show=shown.append, rows=2).write(frame(spark, a=1), 8)
    assert shown == ["batch 7, the first 2 rows\nword  count\nbb    30\nc     2\n", "batch 8\nword  count\na     1\n"]


@pytest.mark.spark
def test_memory_keeps_the_last_writing_of_a_batch(spark: SparkSession):
    sink = MemorySink()
    sink.write(frame(spark, a=1, b=1), 0)
    sink.write(frame(spark, a=5), 1)
    sink.write(frame(spark, a=2), 1)
    assert {word: row["count"] for word, row in sink.latest("word").items()} == {"a": 2, "b": 1}
