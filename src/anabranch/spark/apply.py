"""A user's function as a worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string

from anabranch.aggregates import Groups, check_merge
from anabranch.errors import ConfigError, InputError
from anabranch.spark.keys import quoted
from anabranch.spark.settings import Settings
from anabranch.spark.task import Task
from anabranch.spark.types import arrow_of
from anabranch.spark.worker import TUPLES, Summary, Worker, chunks


class Apply:
    """The function that `mapInArrow` runs once a worker and batch: the user's, over all rows of the worker.

    Parameters
    ----------
    func, schema
        As in `Balanced.applyInArrow`.
    settings
        Of the query.
    rows
        Schema of the rows that come in.
    """

    def __init__(
        self, func: Callable[[pa.Table], pa.Table], schema: StructType | str, settings: Settings, rows: StructType
    ) -> None:
        parsed = _parse_datatype_string(schema) if isinstance(schema, str) else schema
        if not isinstance(parsed, StructType):
            raise ConfigError(f"schema must be that of a table, got {schema!r}")
        missing = [key for key in settings.keys if key not in parsed.names]
        if missing:
            raise ConfigError(f"schema must hold the key columns; {', '.join(missing)} is missing")
        self.func, self.schema, self.settings = func, parsed, settings
        self.types = pa.schema([(field.name, arrow_of(field.dataType)) for field in parsed])

    def merges(self, merge: Mapping[str, str]) -> list[Column]:
        """The declared merges as columns."""
        others = [name for name in self.schema.names if name not in self.settings.keys]
        if set(merge) != set(others):
            raise ConfigError(
                f"merge must name a function for each of {', '.join(others)}, got {', '.join(merge) or 'nothing'}"
            )
        for name, function in merge.items():
            check_merge(name, function)
            if not hasattr(F, function):
                raise ConfigError(f"merge of {name}: this Spark has no aggregate function {function}")
        return [getattr(F, merge[name])(quoted(name)).alias(name) for name in others]

    def _declared(self, out: pa.Table) -> pa.Table:
        """What the function returned, as the schema says: Spark reads it as the declared types, whatever they are."""
        missing = [name for name in self.types.names if name not in out.column_names]
        if missing:
            raise InputError(
                f"the function returned columns {', '.join(out.column_names)}; the schema asks for {', '.join(missing)}"
            )
        out = out.select(self.types.names)
        for field, given in zip(self.types, out.schema, strict=True):
            # Numbers as text would be merged as text.
            if _is_text(field.type) != _is_text(given.type):
                raise InputError(
                    f"the function returned {given.type} in column {field.name}, the schema says {field.type}"
                )
        return out.cast(self.types)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the function returns for everything that this worker received."""
        task = Task.current()
        tuples, seconds, counts = 0, 0.0, None
        for table in chunks(batches, None):
            began = time.perf_counter()
            if self.settings.work_us:
                time.sleep(table.num_rows * self.settings.work_us * 1e-6)
            out = self.func(table)
            tuples, seconds = table.num_rows, time.perf_counter() - began
            if self.settings.ledger is not None:
                groups, keys = Groups.of(table, self.settings.keys)
                counts = keys.append_column(TUPLES, groups.count())
            yield from self._declared(out).to_batches()
        if self.settings.ledger is not None:
            Worker(Summary(self.settings.keys, ()), self.settings).report(task, counts, tuples, seconds)


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column holds strings, in whichever of Arrow's layouts."""
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
