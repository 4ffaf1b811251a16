"""Locality on a cluster: bytes that cross from host to host before and after the tables change, by Spark's own counters.

    .venv/bin/python benchmarks/locality_cluster.py [--write] [--quick] [--links]

Starts a standalone cluster of three hosts, each a loopback address with one core. Pairs of equal keys with a chance of
0.8 go through two operators; keys go by hash at first, and every few batches the manager may change the tables. --quick
is a trial at small sizes; --write stores the figures in benchmarks/results/locality_cluster.md. --links puts the hosts
into network namespaces, behind links of 1 Gb/s and then of 100 Mb/s, which needs Linux and root; its figures go to
benchmarks/results/locality_links.md. Exits 1 where a claim fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).parents[1]))

from dev.cluster import Cluster
from dev.links import Links

from anabranch.aggregates import Count
from anabranch.chain import Reconfiguration, chain
from anabranch.chain.spark.metrics import chain_metrics
from anabranch.spark.progress import BatchMetrics
from anabranch.streams import CorrelatedPairs
from cells import Claims, header, prose, row, write
from spark_data import quiet_session

HOSTS = 3
RATES = {"1gbit": "1 Gb/s", "100mbit": "100 Mb/s"}
LOCALITY, VALUES = 0.8, 300
# The stages of a batch: source, first operator, second operator, aggregator. The hop is what the third one reads.
STAGES, HOP = 4, 2


@dataclass(frozen=True)
class Sizes:
    """Of a run: tuples in a batch, batches from one decision to the next, decisions, bytes of padding."""

    tuples: int
    every: int
    periods: int
    paddings: tuple[int, ...]


FULL, QUICK = Sizes(30_000, 5, 3, (0, 4_000)), Sizes(3_000, 2, 2, (4_000,))


@dataclass
class Batch:
    """What Spark and the workers say of one micro-batch."""

    metrics: BatchMetrics
    remote: int
    local: int


@dataclass
class Answers:
    """The sink: what both operators say, and the batches after which that was not what was sent."""

    expected: dict[str, Counter[int]] = field(default_factory=lambda: {"key": Counter(), "second": Counter()})
    found: dict[str, dict[int, int]] = field(default_factory=lambda: {"key": {}, "second": {}})
    wrong: list[int] = field(default_factory=list)


def write_pairs(folder: Path, sizes: Sizes) -> Path:
    """Files of a micro-batch, one a host, in the order in which a stream takes them: by age."""
    folder.mkdir()
    n_batches = sizes.every * sizes.periods
    stream = CorrelatedPairs(n_tuples=sizes.tuples * n_batches, n_values=VALUES, locality=LOCALITY)
    for number, batch in enumerate(stream.batches(seed=1, size=sizes.tuples // HOSTS)):
        path = folder / f"{number:03d}.parquet"
        pq.write_table(pa.Table.from_batches([batch]), path)
        os.utime(path, (1_700_000_000 + number,) * 2)
    return folder


def run(spark: SparkSession, files: Path, folder: Path, every: int, padding: int) -> tuple[list[Batch], Answers]:
    """Run the chain over all files; the padding is made where they are read, and read by the second operator."""
    folder.mkdir()
    rows = spark.readStream.schema("key long, second long").option("maxFilesPerTrigger", HOSTS).parquet(str(files))
    rows = rows.withColumn("padding", F.repeat(F.lit("x"), F.lit(padding)))
    begun = chain(rows, HOSTS, ledger=str(folder / "ledger"), reconfiguration=Reconfiguration(every=every))
    answers = begun.then("key", n=Count()).then("second", n=Count("padding")).answers()
    sink = Answers()

    def take(batch: DataFrame, number: int) -> None:
        for one in batch.collect():
            sink.found[one.operator][one[one.operator][0]] = one[one.operator].n
        sent = pq.read_table(sorted(files.glob("*.parquet"))[HOSTS * number : HOSTS * (number + 1)])
        for key, expected in sink.expected.items():
            expected.update(sent[key].to_pylist())
            if sink.found[key] != expected and number not in sink.wrong:
                sink.wrong.append(number)

    writer = answers.writeStream.outputMode("update").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination()
    bytes_read = hop_bytes(spark, str(query.runId))
    batches = []
    for progress in query.recentProgress:
        if progress["numInputRows"]:
            metrics = chain_metrics(str(folder / "ledger"), progress)
            assert metrics is not None, "no worker left a report"
            batches.append(Batch(metrics, *bytes_read[metrics.batch]))
    return batches, sink


def hop_bytes(spark: SparkSession, run_id: str) -> dict[int, tuple[int, int]]:
    """For each batch, bytes that the second operator fetched from other hosts and from its own, by the REST API."""
    context = spark.sparkContext
    base = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    stages = {stage["stageId"]: stage for stage in _get(f"{base}/stages?status=complete")}
    found = {}
    for job in _get(f"{base}/jobs?status=succeeded"):
        ids = sorted(job["stageIds"])
        if run_id in job.get("description", "") and len(ids) == STAGES and all(one in stages for one in ids):
            batch = int(job["description"].rpartition("batch = ")[2])
            hop = stages[ids[HOP]]
            found[batch] = hop["shuffleRemoteBytesRead"], hop["shuffleLocalBytesRead"]
    return found


def _get(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


def part(spark: SparkSession, folder: Path, sizes: Sizes, padding: int, claims: Claims, link: str = "") -> list[str]:
    """A table of periods for one size of tuples."""
    folder.mkdir()
    what = f"{padding} B{link and ', ' + link}"
    files = write_pairs(folder / "files", sizes)
    # Spark gets faster for many batches, and from run to run: the same batches by hash before and after.
    never = sizes.every * sizes.periods + 1
    earlier = run(spark, files, folder / "earlier", never, padding)[0][-sizes.every :]
    batches, sink = run(spark, files, folder / "planned", sizes.every, padding)
    later = run(spark, files, folder / "later", never, padding)[0][-sizes.every :]
    lines = [f"## {padding} bytes of padding{link and ', links of ' + link}", ""]
    lines += header("batches", "tables", "locality", "promised", "remote MB a batch", "remote share", "k tuples/s")
    periods = [batches[i : i + sizes.every] for i in range(0, len(batches), sizes.every)]
    for number, period in enumerate(periods):
        lines.append(row(*cells(period, "hash" if number == 0 else "planned", skip=number == 0)))
    lines.append(row(*cells(earlier, "hash, in a run before", skip=False)))
    lines.append(row(*cells(later, "hash, in a run after", skip=False)))
    before, after = periods[0][1:], periods[-1]
    gained = 1 - (1 - _mean(after, "locality")) / (1 - _mean(before, "locality"))
    saved = 1 - _remote(after) / _remote(before)
    speedup = 2 * _rate(after) / (_rate(earlier) + _rate(later))
    lines += [
        "",
        *prose(
            f"From hash to the last tables {gained:.0%} fewer tuples cross from host to host, and {saved:.0%} fewer "
            f"bytes; throughput is {speedup:.2f} times that of the same batches by hash, the mean of two runs."
        ),
    ]
    claims.check(f"{what}: after each batch both operators say what was sent", not sink.wrong)
    claims.check(f"{what}: locality above 0.6 once tables are planned", _mean(after, "locality") > 0.6)
    if padding:
        claims.check(f"{what}: remote bytes fall by at least the locality gained", saved >= gained - 0.02)
    return lines


def cells(period: list[Batch], tables: str, *, skip: bool) -> list[str]:
    """A row: the means of a period; the first batch of all starts processes, and is left out."""
    used = period[1:] if skip else period
    first, last = used[0].metrics.batch, used[-1].metrics.batch
    share = _remote(used) / (_remote(used) + statistics.mean(one.local for one in used))
    promised = used[-1].metrics.promised
    return [
        f"{first}–{last}",
        tables,
        f"{_mean(used, 'locality'):.3f}",
        "" if promised != promised else f"{promised:.3f}",
        f"{_remote(used) / 1e6:.1f}",
        f"{share:.3f}",
        f"{_rate(used) / 1000:.2f}",
    ]


def _mean(batches: list[Batch], name: str) -> float:
    return statistics.mean(getattr(one.metrics, name) for one in batches)


def _remote(batches: list[Batch]) -> float:
    return statistics.mean(one.remote for one in batches)


def _rate(batches: list[Batch]) -> float:
    return statistics.median(one.metrics.tuples_per_second for one in batches)


def measured(folder: Path, sizes: Sizes, claims: Claims, rate: str | None) -> list[str]:
    """The tables of one cluster; its hosts are on loopback, or behind links of this rate."""
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        links = stack.enter_context(Links(HOSTS, rate)) if rate else None
        cluster = stack.enter_context(Cluster(folder, n_hosts=HOSTS, links=links))
        # Where the driver binds, too.
        os.environ["SPARK_LOCAL_IP"] = cluster.own_host
        spark = quiet_session(
            cluster.master,
            spark_driver_host=cluster.own_host,
            spark_executor_memory="768m",
            spark_scheduler_minRegisteredResourcesRatio="1.0",
            # One more than workers: slots lie on the partitions of their numbers where this divides 64.
            spark_sql_shuffle_partitions="4",
            # Padding that is compressed away would cross nothing.
            spark_shuffle_compress="false",
            spark_ui_enabled="true",
            spark_ui_port="0",
        )
        paddings = sizes.paddings[-1:] if rate else sizes.paddings
        lines = []
        for padding in paddings:
            lines += part(spark, folder / f"{padding}", sizes, padding, claims, RATES[rate] if rate else "")
        spark.stop()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--links", action="store_true")
    options = parser.parse_args()
    claims, sizes = Claims(), QUICK if options.quick else FULL
    title = "behind slow links" if options.links else "on a cluster"
    command = f"benchmarks/locality_cluster.py {'--links ' * options.links}--write"
    lines = [f"# Locality {title}", "", f"`.venv/bin/python {command}`", ""]
    rates = list(RATES) if options.links else [None]
    with tempfile.TemporaryDirectory(prefix="anabranch-") as scratch:
        for rate in rates:
            lines += measured(Path(scratch) / (rate or "loopback"), sizes, claims, rate)
    network = (
        "each in a network namespace, with what it sends and what it gets limited by a token bucket"
        if options.links
        else "whose network is the loopback interface, so throughput says what copying costs, not what a network does"
    )
    lines += prose(
        f"{HOSTS} hosts on one machine of {os.cpu_count()} cores, {network}; {sizes.tuples} tuples a batch. "
        f"Spark {pyspark.__version__}."
    )
    sys.exit(write("locality_links" if options.links else "locality_cluster", lines, claims, options.write))


if __name__ == "__main__":
    main()
