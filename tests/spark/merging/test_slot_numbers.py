"""Slots lie where Spark's hash partitioning sends them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from anabranch.spark.merging.slot_numbers import partition_of, slots_of


@given(n=st.integers(1, 60), n_partitions=st.integers(1, 40))
def test_the_ith_slot_lies_on_partition_i_and_no_two_are_alike(n, n_partitions):
    slots = slots_of(n, n_partitions)
    assert [partition_of(slot, n_partitions) for slot in slots] == [i % n_partitions for i in range(n)]
    assert len(set(slots)) == n


def test_slots_do_not_change_from_call_to_call():
    assert slots_of(7, 3) == slots_of(7, 3)
    assert slots_of(9, 3)[:7] == slots_of(7, 3)


@pytest.mark.spark
@pytest.mark.parametrize("n_partitions", [1, 2, 7, 200])
def test_partitions_are_those_of_sparks_hash(spark, n_partitions):
    numbers = [*range(300), -1, -(2**31), 2**31 - 1]
    df = spark.createDataFrame([(number,) for number in numbers], "slot int")
    found = df.select(F.pmod(F.hash("slot"), F.lit(n_partitions)).alias("p")).toArrow()["p"].to_pylist()
    assert [partition_of(number, n_partitions) for number in numbers] == found


@pytest.mark.spark
def test_spark_puts_each_slot_on_its_partition(spark):
    slots = slots_of(8, 4)
    df = spark.createDataFrame([(slot,) for slot in slots], "slot int").repartition(4, "slot")
    found = {row.slot: row.p for row in df.select("slot", F.spark_partition_id().alias("p")).collect()}
    assert [found[slot] for slot in slots] == [0, 1, 2, 3, 0, 1, 2, 3]
