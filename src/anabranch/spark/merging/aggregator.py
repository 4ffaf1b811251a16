"""The aggregator: partial states of a key become one, natively where Spark can merge them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructField, StructType

from anabranch.aggregates import Groups
from anabranch.aggregates.aggregate import Types
from anabranch.spark.columns.keys import quote, quoted, restore_metadata
from anabranch.spark.columns.types import spark_of
from anabranch.spark.merging.fingerprint import aggregated
from anabranch.spark.workers.worker import TUPLES, Bound, Summary, chunks


def partial_schema(schema: StructType, summary: Summary) -> StructType:
    """Columns of partial states: keys, then states."""
    fields = [StructField(name, schema[name].dataType) for name in summary.keys]
    for bound in summary.bounds:
        for name, column in zip(bound.states, bound.columns, strict=True):
            fields.append(StructField(name, spark_of(column.type)))
    return StructType(fields)


def merges_natively(summary: Summary) -> bool:
    """Whether this Spark has a function for every merge."""
    merges = [column.merge for bound in summary.bounds for column in bound.columns]
    return all(merge is not None and hasattr(F, merge) for merge in merges)


def merge_natively(partials: DataFrame, schema: StructType, summary: Summary) -> DataFrame:
    """One stateful `groupBy`: Spark's own state store, checkpoint and watermark."""
    grouped = restore_metadata(partials, schema, summary.keys).groupBy(*(quoted(key) for key in summary.keys))
    merged = {
        name: getattr(F, str(column.merge))(quoted(name))
        for bound in summary.bounds
        for name, column in zip(bound.states, bound.columns, strict=True)
    }
    return aggregated(grouped, merged, summary.fingerprint)


def merge_windows(partials: DataFrame, schema: StructType, summary: Summary) -> DataFrame:
    """The same where only the aggregate can merge some states: Spark collects those until their window closes.

    A key holds as many partial states as came in while its window was open, so this is for keys with event time only.
    """
    grouped = restore_metadata(partials, schema, summary.keys).groupBy(*(quoted(key) for key in summary.keys))
    collected = {
        bound.name: F.collect_list(F.struct(*(quoted(name) for name in bound.states))) for bound in summary.bounds
    }
    merged = aggregated(grouped, collected, summary.fingerprint, lists=True)
    for bound in summary.bounds:
        merged = merged.withColumn(bound.name, _merge_udf(bound)(quoted(bound.name)))
    states = [quoted(bound.name).getField(name).alias(name) for bound in summary.bounds for name in bound.states]
    return merged.select(*(quoted(key) for key in summary.keys), *states)


def merge_in_python(partials: DataFrame, summary: Summary, schema: StructType) -> DataFrame:
    """States that only the aggregate can merge, of a batch DataFrame: a task at a time, not a key at a time."""

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in chunks(batches, None):
            held = table.append_column(TUPLES, pa.array([0] * table.num_rows, pa.int64()))
            yield from summary.merge(held).drop([TUPLES]).to_batches()

    return partials.repartition(*(quoted(key) for key in summary.keys)).mapInArrow(merge, schema)


def _merge_udf(bound: Bound) -> Any:
    kinds = StructType(
        [StructField(name, spark_of(column.type)) for name, column in zip(bound.states, bound.columns, strict=True)]
    )

    def merge(lists: pa.Array) -> pa.Array:
        groups = Groups(lists.value_parent_indices().to_numpy().astype(np.int64), len(lists))
        states = tuple(lists.flatten().flatten())
        return pa.StructArray.from_arrays(list(bound.merge(groups, states)), bound.states)

    merge.__annotations__ = {"lists": pa.Array, "return": pa.Array}
    return arrow_udf(merge, kinds)  # type: ignore[call-overload]


def results(merged: DataFrame, summary: Summary, types: Types) -> DataFrame:
    """Keys and the named results."""
    columns, ansi = [quoted(key) for key in summary.keys], is_ansi(merged.sparkSession)
    return merged.select(*columns, *(_result(bound, types, ansi).alias(bound.name) for bound in summary.bounds))


def results_within(struct: str, summary: Summary, types: Types, ansi: bool) -> Column:
    """The same from keys and states that are the fields of a struct; null where the struct is."""
    keys = [F.col(f"{quote(struct)}.{quote(key)}").alias(key) for key in summary.keys]
    named = [_result(bound, types, ansi, f"{quote(struct)}.").alias(bound.name) for bound in summary.bounds]
    return F.when(quoted(struct).isNotNull(), F.struct(*keys, *named)).alias(struct)


def is_ansi(spark: SparkSession) -> bool:
    """Whether an overflow is an error to the session."""
    return str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"


def _result(bound: Bound, types: Types, ansi: bool, within: str = "") -> Column:
    native = bound.aggregate.native_result(types)
    paths = [within + quote(name) for name in bound.states]
    if native is not None:
        named = {column.name: path for path, column in zip(paths, bound.columns, strict=True)}
        return F.expr(native.format(**{"ansi": str(ansi).upper()} | named))
    kind = bound.aggregate.result_type(types)

    def compute(states: pa.Array) -> pa.Array:
        there = states.is_valid().to_numpy(zero_copy_only=False)
        if there.all():
            return bound.result(states.flatten(), kind)
        if not there.any():
            return pa.nulls(len(states), kind)
        done = bound.result(states.filter(pa.array(there)).flatten(), kind)
        return done.take(pa.array(np.cumsum(there) - 1, mask=~there))

    compute.__annotations__ = {"states": pa.Array, "return": pa.Array}
    udf: Any = arrow_udf(compute, spark_of(kind))  # type: ignore[call-overload]
    states = F.struct(*(F.col(path).alias(name) for path, name in zip(paths, bound.states, strict=True)))
    # Spark evaluates Python for every row, whatever stands around it.
    column: Column = udf(F.when(F.expr(within[:-1]).isNotNull(), states) if within else states)
    return column
