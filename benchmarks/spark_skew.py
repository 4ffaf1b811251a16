"""Groupings on Spark under skew: throughput, batch times, makespan and replication.

    .venv/bin/python benchmarks/spark_skew.py [--data DIR] [--only PART] [--write] [--quick]

16 workers, local[16], 16 sources unless said, one micro-batch for every 16 files. The work a tuple is emulated by a delay,
so that 16 workers run side by side on fewer cores; routing, exchange, aggregation and state are real and share the
cores. The first batch of a query is left out: it starts processes and the routers know nothing.

--data names a folder with congress_words.parquet, real words with a column `key`; without it that stream is left out.
--quick is a trial at small sizes. --write stores the parts that ran in benchmarks/results/spark_skew.md. Exits 1 where
a claim fails.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from anabranch.aggregates import Aggregate, Count, DistinctCount, Groups, Quantiles, StateColumn, Types
from anabranch.apps.balancing import emulating
from anabranch.groupings import (
    DStream,
    Fish,
    Grouping,
    KeyGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
    Spillway,
    WChoices,
)
from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.simulate import Settings, simulate
from anabranch.spark import balance
from anabranch.spark.merging.native import Natively
from anabranch.spark.progress import BatchMetrics, batch_metrics
from anabranch.spark.settings import QuerySettings
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates
from anabranch.streams import Replay, Stream, Zipf
from cells import Claims, header, prose, row, run_parts
from spark_data import quiet_session, run

N_WORKERS = N_SOURCES = 16
KEYED_SOURCES = 8
RESULTS = Path(__file__).parent / "results" / "spark_skew.md"
PLAIN = "plain Spark, repartition(key)"
# Key grouping and shuffle run natively, which is the best they can do.
VARIANTS: dict[str, tuple[Grouping, str]] = {
    "key": (KeyGrouping(), "planned"),
    "shuffle": (ShuffleGrouping(), "planned"),
    "partial-key": (PartialKeyGrouping(), "adaptive"),
    "dstream": (DStream(), "adaptive"),
    "fish": (Fish(), "adaptive"),
    "spillway": (Spillway(), "adaptive"),
    "spillway, planned": (Spillway(), "planned"),
    "w-choices": (WChoices(), "planned"),
    "local": (KeyGrouping(), "local"),
}
Build = Callable[[DataFrame, str], DataFrame]


@dataclass(frozen=True)
class Sizes:
    """How much of everything: tuples a batch by the work a tuple in µs, batches of a query, rounds, rows, repeats."""

    tuples: dict[int, int]
    batches: int
    rounds: int
    keyed_tuples: int
    state_rows: int
    state_keys: int
    repeats: int
    resident_tuples: int
    periods: tuple[int, ...]
    fluctuation_batches: int


FULL = Sizes({20: 1_600_000, 100: 600_000}, 4, 5, 400_000, 2_000_000, 50_000, 3, 50_000, (1, 2, 5, 10, 30), 18)
QUICK = Sizes({100: 50_000}, 3, 1, 50_000, 200_000, 20_000, 1, 20_000, (1, 3), 5)


def write_stream(
    folder: Path, stream: Stream, *, tuples: int, n_batches: int, n_sources: int = N_SOURCES, by_key: bool = False
) -> Path:
    """One file a source and batch, unless they are there. Tuple i goes to source i mod n_sources, or by its key's hash."""
    folder = folder / f"{stream.name}-{tuples}x{n_batches}-{n_sources}{'-by-key' if by_key else ''}"
    if folder.exists() and len(list(folder.iterdir())) == n_batches * n_sources:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(stream.batches(size=tuples, stop=tuples * n_batches)):
        sources = np.arange(batch.num_rows) % n_sources
        if by_key:
            # Another seed than that of the workers: a topic's partitions know nothing of ours.
            sources = MultiplyShift().first(hash_keys(batch["key"]), n_sources, 1)
        values = np.random.default_rng(number).random(batch.num_rows)
        items = np.random.default_rng(number + 1).integers(0, 1 << 40, batch.num_rows)
        table = pa.table({"key": batch["key"], "value": values, "item": items})
        for source in range(n_sources):
            path = folder / f"{number:04d}-{source:02d}.parquet"
            pq.write_table(table.filter(pa.array(sources == source)), path)
            # Spark reads a folder in the order in which files were modified.
            os.utime(path, (10**9 + number, 10**9 + number))
    return folder


