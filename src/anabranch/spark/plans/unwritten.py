"""Files that the ledger did not take: a batch goes on without them, and the query's progress counts them.

Reports and plans are knowledge, and no answer depends on them. What has to be told cannot be told by the ledger, so
tasks send it along with their rows, in a column that Spark observes and that no later operator sees.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from anabranch.printable import printable

log = logging.getLogger(__name__)

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

UNWRITTEN, UNPLANNED = "__anabranch_unwritten", "__anabranch_unplanned"
# Under what Spark's progress has the sum of each.
_METRICS = {UNWRITTEN: "files", UNPLANNED: "plans"}
_PREFIX = "anabranch_unwritten_"
# Names of metrics have to differ within a query.
_numbers = itertools.count(1)
# Ledgers that this process has warned of.
_told: set[str] = set()


def attempt(ledger: str, write: Callable[[], object]) -> int:
    """Write what a batch can do without; how many files are missing now: 0, or 1 and a warning, once per process."""
    try:
        write()
    except Exception as error:  # file systems raise what they like
        if ledger not in _told:
            _told.add(ledger)
            log.warning(
                "ledger %s was not written: %s; batches go on without their reports and plans, which the query's "
                "progress counts; make room, or restore the folder",
                printable(ledger),
                printable(error),
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


def flag(batch: pa.RecordBatch, n: int, column: str = UNWRITTEN) -> pa.RecordBatch:
    """The rows; the first one says how many files were not written, or plans not made."""
    counts = pa.array([n, *[0] * (batch.num_rows - 1)][: batch.num_rows], pa.int32())
    return pa.RecordBatch.from_arrays([*batch.columns, counts], names=[*batch.schema.names, column])


def mapped(rows: DataFrame, function: Batches, schema: StructType | str, ledger: str | None) -> DataFrame:
    """What `mapInArrow` makes of the rows by a function that, where there is a ledger, gives `flagged` batches."""
    if ledger is None:
        return rows.mapInArrow(function, schema)
    if isinstance(schema, str):
        with_flag: StructType | str = f"{schema}, {UNWRITTEN} int"
    else:
        with_flag = StructType([*schema.fields, StructField(UNWRITTEN, IntegerType())])
    return counted(rows.mapInArrow(function, with_flag), streams=rows.isStreaming)


def counted(rows: DataFrame, *, streams: bool, columns: Sequence[str] = (UNWRITTEN,)) -> DataFrame:
    """The rows without the columns that say what is missing, which a stream's progress adds up."""
    if streams:
        sums = [F.sum(column).alias(_METRICS[column]) for column in columns]
        rows = rows.observe(f"{_PREFIX}{next(_numbers)}", *sums)
    return rows.drop(*columns)


def unwritten_in(progress: Mapping[str, Any]) -> int:
    """Reports and plans of a batch that the ledger did not take, as the query's progress says."""
    return _sum_in(progress, _METRICS[UNWRITTEN])


def unplanned_in(progress: Mapping[str, Any]) -> int:
    """Plans of a batch that could not be made, as the query's progress says."""
    return _sum_in(progress, _METRICS[UNPLANNED])


def _sum_in(progress: Mapping[str, Any], metric: str) -> int:
    found = dict(progress.get("observedMetrics") or {})
    ours = [row for name, row in found.items() if name.startswith(_PREFIX) and metric in row]
    return sum(int(row[metric] or 0) for row in ours)
