"""What the edges cost on Spark, beside a plain `repartition(key)`.

    .venv/bin/python benchmarks/spark_edge.py [--folder DIR] [--repeats 7] [--write]

10 M rows, Zipf z=1.4 (z=1.3 for the states, so that some 34 k keys are in a batch), 10⁵ keys of text, 16 workers,
local[2]. All variants are timed in turn, `--repeats` times, and compared by medians within this run. --write stores
benchmarks/results/spark_edge.md. Exits 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from anabranch.aggregates import Count
from anabranch.groupings import Fish, Grouping, KeyGrouping, PartialKeyGrouping, Spillway, WChoices
from anabranch.spark import balance
from anabranch.spark.merging.native import Natively
from anabranch.spark.settings import QuerySettings
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates
from cells import Claims, write
from spark_data import quiet_session, run, write_zipf

N_WORKERS = 16
N_ROWS = 10_000_000
EDGES: dict[str, Grouping] = {
    "planned, w-choices": WChoices(),
    "planned, spillway": Spillway(),
    "adaptive, partial-key": PartialKeyGrouping(),
    "adaptive, fish": Fish(),
    "adaptive, spillway": Spillway(),
}
EXCHANGE_TARGETS = {name: 1.45 if "planned" in name else 2.4 for name in EDGES}
WHOLE_TARGETS = {"local": 0.9} | {name: 1.3 if "planned" in name else 1.5 for name in EDGES}
Timed = Callable[[], None]


def same_work(df: DataFrame) -> DataFrame:
    """The worker and the aggregator of `.aggregate(count)` behind a plain repartition."""
    count = Count()
    partial_states = PartialStates(("key",), (BoundAggregate("count", count, count.state({})),))
    settings = QuerySettings(KeyGrouping(), N_WORKERS, "adaptive", keys=("key",))
    rows = df.select("key").repartition(N_WORKERS, "key")
    return Natively(df.schema, partial_states, settings).merged(rows)


def edge_of(name: str) -> str:
    return name.partition(",")[0]


def exchanges(df: DataFrame) -> dict[str, DataFrame]:
    """Edge and exchange only; the planned edge has counted the keys when it is timed."""
    made = {"repartition(key)": df.repartition(N_WORKERS, "key")}
    for name, grouping in EDGES.items():
        made[name] = balance(df, "key", grouping, N_WORKERS, edge=edge_of(name)).routed()
    return made


def wholes(df: DataFrame) -> dict[str, DataFrame]:
    """The whole of `.aggregate(count)`."""
    made = {"same work behind repartition(key)": same_work(df)}
    for name, grouping in {"local": KeyGrouping(), **EDGES}.items():
        made[name] = balance(df, "key", grouping, N_WORKERS, edge=edge_of(name)).aggregate(count=Count())
    return made


def interleaved(variants: dict[str, Timed], repeats: int) -> dict[str, list[float]]:
    """Seconds of each variant, all of them once per round."""
    for variant in variants.values():
        variant()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for done in range(repeats):
        print(f"round {done + 1} of {repeats}: {', '.join(variants)}", file=sys.stderr)
        for name, variant in variants.items():
            began = time.perf_counter()
            variant()
            seconds[name].append(time.perf_counter() - began)
    return seconds


def table(title: str, seconds: dict[str, list[float]], targets: dict[str, float], claims: Claims) -> list[str]:
    """Medians, spread, and the ratio to the first variant."""
    base = statistics.median(next(iter(seconds.values())))
    lines = [
        f"## {title}",
        "",
        "| variant | median s | min – max s | ratio | target | met |",
        "|---|---|---|---|---|---|",
    ]
    for name, values in seconds.items():
        ratio = statistics.median(values) / base
        target = targets.get(name)
        met = "" if target is None else claims.check(f"{title}: {name}", ratio <= target)
        limit = "" if target is None else f"≤ {target}"
        spread = f"{min(values):.2f} – {max(values):.2f}"
        lines.append(f"| {name} | {statistics.median(values):.2f} | {spread} | {ratio:.2f} | {limit} | {met} |")
    return [*lines, ""]


def streamed(spark: SparkSession, folder: Path, build: Callable[[DataFrame], DataFrame]) -> list[float]:
    """Batch times of a streaming query over the files, without the first batch."""
    rows = spark.readStream.schema("key string, value double").option("maxFilesPerTrigger", 1).parquet(str(folder))
    with tempfile.TemporaryDirectory() as checkpoint:
        query = build(rows).writeStream.outputMode("update").format("noop").option("checkpointLocation", checkpoint)
        running = query.trigger(availableNow=True).start()
        running.awaitTermination()
        return [p["durationMs"]["triggerExecution"] / 1000 for p in running.recentProgress][1:]


def with_state(key: tuple[str], batches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The count of one key, as `applyInPandasWithState` wants it."""
    count = (state.get[0] if state.exists else 0) + sum(len(batch) for batch in batches)
    state.update((count,))
    yield pd.DataFrame({"key": [key[0]], "count": [count]})


class PerKey(StatefulProcessor):
    """The count of one key, as `transformWithStateInPandas` wants it."""

    def init(self, handle: Any) -> None:
        self.count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        count = (self.count.get()[0] if self.count.exists() else 0) + sum(len(batch) for batch in rows)
        self.count.update((count,))
        yield pd.DataFrame({"key": [key[0]], "count": [count]})

    def close(self) -> None:
        pass


