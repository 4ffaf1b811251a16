"""Merging at the end of a window, where only the aggregate can merge some states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructField, StructType

from anabranch.aggregates import Groups
from anabranch.spark.columns.keys import grouped, quoted
from anabranch.spark.columns.types import spark_of
from anabranch.spark.merging.fingerprint import aggregated
from anabranch.spark.merging.way import Merging
from anabranch.spark.workers.partial_states import BoundAggregate


class InWindows(Merging):
    """Spark collects the states of a key until its window closes; then the aggregate merges them.

    A key holds as many partial states as came in while its window was open, so this is for keys with event time only.
    """

    def merged(self, routed: DataFrame) -> DataFrame:
        """Merge all states of an aggregate at once, as structs in a list."""
        keys, bounds = self.partial_states.keys, self.partial_states.bounds
        collected = {bound.name: F.collect_list(F.struct(*map(quoted, bound.states))) for bound in bounds}
        by_key = grouped(self.partials(routed), self.schema, keys)
        merged = aggregated(by_key, collected, self.partial_states.fingerprint, lists=True)
        for bound in bounds:
            merged = merged.withColumn(bound.name, _merge_udf(bound)(quoted(bound.name)))
        states = [quoted(bound.name).getField(name).alias(name) for bound in bounds for name in bound.states]
        return merged.select(*map(quoted, keys), *states)


def _merge_udf(bound: BoundAggregate) -> Any:
    kinds = StructType(
        [StructField(name, spark_of(column.type)) for name, column in zip(bound.states, bound.columns, strict=True)]
    )

    def merge(lists: pa.Array) -> pa.Array:
        groups = Groups(lists.value_parent_indices().to_numpy().astype(np.int64), len(lists))
        states = tuple(lists.flatten().flatten())
        return pa.StructArray.from_arrays(list(bound.merge(groups, states)), bound.states)

    merge.__annotations__ = {"lists": pa.Array, "return": pa.Array}
    return arrow_udf(merge, kinds)  # type: ignore[call-overload]
