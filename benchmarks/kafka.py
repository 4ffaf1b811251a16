"""Kafka as source: against files, under a keyed topic, and with malformed records.

    .venv/bin/python benchmarks/kafka.py [--only PART] [--write] [--quick]

Starts a broker of its own (jars are fetched once into .kafka/). 16 workers on local[16]. --quick is a trial at small
sizes; --write stores the parts that ran in benchmarks/results/kafka.md. Exits 1 where a claim fails.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).parents[1]))

from dev.kafka import Broker, connector_jars

from anabranch.aggregates import Count
from anabranch.apps import Balancing, Checkpoint, FileSource, FolderSink, KafkaSource, Pipeline, Sink, Source, WordCount
from anabranch.apps.balancing import emulating
from anabranch.apps.kafka.address import KafkaAddress
from anabranch.apps.kafka.produce import Produce
from anabranch.groupings import Fish, Grouping, KeyGrouping, PartialKeyGrouping, Spillway
from anabranch.spark import balance
from anabranch.streams import Zipf
from cells import Claims, header, prose, row, run_parts
from dev import latency, topics
from spark_data import quiet_session
from spark_skew import PLAIN, behind_repartition

N_WORKERS = 16
RESULTS = Path(__file__).parent / "results" / "kafka.md"
WORK_US = 50
PARTITIONS = 4
WARM_UP = 3
KEYED: dict[str, tuple[Grouping, str]] = {
    "local": (KeyGrouping(), "local"),
    "key, planned": (KeyGrouping(), "planned"),
    "partial-key, adaptive": (PartialKeyGrouping(), "adaptive"),
    "fish, adaptive": (Fish(), "adaptive"),
    "spillway, adaptive": (Spillway(), "adaptive"),
    "spillway, planned": (Spillway(), "planned"),
}


@dataclass(frozen=True)
class Sizes:
    """Tuples a batch and batches against files; backlog, rate and seconds of the keyed topic; good and bad records."""

    batches: dict[int, int]
    repeats: int
    backlog: int
    backlog_batch: int
    rate: int
    seconds: int
    good: int
    bad: int


FULL = Sizes({100_000: 8, 200_000: 6, 400_000: 5}, 4, 1_200_000, 300_000, 40_000, 20, 1_000_000, 100_000)
QUICK = Sizes({20_000: 3}, 1, 60_000, 20_000, 5_000, 5, 10_000, 1000)


@dataclass(frozen=True)
class Nowhere(Sink):
    """Computes the rows and drops them."""

    def write(self, rows: DataFrame, batch: int) -> None:
        rows.write.format("noop").mode("overwrite").save()


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="anabranch-kafka-") as folder:
        yield Path(folder)


def words(n: int, z: float = 1.4) -> Iterator[list[str]]:
    for batch in Zipf(n_tuples=n, n_keys=100_000, z=z).batches(size=10_000, stop=n):
        yield [str(key) for key in batch["key"].to_pylist()]


def fill(broker: Broker, topic: str, values: Iterator[bytes]) -> None:
    """Value i to partition i mod 4."""
    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 20, "queue.buffering.max.messages": 10**6})
    for number, value in enumerate(values):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError(f"not every record reached {topic}")


def throughput(spark: SparkSession, source: Source) -> tuple[float, int]:
    """Tuples a second of word-count behind this source, its first batch left out; and all tuples."""
    with scratch() as folder:
        pipeline = Pipeline(
            WordCount(), source, Nowhere(), Checkpoint(str(folder / "checkpoint")), Balancing(n_workers=N_WORKERS),
            once=True,
        )  # fmt: skip
        query = pipeline.start(spark)
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"]]
        busy = sum(p["durationMs"]["triggerExecution"] for p in progress[1:]) / 1000
        return sum(p["numInputRows"] for p in progress[1:]) / busy, sum(p["numInputRows"] for p in progress)


def against_files(
    spark: SparkSession, broker: Broker, batch: int, batches: int, repeats: int
) -> dict[str, list[float]]:
    """Tuples a second of the same JSON values from files and from a topic, in turn; the first ones leave code warm."""
    n = batch * batches
    topic = topics.create(broker.servers, f"same-{batch}", PARTITIONS)
    with scratch() as folder:
        lines: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        done = 0

        def values() -> Iterator[bytes]:
            nonlocal done
            for number, word in enumerate(word for part in words(n) for word in part):
                value = json.dumps({"word": word}).encode()
                lines[number % PARTITIONS].append(value)
                if (number + 1) % batch == 0:
                    for partition, held in enumerate(lines):
                        path = folder / f"{done:03d}-{partition}.json"
                        path.write_bytes(b"\n".join(held) + b"\n")
                        held.clear()
                    done += 1
                    time.sleep(1.1)  # files are read in the order of their times, which are whole seconds
                yield value

        fill(broker, topic, values())
        sources: dict[str, Callable[[], Source]] = {
            "files": lambda: FileSource(str(folder), "json", PARTITIONS),
            "Kafka": lambda: KafkaSource(f"kafka://{broker.servers}/{topic}", batch=batch),
        }
        found: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(WARM_UP + repeats):
            for name, make in sources.items():
                speed, tuples = throughput(spark, make())
                assert tuples == n, (name, tuples, n)
                found[name].append(speed)
                print(f"{name}, {batch:,} a batch: {speed:,.0f} tuples/s", flush=True)
    return {name: speeds[WARM_UP:] for name, speeds in found.items()}


def files_part(spark: SparkSession, broker: Broker, sizes: Sizes, claims: Claims) -> list[str]:
    """Part 1: the same JSON values from a topic and from files."""
    table = []
    for batch, batches in sizes.batches.items():
        found = against_files(spark, broker, batch, batches, sizes.repeats)
        ratio = statistics.median(found["Kafka"]) / statistics.median(found["files"])
        holds = claims.check(f"Kafka over files, {batch:,} a batch", ratio >= 0.8)
        speeds = (
            f"{statistics.median(of):,.0f} ({min(of):,.0f} – {max(of):,.0f})" for of in (found["files"], found["Kafka"])
        )
        table.append(row(f"{batch:,}", *speeds, f"{ratio:.2f}", holds))
    return [
        *prose(
            f"word-count with Spillway on {N_WORKERS} workers, JSON values in {PARTITIONS} partitions or files a batch, the first "
            f"batch left out; tuples/s, medians (and range) of {sizes.repeats} runs of each in turn, after {WARM_UP} to warm up, for "
            "Java compiles that long. Both count malformed values. What a batch costs whatever its size is the same for "
            "both, so the larger the batch, the more it shows that Spark reads JSON from files faster than from records."
        ),
        *header("tuples a batch", "files", "Kafka", "Kafka over files", "≥ 0.8"),
        *table,
        "",
    ]


def keyed_query(name: str, df: DataFrame, ledger: str) -> DataFrame:
    if name == PLAIN:
        return behind_repartition(df, WORK_US, ledger)
    grouping, edge = KEYED[name]
    row_id = ("partition", "offset") if edge == "planned" else ()
    balanced = balance(df, "key", grouping, N_WORKERS, edge=edge, ledger=ledger, row_id=row_id)
    return emulating(balanced, WORK_US).aggregate(count=Count())


def topic_stream(spark: SparkSession, broker: Broker, topic: str, batch: int) -> DataFrame:
    options = {"kafka.bootstrap.servers": broker.servers, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=batch).load()
    return rows.select(F.col("key").cast("string").alias("key"), "partition", "offset")


def started(spark: SparkSession, broker: Broker, topic: str, batch: int, name: str, folder: Path, *, once: bool) -> Any:
    counts = keyed_query(name, topic_stream(spark, broker, topic, batch), str(folder / "ledger"))
    writer = counts.writeStream.outputMode("update").foreachBatch(
        lambda rows, _: rows.write.format("noop").mode("overwrite").save()
    )
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return (writer.trigger(availableNow=True) if once else writer).start()


def produce(broker: Broker, topic: str, tuples: int, rate: float) -> None:
    stream = Zipf(n_tuples=tuples, n_keys=100_000, z=1.4)
    address = KafkaAddress(broker.servers, topic)
    done = Produce(address, stream, rate, "text", keyed=True, partitions=PARTITIONS).run()
    assert not done.failed, done


def saturated(spark: SparkSession, broker: Broker, topic: str, sizes: Sizes, name: str) -> float:
    """Tuples a second where there is always enough to do, the first batch left out."""
    with scratch() as folder:
        query = started(spark, broker, topic, sizes.backlog_batch, name, folder, once=True)
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p["numInputRows"]]
    assert sum(p["numInputRows"] for p in progress) == sizes.backlog, name
    busy = sum(p["durationMs"]["triggerExecution"] for p in progress[1:]) / 1000
    return float(sum(p["numInputRows"] for p in progress[1:]) / busy)


def live(spark: SparkSession, broker: Broker, sizes: Sizes, name: str) -> latency.Latency:
    """Latency at a steady rate, those records left out that came in the first third: the query starts meanwhile."""
    topic = topics.create(broker.servers, "live-" + "".join(c for c in name if c.isalpha()), PARTITIONS)
    n = sizes.rate * sizes.seconds
    with scratch() as folder:
        query = started(spark, broker, topic, 10 * sizes.rate, name, folder, once=False)
        sender = Thread(target=produce, args=(broker, topic, n, sizes.rate))
        sender.start()
        while sum(p["numInputRows"] for p in query.recentProgress) < n:
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
            time.sleep(0.1)
        sender.join()
        progress = [p for p in query.recentProgress if p["numInputRows"]]
        query.stop()
        ends = {p["batchId"]: _ended_ms(p) for p in progress}
        found = latency.until(spark, broker.servers, topic, folder / "checkpoint", ends)
    return latency.Latency(found.milliseconds[len(found.milliseconds) // 3 :])


def _ended_ms(progress: Any) -> float:
    began = datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()
    return began * 1000 + progress["durationMs"]["triggerExecution"]


def keyed_part(spark: SparkSession, broker: Broker, sizes: Sizes, claims: Claims) -> list[str]:
    """Part 2: a topic whose partitions are made by the skewed key."""
    produce(broker, "backlog", sizes.backlog, 0.0)
    names = [PLAIN, *KEYED]
    speeds, delays = {}, {}
    for name in names:
        speeds[name] = saturated(spark, broker, "backlog", sizes, name)
        delays[name] = live(spark, broker, sizes, name)
        print(f"{name}: {speeds[name]:,.0f} tuples/s, {delays[name]}", flush=True)
    best = max(speeds[name] for name in names if name.startswith("spillway"))
    faster = claims.check("Spillway over plain Spark", best >= 2 * speeds[PLAIN])
    table = [
        row(
            name, f"{speeds[name]:,.0f}", f"{speeds[name] / speeds[PLAIN]:.2f}",
            *(f"{value:,.0f}" for value in delays[name].figures()),
        )
        for name in names
    ]  # fmt: skip
    return [
        *prose(
            f"Zipf z=1.4, 10⁵ keys, {PARTITIONS} partitions by key, {WORK_US} µs of emulated work a tuple, {N_WORKERS} "
            f"workers. Throughput: a backlog of {sizes.backlog:,} records, {sizes.backlog_batch:,} a batch, the first batch "
            f"left out. Latency: records sent at {sizes.rate:,} a second for {sizes.seconds} s, from a record's timestamp to "
            "the end of its batch in milliseconds, the first third of each partition's records left out."
        ),
        *header("variant", "tuples/s", "× plain", "mean", "p50", "p95", "p99"), *table,
        "", f"Spillway at least twice as fast as plain Spark: {faster}.", "",
    ]  # fmt: skip


def malformed_part(spark: SparkSession, broker: Broker, sizes: Sizes, claims: Claims) -> list[str]:
    """Part 3: malformed records among good ones."""
    topic = topics.create(broker.servers, "mixed", PARTITIONS)
    every = sizes.good // sizes.bad
    bad = (b"", b"{", b"[1, 2]", b'{"words": "x"}', b"\xff\xfe", b'{"word": null}', b"word")

    def values() -> Iterator[bytes]:
        for number, word in enumerate(word for part in words(sizes.good) for word in part):
            yield json.dumps({"word": word}).encode()
            if number % every == 0:
                yield bad[number // every % len(bad)]

    fill(broker, topic, values())
    with scratch() as folder:
        pipeline = Pipeline(
            WordCount(), KafkaSource(f"kafka://{broker.servers}/{topic}", batch=sizes.good // 4),
            FolderSink(str(folder / "sink")), Checkpoint(str(folder / "checkpoint")), Balancing(n_workers=N_WORKERS),
            once=True, dead_letters=FolderSink(str(folder / "dead")),
        )  # fmt: skip
        began = time.perf_counter()
        pipeline.run(spark)
        seconds = time.perf_counter() - began
        counted = sum(row["count"] for row in _latest(spark, folder / "sink"))
        dead = pq.read_table(folder / "dead")
    reasons = sorted(dead["reason"].value_counts().to_pylist(), key=lambda one: -one["counts"])
    return [
        *prose(
            f"{sizes.good:,} good JSON records and {sizes.bad:,} malformed ones of {len(bad)} kinds between them; all took "
            f"{seconds:.1f} s."
        ),
        *header("what", "sent", "found", "equal"),
        row("good records, counted", f"{sizes.good:,}", f"{counted:,}", claims.check("good", counted == sizes.good)),
        row(
            "malformed records, in the dead letters", f"{sizes.bad:,}", f"{len(dead):,}",
            claims.check("malformed", len(dead) == sizes.bad),
        ),
        "", "Reasons: " + ", ".join(f"{one['values']} ({one['counts']:,})" for one in reasons) + ".", "",
    ]  # fmt: skip


def _latest(spark: SparkSession, sink: Path) -> list[Any]:
    from anabranch.apps.sinks.sink import latest

    return latest(spark, str(sink), "word").collect()


PARTS = {
    "files": ("Against files", files_part),
    "keyed": ("A topic keyed by the skewed key", keyed_part),
    "malformed": ("Malformed records", malformed_part),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(PARTS), help="one part")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    jars = ",".join(str(jar) for jar in sorted(connector_jars().glob("*.jar")))
    spark = quiet_session(f"local[{N_WORKERS}]", spark_jars=jars)
    head = ["# Kafka", "", "`.venv/bin/python benchmarks/kafka.py --write`"]
    chosen = [PARTS[options.only]] if options.only else PARTS.values()
    with scratch() as folder, Broker(folder / "broker") as broker:
        parts = {title: partial(part, spark, broker, sizes) for title, part in chosen}
        return run_parts(RESULTS, head, parts, spark.version, options.write)


if __name__ == "__main__":
    sys.exit(main())
