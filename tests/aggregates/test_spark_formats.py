"""What Spark makes of the states: its own sketches, merges, estimates and types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from anabranch.aggregates import (
    Aggregate,
    DistinctCount,
    Groups,
    Max,
    Mean,
    Min,
    Quantiles,
    StateColumn,
    Sum,
    Types,
    Variance,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def one_group(n: int) -> Groups:
    return Groups(np.zeros(n, np.int64), 1)


def result_of(spark: SparkSession, aggregate: Aggregate, partials: list[bytes | None], type_: pa.DataType) -> Any:
    """What Spark computes from partial states in one binary column."""
    types = {aggregate.inputs[0]: type_}
    (column,) = aggregate.state(types)
    frame = spark.createDataFrame([(partial,) for partial in partials], "sketch binary")
    merged = frame.selectExpr(f"{column.merge}(sketch) AS sketch")
    return merged.selectExpr(str(aggregate.native_result(types)).format(sketch="sketch")).collect()[0][0]


def coupons_of(sketch: bytes) -> list[int]:
    ints = np.frombuffer(sketch[8 if sketch[7] & 3 == 0 else 12 :], np.uint32)
    return sorted(ints[ints > 0].tolist())


@pytest.mark.parametrize(
    "sql", ["id", "CAST(id AS INT)", "CONCAT('visitor ', id, ' of a page')", "CAST(CAST(id AS STRING) AS BINARY)"]
)
@pytest.mark.parametrize("n", [3, 300, 5000])
def test_a_hyperloglog_sketch_holds_what_sparks_own_holds(spark: SparkSession, sql: str, n: int) -> None:
    values = spark.range(n).selectExpr(f"{sql} AS value")
    theirs = bytes(values.selectExpr("hll_sketch_agg(value, 12)").collect()[0][0])
    column = values.toArrow()["value"].combine_chunks()
    ours = DistinctCount("value").add(one_group(n), column)[0][0].as_py()
    assert ours[7] == theirs[7]
    if n == 5000:
        assert ours[16:] == theirs[16:]
    else:
        assert coupons_of(ours) == coupons_of(theirs)


@pytest.mark.parametrize("n", [0, 5, 200, 20_000])
def test_spark_estimates_distinct_counts_from_partial_states(spark: SparkSession, n: int) -> None:
    distinct, values = DistinctCount("value"), pa.array(np.arange(n))
    parts = distinct.add(Groups(np.arange(n) % 4, 4), values)[0].to_pylist()
    assert result_of(spark, distinct, parts, pa.int64()) == pytest.approx(n, rel=0.05)


@pytest.fixture
def kll(spark: SparkSession) -> None:
    from pyspark.sql import functions

    if not hasattr(functions, "kll_merge_agg_double"):
        pytest.skip("Spark merges KLL sketches since 4.2; before, we do")


@pytest.mark.usefixtures("kll")
@pytest.mark.parametrize("n", [1, 2, 150, 20_000])
def test_spark_computes_quantiles_from_partial_states(spark: SparkSession, n: int) -> None:
    quantiles = Quantiles("value", (0.0, 0.25, 0.5, 1.0))
    values = np.random.default_rng(1).permutation(n).astype(float)
    parts = quantiles.add(Groups(np.arange(n) % 4, 5), pa.array(values))[0].to_pylist()
    exact = [max(0, math.ceil(p * n) - 1) for p in quantiles.probabilities]
    found = result_of(spark, quantiles, parts, pa.float64())
    assert found == exact if n <= quantiles.k else found == pytest.approx(exact, abs=0.03 * n)


@pytest.mark.usefixtures("kll")
def test_quantiles_of_nothing_are_null(spark: SparkSession) -> None:
    assert result_of(spark, Quantiles("value"), [None, None], pa.float64()) is None


def finished(spark: SparkSession, aggregate: Aggregate, types: Types, state: tuple[pa.Array, ...]) -> pa.Array:
    native, names = aggregate.native_result(types), [column.name for column in aggregate.state(types)]
    if native is None:
        return aggregate.result(*state)
    frame = spark.createDataFrame(pa.Table.from_arrays(list(state), names))
    return frame.selectExpr(native.format(ansi="TRUE", **{name: name for name in names})).toArrow()[0].combine_chunks()


@dataclass(frozen=True)
class Share(Aggregate):
    """Different values per value: an aggregate of one's own that is built on two others."""

    value: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.value,)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (*DistinctCount(self.value).state(types), StateColumn("n", pa.int64(), "sum"))

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (*DistinctCount(self.value).add(groups, *columns), groups.count(*columns))

    def native_result(self, types: Types) -> str | None:
        return f"{DistinctCount(self.value).native_result(types)} / {{n}}"

    def result_type(self, types: Types) -> pa.DataType:
        return pa.float64()


def test_what_only_spark_computes_can_be_part_of_an_aggregate_of_ones_own(spark: SparkSession) -> None:
    share, values = Share("value"), pa.array([1, 2, 1, 2, 1, 2, 3, 3])
    found = finished(spark, share, {"value": values.type}, share.add(one_group(8), values))
    assert found.to_pylist() == [3 / 8]


NUMBERS = [Decimal("12.34"), Decimal("-0.05"), None, Decimal("7.01"), Decimal("7.00")]


@pytest.mark.parametrize("sql", ["smallint", "bigint", "float", "double", "decimal(12,2)", "decimal(28,7)"])
def test_results_and_types_are_sparks(spark: SparkSession, sql: str) -> None:
    values = spark.createDataFrame([(v,) for v in NUMBERS], "value decimal(12,2)").selectExpr(f"CAST(value AS {sql})")
    values = values.toDF("value")
    column = values.toArrow()["value"].combine_chunks()
    types, groups = {"value": column.type}, one_group(len(column))
    aggregates: dict[str, Aggregate] = {
        "sum": Sum("value"),
        "avg": Mean("value"),
        "min": Min("value"),
        "max": Max("value"),
    }
    if not pa.types.is_decimal(column.type):
        aggregates |= {"var_samp": Variance("value"), "var_pop": Variance("value", population=True)}
    theirs = values.selectExpr(*(f"{name}(value) AS {name}" for name in aggregates)).toArrow()
    for name, aggregate in aggregates.items():
        state = aggregate.add(groups, column)
        ours = finished(spark, aggregate, types, state)
        assert ours.type == aggregate.result_type(types) == theirs.schema.field(name).type
        exact = name in ("min", "max") or pa.types.is_decimal(ours.type)
        expected = theirs[name].to_pylist()
        assert ours.to_pylist() == (expected if exact else pytest.approx(expected, rel=1e-12))
