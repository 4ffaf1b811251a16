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
from anabranch.spark.columns.keys import quoted
from anabranch.spark.columns.types import arrow_of
from anabranch.spark.plans.unwritten import flagged
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task
from anabranch.spark.workers.chunks import chunks
from anabranch.spark.workers.declared import declared
from anabranch.spark.workers.partial_states import TUPLES, PartialStates
from anabranch.spark.workers.worker import Worker


class PerWorker:
    """The function that `mapInArrow` runs once per worker and batch: the user's, over all rows of the worker.

    Parameters
    ----------
    func, schema
        As in `Balanced.per_worker`.
    settings
        Of the query.
    rows
        Schema of the rows that come in.
    """

    def __init__(
        self, func: Callable[[pa.Table], pa.Table], schema: StructType | str, settings: QuerySettings, rows: StructType
    ) -> None:
        parsed = _parse_datatype_string(schema) if isinstance(schema, str) else schema
        if not isinstance(parsed, StructType):
            raise ConfigError(f"schema must be that of a table, got {schema!r}")
        missing = [key for key in settings.keys if key not in parsed.names]
        if missing:
            raise ConfigError(f"schema must hold the key columns; {', '.join(missing)} is missing")
        self.func, self.schema, self.settings = func, parsed, settings
        self.types = pa.schema([(field.name, arrow_of(field.dataType)) for field in parsed])

    @property
    def answers(self) -> list[str]:
        """Columns besides the keys."""
        return [name for name in self.schema.names if name not in self.settings.keys]

    def merges(self, merge: Mapping[str, str]) -> dict[str, Column]:
        """The declared merges as columns, in an order that does not depend on how they are written."""
        others = self.answers
        if set(merge) != set(others):
            raise ConfigError(
                f"merge must name a function for each of {', '.join(others)}, got {', '.join(merge) or 'nothing'}"
            )
        for name, function in merge.items():
            check_merge(name, function)
            if not hasattr(F, function):
                raise ConfigError(f"merge of {name}: this Spark has no aggregate function {function}")
        return {name: getattr(F, merge[name])(quoted(name)) for name in sorted(others)}

    def meaning(self, merge: Mapping[str, str]) -> list[list[str]]:
        """What merged states mean, for their fingerprint."""
        kinds = {name: self.schema[name].dataType.simpleString() for name in self.schema.names}
        merged = sorted([name, kinds[name], merge[name]] for name in self.answers)
        return [*([key, kinds[key]] for key in self.settings.keys), *merged]

    def _declared(self, out: object) -> pa.Table:
        """What the function returned, as the schema says: Spark reads it as the declared types, whatever they are."""
        what = f"the function {getattr(self.func, '__name__', self.func)}"
        for given in out.schema if isinstance(out, pa.Table) else ():
            says = self.types.field(given.name).type if given.name in self.types.names else given.type
            # Numbers as text would be merged as text.
            if _is_text(says) != _is_text(given.type):
                raise InputError(
                    f"{what} must return {given.name} as {says}, got {given.type}; cast the column or change the schema"
                )
        return declared(out, self.types, what)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the function returns for everything that this worker received."""
        task = Task.current()
        out, counts, tuples, seconds = self._applied(batches)
        rows = iter([] if out is None else out.to_batches())
        if self.settings.ledger is not None:
            worker = Worker(PartialStates(self.settings.keys, ()), self.settings)
            rows = flagged(rows, lambda: worker.report(task, counts, tuples, seconds))
        yield from rows

    def _applied(self, batches: Iterator[pa.RecordBatch]) -> tuple[pa.Table | None, pa.Table | None, int, float]:
        """What the function returned, tuples of each key for the ledger, tuples, and the seconds spent on them."""
        for table in chunks(batches, None):
            began = time.perf_counter()
            if self.settings.work_us:
                time.sleep(table.num_rows * self.settings.work_us * 1e-6)
            out = self.func(table)
            seconds, counts = time.perf_counter() - began, None
            if self.settings.ledger is not None:
                groups, keys = Groups.of(table, self.settings.keys)
                counts = keys.append_column(TUPLES, groups.count())
            return self._declared(out), counts, table.num_rows, seconds
        return None, None, 0, 0.0


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column holds strings, in whichever of Arrow's layouts."""
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
