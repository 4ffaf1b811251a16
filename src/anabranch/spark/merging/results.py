"""From states of whole keys to what the user sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from anabranch.aggregates import Types
from anabranch.spark.columns.keys import quote, quoted
from anabranch.spark.columns.types import spark_of
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates


def results(merged: DataFrame, partial_states: PartialStates, types: Types) -> DataFrame:
    """Keys and the named results."""
    columns, ansi = [quoted(key) for key in partial_states.keys], is_ansi(merged.sparkSession)
    return merged.select(*columns, *(_result(bound, types, ansi).alias(bound.name) for bound in partial_states.bounds))


def results_within(struct: str, partial_states: PartialStates, types: Types, ansi: bool) -> Column:
    """The same from keys and states that are the fields of a struct; null where the struct is."""
    keys = [F.col(f"{quote(struct)}.{quote(key)}").alias(key) for key in partial_states.keys]
    named = [_result(bound, types, ansi, f"{quote(struct)}.").alias(bound.name) for bound in partial_states.bounds]
    return F.when(quoted(struct).isNotNull(), F.struct(*keys, *named)).alias(struct)


def is_ansi(spark: SparkSession) -> bool:
    """Whether an overflow is an error to the session."""
    return str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"


def _result(bound: BoundAggregate, types: Types, ansi: bool, within: str = "") -> Column:
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
