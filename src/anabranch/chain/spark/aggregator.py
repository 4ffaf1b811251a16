"""The aggregator of a chain: partial states of all operators, each merged by its own keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Row

from anabranch.chain.spark.settings import Operator
from anabranch.spark.merging.blobs import decode, encode
from anabranch.spark.merging.slot_numbers import SPREAD, slots_of
from anabranch.spark.merging.slots import Slots
from anabranch.spark.workers.partial_states import TUPLES

# What leaves the aggregator.
BLOBS = "operator int, blob binary"


def aggregator_slots(operator: int) -> list[int]:
    """The aggregator's slots of an operator: every operator has its own."""
    return slots_of(SPREAD * (operator + 1))[-SPREAD:]


class MergeAll(Slots):
    """The aggregator's slot of any operator: keeps the merged states for good, and gives those that changed."""

    def __init__(self, operators: tuple[Operator, ...]) -> None:
        super().__init__(operators[0].partial_states)
        self.operators = operators

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Called once per batch and slot; a slot belongs to one operator."""
        tables = []
        for row in rows:
            self.partial_states = self.operators[row["operator"]].partial_states
            operator = row["operator"]
            tables.append(decode(row["blob"]))
        new = tables[0] if len(tables) == 1 else self.partial_states.merge(pa.concat_tables(tables))
        for touched in self.update(new):
            yield Row(operator=operator, blob=encode(touched))


class Tag:
    """Merged states of all operators as rows of one table, each in the column of its operator.

    Parameters
    ----------
    schema
        Of the table.
    columns
        Number of the column of each operator that has answers.
    """

    def __init__(self, schema: pa.Schema, columns: Mapping[int, int]) -> None:
        self.schema, self.columns = schema, columns

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run by `mapInArrow`."""
        for batch in batches:
            for number, blob in zip(batch["operator"].to_pylist(), batch["blob"], strict=True):
                for states in decode(blob.as_py()).drop([TUPLES]).to_batches():
                    yield self._tagged(states, self.columns[number])

    def _tagged(self, states: pa.RecordBatch, at: int) -> pa.RecordBatch:
        name = pa.array([self.schema.names[at]] * states.num_rows, pa.string())
        columns = [name, *(pa.nulls(states.num_rows, field.type) for field in list(self.schema)[1:])]
        fields = list(self.schema.field(at).type)
        own = [column.cast(field.type) for column, field in zip(states.columns, fields, strict=True)]
        columns[at] = pa.StructArray.from_arrays(own, fields=fields)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
