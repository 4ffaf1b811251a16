"""Rows of a task are numbered from 0, whenever the task runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

from anabranch.spark.edges.row_number import row_number

pytestmark = pytest.mark.spark


def test_every_run_of_a_task_numbers_its_rows_from_zero(spark):
    df = spark.range(0, 100, 1, 3)
    numbered = df.select("id", F.spark_partition_id().alias("task"), row_number(df).alias("number"))
    first, again = numbered.collect(), numbered.collect()
    assert first == again
    for task in range(3):
        numbers = [row.number for row in first if row.task == task]
        assert numbers == list(range(len(numbers))) and len(numbers) >= 33


def test_a_number_is_taken_only_where_it_is_needed(spark):
    df = spark.range(0, 10, 1, 1)
    numbered = df.select(F.when(F.col("id") % 2 == 0, row_number(df)).alias("number"))
    assert [row.number for row in numbered.collect()] == [0, None, 1, None, 2, None, 3, None, 4, None]


def test_without_a_jvm_there_is_none():
    assert row_number(SimpleNamespace(sparkSession=SimpleNamespace())) is None
