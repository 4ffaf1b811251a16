"""Sums at the end of their range: one answer, whether the parts of a key are merged in Python or by Spark."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.aggregates import Mean, Sum, Variance, WeightedMean
from anabranch.groupings import KeyGrouping, ShuffleGrouping
from anabranch.spark import balance

pytestmark = pytest.mark.spark

MAX = sys.float_info.max
DOUBLES = {
    "cancels": [1e308, 1e308, -1e308, -1e308],
    "in range": [MAX, MAX, -MAX],
    "beyond": [MAX, 2.0**969, 2.0**969],
    "infinite": [1e308, 1e308, -math.inf],
    "no number": [math.inf, -math.inf, 1.0],
    "fine": [3e-40, 1e-30 / 3, -1e-30 / 7, 1e-30],
    "mixed": [1.4e39, 1e-300, -1.4e39, 0.5],
}


def test_sums_of_any_doubles_do_not_depend_on_how_they_were_split(spark: SparkSession) -> None:
    pairs = [(key, value) for key, values in DOUBLES.items() for value in values]
    keys, values = zip(*pairs, strict=True)
    df = spark.createDataFrame(pa.table({"key": keys, "x": values, "w": [1e8] * len(pairs)})).coalesce(1)
    found = []
    for grouping, n_workers in ((KeyGrouping(), 1), (ShuffleGrouping(), 4)):
        balanced = balance(df, "key", grouping, n_workers, edge="adaptive")
        answer = balanced.aggregate(s=Sum("x"), m=Mean("x"), w=WeightedMean("x", "w"), v=Variance("x")).toArrow()
        found.append(sorted(map(repr, answer.to_pylist())))
    assert found[0] == found[1]
    sums = {row["key"]: row["s"] for row in answer.to_pylist()}
    assert sums["cancels"] == 0.0 and sums["in range"] == MAX and sums["beyond"] == math.inf
    assert sums["infinite"] == -math.inf and math.isnan(sums["no number"])


LARGEST = Decimal("9" * 36 + ".99")
LEAST = LARGEST.copy_negate()
WHOLE = {
    "cancels": [(2**62, LARGEST), (2**62, LARGEST), (-(2**62), LEAST), (-(2**62), LEAST)],
    "least": [(-(2**63), LEAST)],
    "small": [(-3, Decimal("-0.07")), (1, Decimal("0.05")), (None, None)],
    "null": [(None, None)],
}
TOO_LARGE = {"high": [(2**63 - 1, LARGEST), (5, Decimal("0.01"))], "low": [(-(2**63), LEAST), (-2, Decimal("-9"))]}


@contextmanager
def ansi(spark: SparkSession, on: bool) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", on)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def whole_numbers(spark: SparkSession, rows: dict[str, list[tuple[int | None, Decimal | None]]]) -> DataFrame:
    found = [(key, *pair) for key, pairs in rows.items() for pair in pairs]
    return spark.createDataFrame(found, "key string, q bigint, d decimal(38, 2)").coalesce(1)


def summed(df: DataFrame, n_workers: int) -> dict[str, tuple[int | None, Decimal | None]]:
    grouping = KeyGrouping() if n_workers == 1 else ShuffleGrouping()
    rows = balance(df, "key", grouping, n_workers, edge="adaptive").aggregate(q=Sum("q"), d=Sum("d")).collect()
    return {row.key: (row.q, row.d) for row in rows}


@pytest.mark.parametrize("n_workers", [1, 3])
def test_only_a_total_that_is_too_large_overflows(spark: SparkSession, n_workers: int) -> None:
    exact = {"cancels": (0, 0), "least": (-(2**63), LEAST), "small": (-2, Decimal("-0.02")), "null": (None, None)}
    with ansi(spark, True):
        assert summed(whole_numbers(spark, WHOLE), n_workers) == exact
    with ansi(spark, False):
        df = whole_numbers(spark, TOO_LARGE)
        plain = {
            row.key: (row.q, row.d)
            for row in df.groupBy("key").agg(F.sum("q").alias("q"), F.sum("d").alias("d")).collect()
        }
        assert plain == {"high": (-(2**63) + 4, None), "low": (2**63 - 2, None)}
        assert summed(df, n_workers) == plain


@pytest.mark.parametrize(("column", "room"), [("q", "64 bits"), ("d", "38 digits")])
def test_under_ansi_an_overflow_names_the_column(spark: SparkSession, column: str, room: str) -> None:
    with ansi(spark, True):
        answer = balance(whole_numbers(spark, TOO_LARGE), "key", ShuffleGrouping(), 2).aggregate(total=Sum(column))
        with pytest.raises(PySparkException, match=f"the sum of {column} must fit in {room}"):
            answer.collect()