def behind_repartition(df: DataFrame, work_us: float, ledger: str) -> DataFrame:
    """Worker and aggregator of `.aggregate(count)` behind Spark's own exchange."""
    count = Count()
    partial_states = PartialStates(("key",), (BoundAggregate("count", count, count.state({})),))
    settings = QuerySettings(KeyGrouping(), N_WORKERS, "adaptive", ledger=ledger, work_us=work_us, keys=("key",))
    rows = df.select("key").repartition(N_WORKERS, "key")
    return Natively(df.schema, partial_states, settings).merged(rows)


def counting(name: str, work_us: float) -> Build:
    """The query of a variant: rows and ledger to counts."""
    if name == PLAIN:
        return lambda df, ledger: behind_repartition(df, work_us, ledger)
    grouping, edge = VARIANTS[name]

    def build(df: DataFrame, ledger: str) -> DataFrame:
        balanced = balance(df, "key", grouping, N_WORKERS, edge=edge, ledger=ledger)
        return emulating(balanced, work_us).aggregate(count=Count())

    return build


@dataclass(frozen=True)
class Run:
    """A query over a folder: Spark's progress a batch without the first, and what the ledger still tells."""

    progress: list[dict[str, Any]]
    metrics: list[BatchMetrics]

    @property
    def seconds(self) -> list[float]:
        """From trigger to commit."""
        return [float(p["durationMs"]["triggerExecution"]) / 1000 for p in self.progress]

    @property
    def throughput(self) -> float:
        """Tuples a second."""
        return float(sum(p["numInputRows"] for p in self.progress) / sum(self.seconds))

    def mean(self, name: str) -> float:
        """A metric of the batches."""
        return float(statistics.mean(getattr(batch, name) for batch in self.metrics))


@contextmanager
def streamed(spark: SparkSession, folder: Path, build: Build, n_sources: int = N_SOURCES) -> Iterator[tuple[Run, Path]]:
    """Run a query over all files of a folder; its checkpoint is there as long as the context is."""
    schema = spark.read.parquet(str(folder)).schema
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", n_sources).parquet(str(folder))
    with tempfile.TemporaryDirectory() as scratch:
        ledger, checkpoint = f"{scratch}/ledger", Path(scratch) / "checkpoint"
        writer = build(rows, ledger).writeStream.outputMode("update").format("noop")
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [json.loads(p.json) for p in query.recentProgress if p["numInputRows"]][1:]
        yield Run(progress, [m for p in progress if (m := batch_metrics(ledger, p)) and m.tuples]), checkpoint


def simulated_replication(name: str, stream: Stream, tuples: int, n_batches: int) -> float:
    """Replication a window, the first left out, of the same grouping and edge on the same tuples without Spark."""
    grouping, edge = VARIANTS[name]
    settings = Settings(
        N_WORKERS, N_SOURCES, window=tuples, reset_loads=True, limit=tuples * n_batches,
        edge="adaptive" if edge == "local" else edge,
    )  # fmt: skip
    if edge == "local":
        # Tuples stay at their source, and those go in turn: one source that deals them out.
        grouping, settings = ShuffleGrouping(), replace(settings, n_workers=N_SOURCES, n_sources=1)
    return float(simulate(stream, grouping, settings).windows.replication[1:].mean())


