"""Streams out of files, queries run to their end, and rows that can be compared to the last bit."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

Rows = dict[Any, Any]


def write_files(folder: Path, tables: Sequence[pa.Table]) -> Path:
    """One file a micro-batch, in the order in which a stream takes them: by age."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        path = folder / f"{number:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def stream_of(spark: SparkSession, folder: Path, files: int = 1) -> DataFrame:
    """The files as a stream, so many a micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


@dataclass
class Run:
    """What a query gave: a table a batch, and what Spark says of it."""

    query: str = ""
    tables: list[pa.Table] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)

    def last(self, n_keys: int) -> Rows:
        """The last row of each key."""
        rows: Rows = {}
        for table in self.tables:
            rows |= rows_of(table, n_keys)
        return rows


def run(
    df: DataFrame, checkpoint: Path, mode: str = "update", after_batch: Mapping[int, Callable[[], None]] | None = None
) -> Run:
    """Run a query until its input is used up, and do what is to be done after some of its batches."""
    done = Run()

    def take(batch: DataFrame, number: int) -> None:
        done.tables.append(batch.toArrow())
        (after_batch or {}).get(number, lambda: None)()

    writer = df.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
    query = writer.foreachBatch(take).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    done.query, done.progress = str(query.id), [dict(progress) for progress in query.recentProgress]
    return done


def rows_of(table: pa.Table, n_keys: int) -> Rows:
    """Rows by their key columns, which come first; a key that comes twice is an error."""
    columns = [column.to_pylist() for column in table.columns]
    rows: Rows = {}
    for row in zip(*columns, strict=True):
        exact = tuple(bits(value) for value in row)
        assert exact[:n_keys] not in rows, f"key {row[:n_keys]} comes twice"
        rows[exact[:n_keys]] = exact[n_keys:]
    return rows


def bits(value: Any) -> Any:
    """A value that equals another only if both have the same bits; doubles in a form that can be read, too."""
    if isinstance(value, float):
        return ("double", struct.pack(">d", value), value.hex())
    if isinstance(value, dict):
        return tuple((name, bits(one)) for name, one in value.items())
    if isinstance(value, list):
        return ("list", *(bits(one) for one in value))
    # True == 1 in Python.
    return (type(value).__name__, value) if isinstance(value, bool) else value


def double_of(value: Any) -> Any:
    """The double of which `bits` were taken; anything else unchanged."""
    return struct.unpack(">d", value[1])[0] if isinstance(value, tuple) and value[:1] == ("double",) else value
