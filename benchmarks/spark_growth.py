"""What grows on Spark, and what does not: time with rows, the driver's memory and the ledger with batches.

    .venv/bin/python benchmarks/spark_growth.py [--only PART] [--repeats 7] [--write] [--quick]

local[2], 16 workers, Zipf z=1.4, 10⁵ keys. Times are medians of interleaved repeats within this run. --quick is a trial
at small sizes; --write stores the parts that ran in benchmarks/results/spark_growth.md. Exits 1 where a claim fails.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from anabranch.aggregates import Count, Sum
from anabranch.groupings import Grouping, Spillway
from anabranch.spark import balance
from cells import Claims, header, prose, row, run_parts
from spark_data import quiet_session, run, write_zipf

N_WORKERS = 16
RESULTS = Path(__file__).parent / "results" / "spark_growth.md"
EDGES: dict[str, Grouping] = {"planned": Spillway(), "adaptive": Spillway()}
# One number off the line is a measurement off the line: what counts is how much more the second doubling costs.
TOLERANCE = 0.15
# Spark remembers jobs, stages and queries for its web pages up to a limit, and grows until then.
REMEMBERED = {"spark_ui_retainedJobs": "50", "spark_ui_retainedStages": "50", "spark_ui_retainedTasks": "1000"}


def summed(df: DataFrame, edge: str, ledger: str | None = None, n_workers: int = N_WORKERS) -> DataFrame:
    """Count and sum a key."""
    balanced = balance(df, "key", EDGES[edge], n_workers, edge=edge, ledger=ledger)
    return balanced.aggregate(count=Count(), total=Sum("value"))


def rows_part(spark: SparkSession, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Time of a batch DataFrame of n, 2n and 4n rows."""
    n = 250_000 if options.quick else 2_000_000
    data = write_zipf(options.folder / f"zipf-{4 * n}-by-8", n_tuples=4 * n, n_files=8)
    frames = {files * n // 2: spark.read.parquet(*map(str, sorted(data.iterdir())[:files])) for files in (2, 4, 8)}
    seconds = interleaved(frames, options.repeats)
    lines = [f"`.aggregate(count, sum)`, medians of {options.repeats} interleaved runs.", ""]
    lines += header(
        "edge",
        *(f"{rows / 1e6:g} M rows, s" for rows in frames),
        "s a M rows, first doubling",
        "second",
        "ratio",
        "1 ± 15 %",
    )
    for edge in EDGES:
        few, more, most = (statistics.median(seconds[edge, rows]) for rows in frames)
        first, second = (more - few) / (n / 1e6), (most - more) / (2 * n / 1e6)
        met = claims.check(f"time grows with rows in proportion, {edge} edge", abs(second / first - 1) <= TOLERANCE)
        entries = [f"{spread(seconds[edge, rows])}" for rows in frames]
        lines.append(row(edge, *entries, f"{first:.2f}", f"{second:.2f}", f"{second / first:.2f}", met))
    return [*lines, ""]


def interleaved(frames: dict[int, DataFrame], repeats: int) -> dict[tuple[str, int], list[float]]:
    """Seconds by edge and rows, all of them once per round, after a round that does not count."""
    seconds: dict[tuple[str, int], list[float]] = {(edge, rows): [] for edge in EDGES for rows in frames}
    for done in range(repeats + 1):
        for (edge, rows), values in seconds.items():
            began = time.perf_counter()
            # The planned edge counts the keys when it is built: that is part of its time.
            run(summed(frames[rows], edge))
            values.append(time.perf_counter() - began)
        say(f"round {done} of {repeats}: {', '.join(f'{values[-1]:.1f} s' for values in seconds.values())}")
    return {cell: values[1:] for cell, values in seconds.items()}


def spread(values: list[float]) -> str:
    """Median, and the smallest and largest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} – {max(values):.2f})"


@dataclass(frozen=True)
class Memory:
    """After so many batches: the driver's Python process, the JVM's heap in use after a collection, ledger files."""

    batch: int
    python_mb: float
    heap_mb: float
    files: int
    seconds: float


def batches_part(spark: SparkSession, options: argparse.Namespace, claims: Claims) -> list[str]:
    """Memory and files over many small batches."""
    n_batches = 40 if options.quick else 500
    data = write_zipf(
        options.folder / f"zipf-small-{n_batches}", n_tuples=1000 * n_batches, n_files=n_batches, n_keys=1000
    )
    lines = prose(
        f"{n_batches} batches of 1000 tuples, 1000 keys. MB of the driver's Python process (resident), and of the JVM's heap in use after a garbage collection; one query at "
        "a time, looked at between batches. In local mode the JVM runs the tasks too, so the heap holds theirs; states are in RocksDB, outside it. What Spark "
        "keeps for its web pages is bounded to 50 jobs and stages."
    )
    lines += header("edge", "batch", "Python MB", "heap MB", "ledger files", "s a batch")
    for edge in EDGES:
        found = watched(spark, data, edge, n_batches)
        lines += [
            row(edge, m.batch, f"{m.python_mb:.1f}", f"{m.heap_mb:.1f}", m.files, f"{m.seconds:.2f}") for m in found
        ]
        early, late = found[: len(found) // 2], found[len(found) // 2 :]
        flat(claims, f"Python's memory, {edge} edge", [m.python_mb for m in early], [m.python_mb for m in late])
        flat(claims, f"the heap, {edge} edge", [m.heap_mb for m in early], [m.heap_mb for m in late])
        claims.check(f"ledger files bounded, {edge} edge", max(m.files for m in late) <= max(m.files for m in early))
    return [*lines, ""]


def flat(claims: Claims, what: str, early: list[float], late: list[float]) -> None:
    """The second half is within 5 % of the first, or 5 MB."""
    grown = statistics.median(late) - statistics.median(early)
    claims.check(f"{what} is flat", grown <= max(5.0, 0.05 * statistics.median(early)))


def watched(spark: SparkSession, data: Path, edge: str, n_batches: int) -> list[Memory]:
    """Run one query over all files, handed to it in ten lots, and look after each lot, when no batch runs."""
    found: list[Memory] = []
    with tempfile.TemporaryDirectory() as scratch:
        ledger, arriving = f"{scratch}/ledger", Path(f"{scratch}/arriving")
        arriving.mkdir()
        stream = spark.readStream.schema("key string, value double").option("maxFilesPerTrigger", 1)
        counted = summed(stream.parquet(str(arriving)), edge, ledger, n_workers=2)
        writer = counted.writeStream.outputMode("update").format("noop")
        query = writer.option("checkpointLocation", f"{scratch}/checkpoint").start()
        files, step = sorted(data.iterdir()), n_batches // 10
        for batch in range(step, n_batches + 1, step):
            began = time.perf_counter()
            for file in files[batch - step : batch]:
                (arriving / file.name).symlink_to(file)
            query.processAllAvailable()
            found.append(measure(spark, batch, ledger, (time.perf_counter() - began) / step))
            say(f"{edge}: {found[-1]}")
        query.stop()
    return found


def measure(spark: SparkSession, batch: int, ledger: str, seconds: float) -> Memory:
    """Collect garbage on both sides, then look."""
    gc.collect()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    # What a collection finds to be no longer used, Spark's cleaner lets go of afterwards: broadcast tables above all.
    for _ in range(3):
        jvm.java.lang.System.gc()
        time.sleep(1)
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = sum(len(names) for _, _, names in os.walk(ledger))
    return Memory(batch, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, heap / 1e6, files, seconds)


def say(text: str) -> None:
    """Progress, apart from the results."""
    print(text, file=sys.stderr, flush=True)


PARTS: dict[str, tuple[str, Callable[[SparkSession, argparse.Namespace, Claims], list[str]]]] = {
    "rows": ("Time of a batch DataFrame", rows_part),
    "batches": ("The driver over many batches", batches_part),
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "anabranch-benchmark")
    options.add_argument("--only", choices=PARTS, help="one part")
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--quick", action="store_true", help="small sizes, to try the script")
    options.add_argument("--write", action="store_true", help="store the tables under benchmarks/results")
    chosen = options.parse_args()
    spark = quiet_session("local[2]", spark_sql_ui_retainedExecutions="20", **REMEMBERED)
    head = ["# What grows on Spark, and what does not", "", *(__doc__ or "").strip().splitlines()[4:5]]
    chosen_parts = [PARTS[chosen.only]] if chosen.only else PARTS.values()
    parts = {title: partial(part, spark, chosen) for title, part in chosen_parts}
    return run_parts(RESULTS, head, parts, spark.version, chosen.write)


if __name__ == "__main__":
    sys.exit(main())