def python_state(spark: SparkSession, folder: Path, claims: Claims) -> list[str]:
    """A Python aggregate with state, against Spark's two ways to write one."""
    schema = "key string, count long"
    variants: dict[str, Callable[[DataFrame], DataFrame]] = {
        "anabranch": lambda df: balance(df, "key", Spillway(), N_WORKERS).aggregate(count=Count()),
        "transformWithStateInPandas": lambda df: (
            df.select("key").groupBy("key").transformWithStateInPandas(PerKey(), schema, "Update", "None")
        ),
        "applyInPandasWithState": lambda df: (
            df.select("key")
            .groupBy("key")
            .applyInPandasWithState(with_state, schema, "count long", "update", GroupStateTimeout.NoTimeout)
        ),
    }
    medians = {name: statistics.median(streamed(spark, folder, build)) for name, build in variants.items()}
    ours = medians.pop("anabranch")
    targets = {"transformWithStateInPandas": 4, "applyInPandasWithState": 8}
    n_keys = spark.read.parquet(str(folder / "part-000.parquet")).select("key").distinct().count()
    lines = [f"## A Python aggregate with state, 1.25 M rows and {n_keys / 1000:.1f} k keys a batch", ""]
    lines += ["| variant | median s a batch | times ours | target | met |", "|---|---|---|---|---|"]
    lines.append(f"| anabranch, spillway, adaptive edge | {ours:.2f} | 1 | | |")
    for name, value in medians.items():
        met = claims.check(name, value / ours >= targets[name])
        lines.append(f"| {name} | {value:.2f} | {value / ours:.1f} | ≥ {targets[name]} | {met} |")
    return [*lines, ""]


def routed(spark: SparkSession, folder: Path, repeats: int, claims: Claims) -> list[str]:
    """A native projection behind `routed()` on a stream: the one scene in which no row needs Python."""

    def behind(edge: str) -> Callable[[DataFrame], DataFrame]:
        def build(df: DataFrame) -> DataFrame:
            ledger = tempfile.mkdtemp(prefix="ledger-", dir=folder.parent)
            rows = balance(df, "key", Spillway(), N_WORKERS, edge=edge, ledger=ledger).routed()
            return rows.select("key", F.round("value", 2).alias("value"))

        return build

    seconds: dict[str, list[float]] = {"planned": [], "adaptive": []}
    for done in range(repeats):
        print(f"round {done + 1} of {repeats}: routed() on a stream", file=sys.stderr)
        for edge, values in seconds.items():
            values.append(statistics.median(streamed(spark, folder, behind(edge))))
    lines = ["## A native projection behind routed() on a stream, 1.25 M rows per batch", ""]
    lines += ["| edge | median s per batch | min – max s | ratio | target | met |", "|---|---|---|---|---|---|"]
    adaptive = statistics.median(seconds["adaptive"])
    for edge, values in seconds.items():
        ratio = statistics.median(values) / adaptive
        met = claims.check(f"routed() on a stream, {edge}", ratio <= 0.9) if edge == "planned" else ""
        target = "≤ 0.9" if edge == "planned" else ""
        spread = f"{min(values):.2f} – {max(values):.2f}"
        lines.append(f"| {edge} | {statistics.median(values):.2f} | {spread} | {ratio:.2f} | {target} | {met} |")
    return [*lines, ""]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "anabranch-benchmark")
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--write", action="store_true")
    options.add_argument("--only", choices=["exchange", "whole", "state", "routed"], help="one part")
    chosen = options.parse_args()
    data = write_zipf(chosen.folder / "zipf-10m", n_tuples=N_ROWS, n_files=8)
    spark = quiet_session("local[2]")
    df = spark.read.parquet(str(data))
    claims, lines = Claims(), []
    if chosen.only in (None, "exchange"):
        made = {name: (lambda df=df: run(df)) for name, df in exchanges(df).items()}
        counting = df.select(F.xxhash64("key").alias("h")).groupBy("h").count()
        made["exact count of all keys, made once by the planned edge"] = lambda: run(counting)
        lines += table("Edge and exchange", interleaved(made, chosen.repeats), EXCHANGE_TARGETS, claims)
    if chosen.only in (None, "whole"):
        made = {name: (lambda df=df: run(df)) for name, df in wholes(df).items()}
        lines += table("The whole of .aggregate(count)", interleaved(made, chosen.repeats), WHOLE_TARGETS, claims)
    if chosen.only in (None, "state"):
        lines += python_state(spark, write_zipf(chosen.folder / "zipf-1.3", n_tuples=N_ROWS, n_files=8, z=1.3), claims)
    if chosen.only in (None, "routed"):
        folder = write_zipf(chosen.folder / "zipf-10m", n_tuples=N_ROWS, n_files=8)
        lines += routed(spark, folder, chosen.repeats, claims)
    head = ["# What the edges cost on Spark", "", *(__doc__ or "").strip().splitlines()[4:7], ""]
    head.append(f"Spark {spark.version}; medians of {chosen.repeats} interleaved repeats.\n")
    return write("spark_edge", [*head, *lines], claims, chosen.write)


if __name__ == "__main__":
    sys.exit(main())
