"""End-to-end latency of Kafka → Spark → Kafka, from the timestamps of both topics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Latency:
    """Milliseconds from a record's timestamp to when the last answer of its batch was written, over all records."""

    milliseconds: NDArray[np.float64]

    def figures(self) -> tuple[float, float, float, float]:
        """Mean and the 50th, 95th and 99th percentile."""
        p50, p95, p99 = np.percentile(self.milliseconds, [50, 95, 99])
        return float(self.milliseconds.mean()), float(p50), float(p95), float(p99)

    def __str__(self) -> str:
        mean, p50, p95, p99 = self.figures()
        return f"latency mean {mean:,.0f} ms, p50 {p50:,.0f} ms, p95 {p95:,.0f} ms, p99 {p99:,.0f} ms"


def latency(spark: SparkSession, servers: str, source: str, sink: str, checkpoint: Path) -> Latency:
    """Latency of a finished run of `anabranch run` from the topic `source` to the topic `sink`.

    When a batch was written is told by the newest timestamp of its answers. A batch without answers (all malformed) is
    left out.
    """
    batch = F.from_json(F.col("value").cast("string"), "batch long")["batch"]
    written = _topic(spark, servers, sink).groupBy(batch.alias("batch")).agg(F.max(_ms()).alias("ms"))
    return until(spark, servers, source, checkpoint, {row["batch"]: row["ms"] for row in written.collect()})


def until(spark: SparkSession, servers: str, source: str, checkpoint: Path, ends: Mapping[int, float]) -> Latency:
    """Latency of the records of a topic whose batches ended at these milliseconds since 1970.

    Which batch a record was in is told by the offsets in the checkpoint, which has the last hundred batches.
    """
    records = _topic(spark, servers, source).select("partition", "offset", _ms().alias("ms")).toArrow()
    partition, offset, ms = (records[name].to_numpy() for name in ("partition", "offset", "ms"))
    batches = _batches(partition, offset, source, checkpoint)
    known = np.isin(batches, list(ends))
    done = np.array([ends[b] for b in batches[known]], dtype=np.float64)
    return Latency(done - ms[known])


def _topic(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    return spark.read.format("kafka").options(**options).load()


def _ms() -> F.Column:  # type: ignore[name-defined]
    return F.unix_millis("timestamp")


def _batches(
    partition: NDArray[np.int32], offset: NDArray[np.int64], topic: str, checkpoint: Path
) -> NDArray[np.int64]:
    """The batch of each record; -1 for those behind the last one."""
    found = np.full(len(offset), -1)
    numbers = sorted((int(file.name) for file in (checkpoint / "offsets").glob("[0-9]*")), reverse=True)
    for number in numbers:
        ends = json.loads((checkpoint / "offsets" / str(number)).read_text().splitlines()[-1])[topic]
        for name, end in ends.items():
            # From the last batch to the first: what a batch ends before, an earlier one may have had.
            found[(partition == int(name)) & (offset < end)] = number
    return found
