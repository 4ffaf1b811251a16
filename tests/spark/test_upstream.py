"""What a second pass over a DataFrame would run again, and that by default nothing of it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.aggregates import Count
from anabranch.spark import balance
from anabranch.spark.generator.source import generate
from anabranch.spark.upstream import run_again
from anabranch.streams import Zipf

pytestmark = pytest.mark.spark

FUNCTIONS, STEPS = "your functions upstream", "the steps upstream that are not deterministic"
SOURCE, RDD = "the data source upstream", "the RDD or Python list upstream"
SCHEMA = "key string, v bigint"


def same(column: Column | str) -> Column:
    return F.udf(lambda value: value, "string")(column)


class Pairs:
    """A table function."""

    def eval(self) -> Iterator[tuple[str]]:
        yield ("a",)


def plain(spark: SparkSession) -> DataFrame:
    return spark.range(6).selectExpr("cast(id % 3 as string) AS key", "id AS v")


def in_subquery(spark: SparkSession) -> DataFrame:
    generate(spark, Zipf(n_tuples=3, n_keys=3, z=1.0), streaming=False).createOrReplaceTempView("generated")
    return spark.sql("SELECT id AS key FROM range(3) WHERE (SELECT max(value) FROM generated) > 1")


RUN_AGAIN: dict[str, tuple[str, Callable[[SparkSession], DataFrame]]] = {
    "udf": (FUNCTIONS, lambda spark: plain(spark).withColumn("key", same("key"))),
    "udf of a column that is not read": (FUNCTIONS, lambda spark: plain(spark).withColumn("z", same("key"))),
    "udf in a filter": (FUNCTIONS, lambda spark: plain(spark).where(same("key") == "1")),
    "udf in a join": (FUNCTIONS, lambda spark: plain(spark).join(plain(spark).select(same("key").alias("key")), "key")),
    "udf on what is cached": (FUNCTIONS, lambda spark: plain(spark).cache().withColumn("key", same("key"))),
    "mapInArrow": (FUNCTIONS, lambda spark: plain(spark).mapInArrow(lambda batches: batches, SCHEMA)),
    "mapInPandas": (FUNCTIONS, lambda spark: plain(spark).mapInPandas(lambda frames: frames, SCHEMA)),
    "applyInArrow": (FUNCTIONS, lambda spark: plain(spark).groupBy("key").applyInArrow(lambda one: one, SCHEMA)),
    "udtf": (
        FUNCTIONS,
        lambda spark: plain(spark).lateralJoin(F.udtf(Pairs, returnType="z string").asDeterministic()()),
    ),
    "rand": (STEPS, lambda spark: plain(spark).withColumn("key", (F.rand() * 3).cast("int"))),
    "rand in a filter": (STEPS, lambda spark: plain(spark).where(F.rand() < 0.5)),
    "source in Python": (SOURCE, lambda spark: generate(spark, Zipf(n_tuples=3, n_keys=3, z=1.0), streaming=False)),
    "source in a subquery": (SOURCE, in_subquery),
    "rdd": (RDD, lambda spark: spark.sparkContext.parallelize([("a", 1)]).map(lambda row: row).toDF(SCHEMA)),
}
ONCE: dict[str, Callable[[SparkSession], DataFrame]] = {
    "native": lambda spark: plain(spark).where("v > 1").join(plain(spark), "key").groupBy("key").count(),
    "Arrow table": lambda spark: spark.createDataFrame(pa.table({"key": ["a"]})),
    "SQL": lambda spark: spark.sql("WITH a AS (SELECT id AS key FROM range(3)) SELECT * FROM a WHERE key < (SELECT 2)"),
    "cached": lambda spark: plain(spark).withColumn("key", same("key")).cache(),
    "checkpoint": lambda spark: plain(spark).withColumn("key", same("key")).localCheckpoint(),
}


@pytest.fixture(autouse=True)
def nothing_stays_cached(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


@pytest.mark.parametrize(("what", "made"), RUN_AGAIN.values(), ids=RUN_AGAIN)
def test_what_would_run_again_is_said_and_makes_the_adaptive_edge_the_default(spark, what, made):
    df = made(spark)
    assert run_again(df) == what
    balanced = balance(df, "key", n_workers=2)
    assert balanced.settings.edge == "adaptive"
    assert f"would run {what} a second time" in balanced.why_edge
    assert balance(df, "key", n_workers=2, edge="planned").settings.edge == "planned"
    # Neither needs a count, and where the count is asked for it is made.
    for grouping in ("key", "shuffle", "offline-greedy"):
        assert balance(df, "key", grouping, 2).settings.edge == "planned"


@pytest.mark.parametrize("made", ONCE.values(), ids=ONCE)
def test_where_nothing_runs_again_the_planned_edge_is_the_default(spark, made):
    df = made(spark)
    assert run_again(df) is None
    assert balance(df, "key", n_workers=2).settings.edge == "planned"


def test_files_are_read_natively(spark, tmp_path):
    for name in ("csv", "parquet"):
        plain(spark).write.format(name).save(str(tmp_path / name))
        assert run_again(spark.read.format(name).load(str(tmp_path / name))) is None


def test_a_key_that_a_function_computes_counts_as_one(spark):
    assert balance(plain(spark), same("key").alias("k"), n_workers=2).settings.edge == "adaptive"


def test_what_is_cached_after_it_was_looked_at_is_used(spark):
    df = plain(spark).withColumn("key", same("key"))
    assert run_again(df) == FUNCTIONS
    df.cache()
    assert run_again(df) is None
    assert "InMemoryTableScan" in df._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(("edge", "times"), [(None, 1), ("adaptive", 1), ("local", 1), ("planned", 2)])
def test_each_edge_runs_what_is_upstream_as_often_as_the_guide_says(spark, tmp_path: Path, edge, times):
    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import uuid

        (tmp_path / uuid.uuid4().hex).touch()
        yield from batches

    df = spark.range(0, 6, 1, 1).selectExpr("cast(id % 3 as string) AS key").mapInArrow(noted, "key string")
    found = balance(df, "key", n_workers=2, edge=edge).aggregate(n=Count()).collect()
    assert sorted(map(tuple, found)) == [("0", 2), ("1", 2), ("2", 2)]
    assert len(list(tmp_path.iterdir())) == times