def balance_part(spark: SparkSession, sizes: Sizes, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Part 1: every grouping on a synthetic and a real stream."""
    lines = prose(
        "Makespan is as the workers counted: largest over mean tuples of a worker, mean of the batches. Replication is "
        "partial states over keys of a batch, as measured, and as the same grouping has it without Spark on the same "
        "tuples, sources and windows. `ideal` is the emulated work of a batch over 16 workers: what no grouping can beat."
    )
    for title, stream, work_us, tuples, folder in cells_of(sizes, options):
        # First, and so in one process: what it compiles, the processes of Spark find.
        predicted = {name: simulated_replication(name, stream, tuples, sizes.batches) for name in VARIANTS}
        runs = {}
        for name in (*VARIANTS, PLAIN):
            with streamed(spark, folder, counting(name, work_us)) as (runs[name], _):
                say(f"{title}, {work_us} µs, {name}: {statistics.median(runs[name].seconds):.2f} s a batch")
        lines += [f"### {title}: {work_us} µs a tuple, {tuples:,} tuples a batch", ""]
        lines += balance_table(runs, predicted, tuples * work_us * 1e-6 / N_WORKERS, f"{title}, {work_us} µs", claims)
        if isinstance(stream, Zipf):
            lines += throughput_claims(runs, f"z=1.4, {work_us} µs", claims)
    return lines


def shuffle_part(spark: SparkSession, sizes: Sizes, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Part 1b: Spillway on both edges against shuffle, often enough to tell them apart."""
    lines = prose(
        f"The streams, work and batches of the part before; medians of {sizes.rounds} rounds after one that does not count, "
        "each in an order of its own: one run is some percent off, and what ran before it is felt. Ratios are of medians; "
        "in brackets the smallest and largest of a round. Makespan and replication are means of all batches. The planned "
        "edge is one batch late, and claims its speed for streams that are steady."
    )
    lines += header(
        "stream", "µs", "variant", "tuples/s", "over shuffle", "≥ 0.97", "makespan", "replication", "≤ 1.05"
    )
    for title, stream, work_us, _, folder in cells_of(sizes, options):
        runs = in_rounds(spark, folder, work_us, sizes.rounds, f"{title}, {work_us} µs")
        for name, measured in runs.items():
            late = VARIANTS[name][1] == "planned" and not isinstance(stream, Zipf)
            lines.append(against_shuffle(name, measured, runs["shuffle"], (title, work_us), claims, late))
    return [*lines, ""]


def in_rounds(spark: SparkSession, folder: Path, work_us: int, rounds: int, title: str) -> dict[str, list[Run]]:
    """Runs of each variant, one a round, in an order that is drawn anew."""
    runs: dict[str, list[Run]] = {"shuffle": [], "spillway": [], "spillway, planned": []}
    for done in range(rounds + 1):
        for name in np.random.default_rng(done).permutation(list(runs)).tolist():
            with streamed(spark, folder, counting(name, work_us)) as (one, _):
                say(f"{title}, round {done}, {name}: {one.throughput:,.0f} tuples/s")
            if done:
                runs[name].append(one)
    return runs


def against_shuffle(
    name: str, runs: list[Run], shuffle: list[Run], cell: tuple[str, int], claims: Claims, late: bool
) -> str:
    """One row a variant."""
    speed = statistics.median(run.throughput for run in runs)
    ratio = speed / statistics.median(run.throughput for run in shuffle)
    single = [one.throughput / other.throughput for one, other in zip(runs, shuffle, strict=True)]
    makespan, replication = (statistics.mean(run.mean(which) for run in runs) for which in ("makespan", "replication"))
    times, fast, few = "1", "", ""
    if name != "shuffle":
        times = f"{ratio:.2f} ({min(single):.2f} – {max(single):.2f})"
        fast = "" if late else claims.check(f"{cell[0]}, {cell[1]} µs: {name} over shuffle", ratio >= 0.97)
        few = claims.check(f"{cell[0]}, {cell[1]} µs: replication of {name}", replication <= 1.05)
    return row(*cell, label(name), f"{speed:,.0f}", times, fast, f"{makespan:.2f}", f"{replication:.3f}", few)


def cells_of(sizes: Sizes, options: argparse.Namespace) -> Iterator[tuple[str, Stream, int, int, Path]]:
    """Title and stream, a synthetic and, where there is one, a real one; work in µs, tuples a batch, and their files."""
    streams: dict[str, Stream] = {"Zipf z=1.4, 10⁵ keys": Zipf(n_tuples=10**8, n_keys=100_000, z=1.4)}
    if options.data is not None:
        streams["congress_words"] = Replay(options.data / "congress_words.parquet", key="key")
    for title, stream in streams.items():
        for work_us, tuples in sizes.tuples.items():
            folder = write_stream(options.folder, stream, tuples=tuples, n_batches=sizes.batches)
            yield title, stream, work_us, tuples, folder


def label(name: str) -> str:
    """A variant in a table."""
    if name == PLAIN or name == "local":
        return "local edge" if name == "local" else name
    grouping, edge = VARIANTS[name]
    return f"{grouping.name}, {edge}"


def balance_table(
    runs: dict[str, Run], predicted: dict[str, float], ideal_s: float, cell: str, claims: Claims
) -> list[str]:
    """One row a variant."""
    lines = header(
        "variant",
        "tuples/s",
        "× key",
        "batch s, median",
        "max",
        "over ideal",
        "makespan",
        "replication",
        "simulated",
        "±10 %",
    )
    for name, measured in runs.items():
        grouping_edge = label(name)
        met, simulated = "", ""
        replication = measured.mean("replication")
        if name in predicted:
            simulated = f"{predicted[name]:.2f}"
            met = claims.check(f"{cell}: replication of {name}", abs(replication / predicted[name] - 1) <= 0.1)
        times = measured.throughput / runs["key"].throughput
        median = statistics.median(measured.seconds)
        lines.append(
            row(
                grouping_edge, f"{measured.throughput:,.0f}", f"{times:.2f}", f"{median:.2f}", f"{max(measured.seconds):.2f}",
                f"{median / ideal_s:.2f}", f"{measured.mean('makespan'):.2f}", f"{replication:.2f}", simulated, met,
            )
        )  # fmt: skip
    return [*lines, ""]


def throughput_claims(runs: dict[str, Run], cell: str, claims: Claims) -> list[str]:
    """What FISH promises over shuffle and key grouping, and Spillway over shuffle's time and key grouping's memory."""
    lines = header("what", "figure", "target", "met")
    targets = (("fish", "shuffle", 0.9), ("fish", "key", 3.0), ("spillway", "shuffle", 0.97), ("spillway", "key", 3.0))
    for ours, other, target in (*targets, ("spillway, planned", "shuffle", 0.97)):
        ratio = runs[ours].throughput / runs[other].throughput
        met = claims.check(f"{cell}: {ours} over {other}", ratio >= target)
        lines.append(row(f"throughput of {label(ours)} over {label(other)}", f"{ratio:.2f}", f"≥ {target}", met))
    for ours in ("spillway", "spillway, planned"):
        ratio = runs[ours].mean("partials") / runs["key"].mean("partials")
        met = claims.check(f"{cell}: partial states of {ours}", ratio <= 1.05)
        lines.append(row(f"partial states of {label(ours)} over key grouping's", f"{ratio:.4f}", "≤ 1.05", met))
    return [*lines, ""]


def keyed_source_part(spark: SparkSession, sizes: Sizes, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Part 2a: a source whose partitions are made by key, as those of a topic are."""
    stream = Zipf(n_tuples=10**8, n_keys=100_000, z=1.4)
    folder = write_stream(
        options.folder, stream, tuples=sizes.keyed_tuples, n_batches=sizes.batches, n_sources=KEYED_SOURCES, by_key=True
    )
    lines = prose(
        f"Zipf z=1.4, {KEYED_SOURCES} sources, each with all tuples of its keys, {sizes.keyed_tuples:,} tuples a batch, "
        "50 µs a tuple. The local edge works where the tuples are, so that the source with the hot key is the bottleneck, "
        f"and no more than {KEYED_SOURCES} workers work at all; an edge with an exchange uses all {N_WORKERS}."
    )
    lines += header(
        "variant", "tuples/s", "× local", "batch s, median", "max", "makespan", "replication", "faster than local"
    )
    runs = {}
    for name in ("local", "w-choices", "fish", "spillway", "spillway, planned"):
        with streamed(spark, folder, counting(name, 50), KEYED_SOURCES) as (runs[name], _):
            say(f"keyed source, {name}: {statistics.median(runs[name].seconds):.2f} s a batch")
        one = runs[name]
        times = one.throughput / runs["local"].throughput
        met = "" if name == "local" else claims.check(f"keyed source: {name} at least twice as fast", times >= 2)
        lines.append(
            row(
                label(name), f"{one.throughput:,.0f}", f"{times:.2f}",
                f"{statistics.median(one.seconds):.2f}", f"{max(one.seconds):.2f}",
                f"{one.mean('makespan'):.2f}", f"{one.mean('replication'):.2f}", met and f"≥ 2: {met}",
            )
        )  # fmt: skip
    return [*lines, ""]


@dataclass(frozen=True)
class Profile(Aggregate):
    """The sum of the vectors of a key's items: a state of fixed size, large from the first tuple on.

    The worker looks the vector of an item up, so that a tuple is small. Vectors are integers: sums do not depend on order.
    """

    item: str
    dimensions: int = 64

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.item,)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("vector", pa.binary(), None),)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.binary()

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        vectors = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, (1024, self.dimensions))
        return (self._sums(groups, vectors[columns[0].to_numpy() % 1024]),)

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        joined = np.frombuffer(b"".join(states[0].to_pylist()), dtype=np.int64)
        return (self._sums(groups, joined.reshape(-1, self.dimensions)),)

    def _sums(self, groups: Groups, vectors: NDArray[np.int64]) -> pa.Array:
        order = np.argsort(groups.codes, kind="stable")
        starts = np.searchsorted(groups.codes[order], np.arange(groups.n))
        sums = np.add.reduceat(vectors[order], starts, axis=0)
        return pa.array([vector.tobytes() for vector in sums], pa.binary())


def state_part(spark: SparkSession, sizes: Sizes, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Part 2b: even partitions and large states."""
    stream = Zipf(n_tuples=10**8, n_keys=sizes.state_keys, z=1.0)
    data = write_stream(options.folder / "states", stream, tuples=sizes.state_rows, n_batches=1)
    df = spark.read.parquet(str(data))
    aggregates: dict[str, Aggregate] = {
        "Quantiles(k=200)": Quantiles("value"),
        "DistinctCount(lg_k=12)": DistinctCount("item"),
        "sum of 64 dimensions": Profile("item"),
    }
    lines = prose(
        f"A batch DataFrame, Zipf z=1.0, {sizes.state_keys:,} keys, {sizes.state_rows:,} rows in {N_SOURCES} even partitions, "
        f"no emulated work; medians of {sizes.repeats} interleaved repeats, after one that does not count. The planned "
        "edge's count of the keys is part of its time. Quantiles and DistinctCount keep a few values as they are, so that "
        "their states are no larger than the rows they stand for; the sum of vectors has 512 bytes from the first row on."
    )
    lines += header(
        "aggregate", "variant", "median s", "min – max s", "MB shuffled", "× local's time", "× local's bytes"
    )
    verdicts = []
    for title, aggregate in aggregates.items():
        seconds, megabytes = interleaved_states(spark, df, aggregate, sizes.repeats, title)
        for name, values in seconds.items():
            median, base = statistics.median(values), statistics.median(seconds["local"])
            lines.append(
                row(
                    title, name, f"{median:.2f}", f"{min(values):.2f} – {max(values):.2f}", f"{megabytes[name]:.1f}",
                    f"{median / base:.2f}", f"{megabytes[name] / megabytes['local']:.2f}",
                )
            )  # fmt: skip
        fastest = min(seconds, key=lambda name: statistics.median(seconds[name]))
        fewest = min(megabytes, key=lambda name: megabytes[name])
        verdicts.append(f"{title}: {fastest} is fastest, {fewest} shuffles least.")
        if isinstance(aggregate, Profile):
            routed = min(megabytes["spillway, planned"], megabytes["spillway, adaptive"])
            claims.check("large states: routing shuffles at most half", routed <= 0.5 * megabytes["local"])
    return [*lines, "", *prose(" ".join(verdicts))]


def interleaved_states(
    spark: SparkSession, df: DataFrame, aggregate: Aggregate, repeats: int, title: str
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds and shuffled megabytes of each edge, all of them once per round."""
    names = {"local": "local", "spillway, planned": "spillway, planned", "spillway, adaptive": "spillway"}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    megabytes = {}
    for done in range(repeats + 1):
        for name, variant in names.items():
            grouping, edge = VARIANTS[variant]
            group = f"{title}, {name}, {done}"
            spark.sparkContext.setJobGroup(group, group)
            began = time.perf_counter()
            run(balance(df, "key", grouping, N_WORKERS, edge=edge).aggregate(state=aggregate))
            if done:
                seconds[name].append(time.perf_counter() - began)
            megabytes[name] = shuffled_bytes(spark, group) / 1e6
            say(f"{title}, {name}: {time.perf_counter() - began:.2f} s, {megabytes[name]:.1f} MB")
    return seconds, megabytes


def shuffled_bytes(spark: SparkSession, group: str) -> int:
    """What the stages of a job group wrote for their exchanges, from Spark's own status store."""
    context = spark.sparkContext
    engine = context._jsc.sc()
    # The store is fed by events, which may be on their way.
    engine.listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    return sum(int(engine.statusStore().lastStageAttempt(stage).shuffleWriteBytes()) for stage in stages)


def resident_part(spark: SparkSession, sizes: Sizes, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Part 3: throughput and memory against the aggregation period (PKG, figure 5b)."""
    stream = Zipf(n_tuples=10**8, n_keys=100_000, z=1.4)
    n_batches = max(sizes.periods) + 1
    folder = write_stream(options.folder, stream, tuples=sizes.resident_tuples, n_batches=n_batches)
    lines = prose(
        f"partial-key grouping, Zipf z=1.4, {sizes.resident_tuples:,} tuples a batch, 20 µs a tuple, {n_batches} batches. Partial "
        "states stay on their worker and go to the aggregator every T batches. `held` counts those in the workers' state store "
        "at the end of the last batch before a flush, where they are most; with T = 1 none outlives its batch."
    )
    lines += header("T, batches", "tuples/s", "batch s, median", "max", "partial states held", "× the fewest")
    held: dict[int, int] = {}
    for period in sizes.periods:

        def build(df: DataFrame, ledger: str, period: int = period) -> DataFrame:
            grouping = PartialKeyGrouping()
            kept = balance(df, "key", grouping, N_WORKERS, regime="resident", flush_every=period)
            return emulating(kept, 20).aggregate(count=Count())

        with streamed(spark, folder, build) as (one, checkpoint):
            held[period] = 0 if period == 1 else partials_held(spark, checkpoint, period - 2)
        say(f"resident, T={period}: {statistics.median(one.seconds):.2f} s a batch, {held[period]} held")
        least = min((n for n in held.values() if n), default=0)
        growth = f"{held[period] / least:.2f}" if held[period] else ""
        median, longest = statistics.median(one.seconds), max(one.seconds)
        lines.append(
            row(period, f"{one.throughput:,.0f}", f"{median:.2f}", f"{longest:.2f}", f"{held[period]:,}", growth)
        )
    grows = all(held[a] < held[b] for a, b in zip(sizes.periods, sizes.periods[1:], strict=False))
    claims.check("resident: states held grow with T", grows)
    return [*lines, ""]


def partials_held(spark: SparkSession, checkpoint: Path, batch: int) -> int:
    """Partial states in the store at the end of a batch before the first flush: all of them are the workers'."""
    held = 0
    for operator in (0, 1):
        state = spark.read.format("statestore").option("operatorId", operator).option("batchId", batch)
        blobs = state.option("stateVarName", "buckets").load(str(checkpoint)).select("user_map_value.blob").collect()
        held += sum(pa.ipc.open_stream(bytes(one[0])).read_all().num_rows for one in blobs)
    return held


def fluctuation_part(spark: SparkSession, sizes: Sizes, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Part 4: how far a worker's seconds a tuple, as measured, wander from batch to batch (FISH, figure 4)."""
    stream, tuples = Zipf(n_tuples=10**8, n_keys=100_000, z=1.4), sizes.tuples.get(50, 50_000)
    folder = write_stream(options.folder, stream, tuples=tuples, n_batches=sizes.fluctuation_batches)
    with streamed(spark, folder, counting("fish", 50)) as (one, _):
        per_tuple = np.array([np.divide(m.worker_seconds, m.worker_tuples) * 1e6 for m in one.metrics])
    over_batches = per_tuple.std(axis=0) / per_tuple.mean(axis=0)
    over_workers = per_tuple.mean(axis=0).std() / per_tuple.mean()
    lines = prose(
        f"fish on the adaptive edge, Zipf z=1.4, 50 µs a tuple emulated, {tuples:,} tuples a batch, {len(per_tuple)} batches, as "
        "the workers report it to the ledger. It is why FISH may take a worker's speed from its reports."
    )
    lines += header("seconds a tuple of a worker", "value")
    lines.append(row("mean, µs", f"{per_tuple.mean():.1f}"))
    lines.append(
        row("smallest – largest of all workers and batches, µs", f"{per_tuple.min():.1f} – {per_tuple.max():.1f}")
    )
    lines.append(row("relative standard deviation over batches, mean of the workers", f"{over_batches.mean():.3f}"))
    lines.append(row("the same, worst worker", f"{over_batches.max():.3f}"))
    lines.append(row("relative standard deviation between the workers' means", f"{over_workers:.3f}"))
    claims.check("fluctuation below 10 %", bool(over_batches.mean() < 0.1))
    return [*lines, ""]


def say(text: str) -> None:
    """Progress, apart from the results."""
    print(text, file=sys.stderr, flush=True)


PARTS = {
    "balance": ("Balance", balance_part),
    "shuffle": ("Spillway against shuffle", shuffle_part),
    "keyed-source": ("Where routing beats combining at the source: partitions made by key", keyed_source_part),
    "states": ("Where it depends: even partitions, large states", state_part),
    "resident": ("The resident regime: throughput and memory against the aggregation period", resident_part),
    "fluctuation": ("Fluctuation of the workers' seconds a tuple", fluctuation_part),
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, help="folder with congress_words.parquet")
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "anabranch-benchmark")
    options.add_argument("--only", choices=PARTS, action="append", help="a part; may be repeated")
    options.add_argument("--quick", action="store_true", help="small sizes, to try the script")
    options.add_argument("--write", action="store_true", help="store the parts that ran")
    chosen = options.parse_args()
    spark, sizes = quiet_session(f"local[{N_WORKERS}]"), QUICK if chosen.quick else FULL
    head = ["# Groupings on Spark under skew", "", *(__doc__ or "").strip().splitlines()[4:7]]
    parts = {title: partial(part, spark, sizes, chosen) for title, part in map(PARTS.__getitem__, chosen.only or PARTS)}
    return run_parts(RESULTS, head, parts, spark.version, chosen.write)


if __name__ == "__main__":
    sys.exit(main())
