"""What every way of merging has: rows on their workers in, states of whole keys out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from anabranch.spark.columns.types import spark_of
from anabranch.spark.plans.unwritten import mapped
from anabranch.spark.settings import QuerySettings
from anabranch.spark.workers.partial_states import PartialStates
from anabranch.spark.workers.worker import Worker


@dataclass(frozen=True)
class Merging(ABC):
    """A way in which partial states of workers become the states of whole keys.

    Parameters
    ----------
    schema
        Of the rows.
    partial_states
        What workers make of them.
    settings
        Of the query.
    """

    schema: StructType
    partial_states: PartialStates
    settings: QuerySettings

    def before(self, rows: DataFrame) -> DataFrame:
        """The rows with what this way needs upstream of the exchange."""
        return rows

    @abstractmethod
    def merged(self, routed: DataFrame) -> DataFrame:
        """Keys and their states, out of rows on their workers."""

    @property
    def columns(self) -> StructType:
        """Of keys and their states."""
        return partial_schema(self.schema, self.partial_states)

    def partials(self, routed: DataFrame) -> DataFrame:
        """Partial states: a row for each key and worker."""
        return mapped(routed, Worker(self.partial_states, self.settings).__call__, self.columns, self.settings.ledger)


def partial_schema(schema: StructType, partial_states: PartialStates) -> StructType:
    """Columns of partial states: keys, then states."""
    fields = [StructField(name, schema[name].dataType) for name in partial_states.keys]
    for bound in partial_states.bounds:
        for name, column in zip(bound.states, bound.columns, strict=True):
            fields.append(StructField(name, spark_of(column.type)))
    return StructType(fields)
