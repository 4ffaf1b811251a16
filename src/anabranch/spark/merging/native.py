"""Merging by Spark's own functions."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.spark.columns.keys import grouped, quoted
from anabranch.spark.merging.fingerprint import aggregated
from anabranch.spark.merging.way import Merging
from anabranch.spark.workers.partial_states import PartialStates


class Natively(Merging):
    """One `groupBy`: on a stream, with Spark's own state store, checkpoint and watermark."""

    def merged(self, routed: DataFrame) -> DataFrame:
        """Merge every column of a state by the function that the aggregate names for it."""
        merged = {
            name: getattr(F, str(column.merge))(quoted(name))
            for bound in self.partial_states.bounds
            for name, column in zip(bound.states, bound.columns, strict=True)
        }
        by_key = grouped(self.partials(routed), self.schema, self.partial_states.keys)
        return aggregated(by_key, merged, self.partial_states.fingerprint)


def merges_natively(partial_states: PartialStates) -> bool:
    """Whether this Spark has a function for every merge."""
    merges = [column.merge for bound in partial_states.bounds for column in bound.columns]
    return all(merge is not None and hasattr(F, merge) for merge in merges)
