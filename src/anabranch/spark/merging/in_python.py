"""Merging of a batch DataFrame by the aggregates themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from anabranch.spark.columns.keys import quoted
from anabranch.spark.merging.way import Merging
from anabranch.spark.workers.chunks import chunks
from anabranch.spark.workers.partial_states import TUPLES


class InPython(Merging):
    """States that only the aggregate can merge: all keys of a task at a time, not one by one."""

    def merged(self, routed: DataFrame) -> DataFrame:
        """Bring the states of each key together, and merge them."""
        partial_states = self.partial_states

        def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for table in chunks(batches, None):
                held = table.append_column(TUPLES, pa.array([0] * table.num_rows, pa.int64()))
                yield from partial_states.merge(held).drop([TUPLES]).to_batches()

        by_key = self.partials(routed).repartition(*map(quoted, partial_states.keys))
        return by_key.mapInArrow(merge, self.columns)
