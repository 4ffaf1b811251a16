"""Files that the ledger did not take: a batch goes on without them, and the query's progress counts them.

Reports and plans are knowledge, and no answer depends on them. What has to be told cannot be told by the ledger, so
tasks send it along with their rows, in a column that Spark observes and that no later operator sees.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from anabranch.printable import printable

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

UNWRITTEN = "__anabranch_unwritten"
_PREFIX = "anabranch_unwritten_"
# Names of metrics have to differ within a query.
_numbers = itertools.count(1)
# Ledgers that this process has warned of.
_told: set[str] = set()


def attempt(ledger: str, write: Callable[[], object]) -> int:
    """Write what a batch can do without; how many files are missing now: 0, or 1 and a warning, once a process."""
    try:
        write()
    except Exception as error:  # file systems raise what they like
        if ledger not in _told:
            _told.add(ledger)
            print(
                f"WARN anabranch: ledger {printable(ledger)} was not written: {printable(error)}; batches go on without"
                " their reports and plans, which the query's progress counts; make room, or restore the folder",
                file=sys.stderr,
                flush=True,
            )
        return 1
    return 0


def flagged(batches: Iterator[pa.RecordBatch], report: Callable[[], int]) -> Iterator[pa.RecordBatch]:
    """The batches, and then the report: the last batch says in its first row what it came to."""
    last = None
    for batch in batches:
        if last is not None:
            yield flag(last, 0)
        last = batch
    unwritten = report()
    if last is not None:
        yield flag(last, unwritten)


def flag(batch: pa.RecordBatch, unwritten: int) -> pa.RecordBatch:
    """The rows, the first of which says how many files were not written."""
    column = pa.array([unwritten, *[0] * (batch.num_rows - 1)][: batch.num_rows], pa.int32())
    return pa.RecordBatch.from_arrays([*batch.columns, column], names=[*batch.schema.names, UNWRITTEN])


def mapped(rows: DataFrame, function: Batches, schema: StructType | str, ledger: str | None) -> DataFrame:
    """What `mapInArrow` makes of the rows by a function that, where there is a ledger, gives `flagged` batches."""
    if ledger is None:
        return rows.mapInArrow(function, schema)
    if isinstance(schema, str):
        with_flag: StructType | str = f"{schema}, {UNWRITTEN} int"
    else:
        with_flag = StructType([*schema.fields, StructField(UNWRITTEN, IntegerType())])
    return counted(rows.mapInArrow(function, with_flag), streams=rows.isStreaming)


def counted(rows: DataFrame, *, streams: bool) -> DataFrame:
    """The rows without the column that says what was not written, which a stream's progress adds up."""
    if streams:
        rows = rows.observe(f"{_PREFIX}{next(_numbers)}", F.sum(UNWRITTEN).alias("files"))
    return rows.drop(UNWRITTEN)


def unwritten_in(progress: Mapping[str, Any]) -> int:
    """Reports and plans of a batch that the ledger did not take, as the query's progress says."""
    found = dict(progress.get("observedMetrics") or {})
    return sum(int(row["files"] or 0) for name, row in found.items() if name.startswith(_PREFIX))
