"""The planned edge: native expressions driven by a table; no tuple leaves the JVM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch.groupings import Plan, Report
from anabranch.hashing import MultiplyShift
from anabranch.spark.columns.keys import quoted
from anabranch.spark.edges.row_number import row_number
from anabranch.spark.plans.plan_source import as_rows, plan_rows
from anabranch.spark.settings import HASH, WORKER, QuerySettings

# Keys of a batch DataFrame that a plan looks at. Whole-key placement needs them all; it must fit the driver.
_HOT_KEYS = 10_000
_HOT_KEYS_EACH = 500
_ALL_KEYS = 2_000_000


def route_by_plan(df: DataFrame, settings: QuerySettings) -> DataFrame:
    """Add the worker of each row: from the plan where the key is in it, else the key's home."""
    keys = [quoted(key) for key in settings.keys]
    if not settings.grouping.by_key:
        return df.withColumn(WORKER, _dealt(df, F.lit(settings.n_workers), settings))
    df = df.withColumn(HASH, F.xxhash64(*keys))
    home = home_of(F.col(HASH), settings)
    plan = _plan_rows(df, settings)
    if plan is None:
        return df.withColumn(WORKER, home).drop(HASH)
    plan = plan.select(F.col("hash").alias(HASH), F.col("workers").alias("__anabranch_workers"))
    workers = F.col("__anabranch_workers")
    return (
        df.join(F.broadcast(plan), HASH, "left")
        .withColumn(WORKER, F.coalesce(F.get(workers, _dealt(df, F.size(workers), settings)), home))
        .drop(HASH, "__anabranch_workers")
    )


def _dealt(df: DataFrame, n: Column, settings: QuerySettings) -> Column:
    """A number below `n` for each row, as good as random, and the same whenever the row is routed again.

    A stream's rows are dealt out by their numbers within their tasks: Spark's random numbers do not repeat there. Only
    over Spark Connect there is nothing but them, unless `row_id` names columns that tell rows apart.
    """
    if settings.row_id:
        told_apart = [quoted(name) for name in settings.row_id]
    elif df.isStreaming and (number := row_number(df)) is not None:
        told_apart = [F.spark_partition_id(), number]
    else:
        return (F.rand(settings.seed) * n).cast("int")
    mixed = F.xxhash64(F.lit(settings.seed).cast("long"), *told_apart)
    return F.pmod(mixed, n.cast("long")).cast("int")


def home_of(hashed: Column, settings: QuerySettings) -> Column:
    """The worker that `MultiplyShift.first` gives."""
    if settings.seed:
        hashed = F.xxhash64(F.lit(settings.seed).cast("long"), hashed)
    scaled = F.shiftrightunsigned(hashed, 32) * F.lit(settings.n_workers).cast("long")
    return F.shiftrightunsigned(scaled, 32).cast("int")


def _plan_rows(df: DataFrame, settings: QuerySettings) -> DataFrame | None:
    """Keys that do not go home, with their workers; None where all keys go home.

    A grouping that does not learn has one table for good. Of the others, a stream makes a table of each batch for the
    next, and a batch DataFrame one from an exact count of that very data.
    """
    if settings.grouping.learns and df.isStreaming:
        return plan_rows(df.sparkSession, settings)
    if settings.grouping.learns:
        plan = plan_from_counts(df.select(HASH), settings)
    else:
        plan = Plan(table=settings.grouping.table(Plan(), settings.n_workers, settings.seed))
    rows = as_rows(plan)
    if not (rows.num_rows or settings.grouping.learns):
        return None
    return df.sparkSession.createDataFrame(pa.Table.from_batches([rows]))


def plan_from_counts(hashes: DataFrame, settings: QuerySettings) -> Plan:
    """Count every key natively and plan for it."""
    limit = _ALL_KEYS if settings.grouping.needs_counts else max(_HOT_KEYS, _HOT_KEYS_EACH * settings.n_workers)
    counts = hashes.groupBy(HASH).agg(F.count(F.lit(1)).alias("n"))
    heaviest = counts.orderBy(F.desc("n"), HASH).limit(limit).toArrow()
    hot_keys, hot_counts = heaviest[HASH].to_numpy().view(np.uint64), heaviest["n"].to_numpy()
    exact, cold = Report(hot_keys=hot_keys, hot_counts=hot_counts), None
    tuples, n_keys = int(hot_counts.sum()), len(hot_keys)
    if n_keys == limit:
        tuples, n_keys, cold = _cold(counts, exact, settings)
    exact = replace(exact, tuples=tuples, partials=n_keys)
    return settings.grouping.plan_from_counts(None, [exact], settings.n_workers, settings.seed, cold)


def _cold(counts: DataFrame, hot: Report, settings: QuerySettings) -> tuple[int, int, NDArray[np.int64]]:
    """All tuples and keys, and what the keys that are not hot bring to each home."""
    homes = counts.groupBy(home_of(F.col(HASH), settings).alias("home"))
    by_home = homes.agg(F.sum("n").alias("n"), F.count(F.lit(1)).alias("keys")).toArrow()
    cold = np.zeros(settings.n_workers, dtype=np.int64)
    cold[by_home["home"].to_numpy()] = by_home["n"].to_numpy()
    tuples = int(cold.sum())
    np.subtract.at(cold, MultiplyShift().first(hot.hot_keys, settings.n_workers, settings.seed), hot.hot_counts)
    return tuples, int(by_home["keys"].to_numpy().sum()), cold
