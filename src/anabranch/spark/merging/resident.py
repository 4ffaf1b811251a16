"""States that live on slots: a worker's partial states across batches, and merges that only Python can do.

A slot is a key of `transformWithState`. Its state is a map from bucket to a blob: an Arrow stream with the partial
states of all keys of the bucket. One blob a bucket crosses the border to the JVM, never one row a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from anabranch.aggregates import Groups
from anabranch.errors import ConfigError, InputError
from anabranch.hashing import hash_keys
from anabranch.spark.columns.types import canonical
from anabranch.spark.merging.aggregator import partial_schema
from anabranch.spark.merging.fingerprint import slot_columns
from anabranch.spark.merging.output_mode import running_totals
from anabranch.spark.merging.slots import SPREAD, slots_of
from anabranch.spark.plans.unwritten import flagged, mapped
from anabranch.spark.requirements import check_state_store
from anabranch.spark.settings import Settings
from anabranch.spark.task import Task
from anabranch.spark.upstream import has_watermark
from anabranch.spark.workers.worker import TUPLES, Summary, Worker, leaves

# Of the aggregator, which has many slots, and of a worker, which has one.
_BUCKETS, _WORKER_BUCKETS = 8, 64
_SCHEMA = "slot int, batch long, blob binary"
_NOW = "__anabranch_now"


def merge(routed: DataFrame, schema: StructType, summary: Summary, settings: Settings) -> DataFrame:
    """Merged states of the keys that changed: workers, resident or not, then the aggregator, all on slots."""
    check_state_store(routed.sparkSession)
    aggregators = slots_of(SPREAD)
    if settings.regime == "resident":
        ship = _Ship(summary, settings, slots_of(settings.n_workers), split=False)
        keep = Keep(summary, aggregators, settings)
        shipped = mapped(routed, ship.__call__, _SCHEMA, settings.ledger)
        blobs = on_slots(shipped, keep, time_mode="EventTime")
    else:
        ship = _Ship(summary, settings, aggregators, split=True)
        blobs = mapped(routed, ship.__call__, _SCHEMA, settings.ledger)
    merged = running_totals(on_slots(blobs, _Merge(summary)))
    return merged.mapInArrow(_unpack, partial_schema(schema, summary))


def on_slots(
    rows: DataFrame, processor: StatefulProcessor, schema: str = _SCHEMA, *, time_mode: str = "None"
) -> DataFrame:
    """Rows of `schema` that a processor makes of those that come to each slot."""
    return rows.groupBy("slot").transformWithState(processor, schema, outputMode="Update", timeMode=time_mode)


def timed(rows: DataFrame, settings: Settings) -> DataFrame:
    """The rows, with a watermark that moves with every batch of them.

    Behind a batch that has moved it, Spark runs one without rows where there is nothing more to read, so that what
    workers hold comes out when a bounded query ends. No row carries its time: none is ever late, whatever the clock
    does. A watermark of the user's own is left alone, because all in a query are one.
    """
    if has_watermark(rows):
        return rows
    # Where nothing is held it never moves. It is there all the same: timers, once there, cannot go from a checkpoint.
    delay = "0 seconds" if settings.flush_every > 1 else "1000000 days"
    return rows.withColumn(_NOW, F.current_timestamp()).withWatermark(_NOW, delay).drop(_NOW)


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column("blob"):
            if blob.is_valid:
                yield from decode(blob.as_py()).drop([TUPLES]).to_batches()


class _Ship:
    """A worker whose partial states leave as blobs: one for its own slot, or one for each slot of the aggregator."""

    def __init__(self, summary: Summary, settings: Settings, slots: list[int], *, split: bool) -> None:
        self.worker = Worker(summary, settings)
        self.slots = slots
        self.split = split

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row a slot, from a worker without rows too: a slot without input is not called, and could not flush."""
        task = Task.current()
        partial, tuples, seconds = self.worker.summarise(batches)
        rows = self._rows(task, partial)
        if self.worker.settings.ledger is not None:
            rows = flagged(rows, lambda: self.worker.report(task, partial, tuples, seconds))
        yield from rows

    def _rows(self, task: Task, partial: pa.Table | None) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[int, bytes | None]]
        if self.split:
            rows = [] if partial is None else [*split(partial, self.worker.summary.keys, self.slots)]
        else:
            blob = None if partial is None else encode(_ordered(partial, self.worker.summary.keys))
            rows = [(self.slots[task.partition], blob)]
        if rows:
            yield pa.record_batch(
                {
                    "slot": pa.array([slot for slot, _ in rows], pa.int32()),
                    "batch": pa.array([task.batch] * len(rows), pa.int64()),
                    "blob": pa.array([blob for _, blob in rows], pa.binary()),
                }
            )


class Slots(StatefulProcessor):
    """What both stateful operators have in common: the map of a slot from bucket to blob."""

    n_buckets = _BUCKETS

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of the slot."""
        columns = "blob binary" + slot_columns(self.summary.fingerprint)
        self.buckets = handle.getMapState("buckets", "bucket int", columns)

    def close(self) -> None:
        """Nothing is held outside the state."""

    def received(self, rows: Iterator[Row]) -> tuple[pa.Table | None, int]:
        """What came in for the slot, merged, and the batch."""
        tables, batch = [], 0
        for row in rows:
            batch = row["batch"]
            if row["blob"] is not None:
                tables.append(decode(row["blob"]))
        if not tables:
            return None, batch
        return (tables[0] if len(tables) == 1 else self.summary.merge(pa.concat_tables(tables))), batch

    def held(self, bucket: int) -> pa.Table | None:
        """Partial states of a bucket."""
        found = self.buckets.getValue((bucket,)) if self.buckets.containsKey((bucket,)) else None
        return None if found is None else self.opened(found[0])

    def store(self, bucket: int, states: pa.Table) -> None:
        """Keep the partial states of a bucket."""
        self.buckets.updateValue((bucket,), (encode(states), *[None] * len(self.summary.fingerprint)))

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are kept."""
        return self.summary.columns

    def opened(self, blob: bytes) -> pa.Table:
        """Partial states out of the slot's state, with the columns in the order of the query as it is now."""
        return decode(blob).select(self.columns)

    def update(self, new: pa.Table) -> Iterator[pa.Table]:
        """Merge into the state, and give the merged states of the keys that came in."""
        for bucket, part in by_bucket(new, self.summary.keys, self.n_buckets):
            old = self.held(bucket)
            merged = touched = part
            if old is not None:
                both = pa.concat_tables([part, old])
                merged = self.summary.merge(both)
                codes = Groups.of(both, self.summary.keys)[0].codes
                touched = merged.take(pa.array(np.unique(codes[: part.num_rows])))
            self.store(bucket, merged)
            yield touched


class Keep(Slots):
    """The worker's slot: keeps partial states, and hands all of them on every `flush_every` batches.

    It hands them on sooner in a batch that has no rows for the worker. A timer is due in the next batch; rows delete it
    first and set another.
    """

    n_buckets = _WORKER_BUCKETS

    def __init__(self, summary: Summary, slots: list[int], settings: Settings) -> None:
        super().__init__(summary)
        self.slots = slots
        self.flush_every = settings.flush_every
        self.n_workers = settings.n_workers

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of the slot."""
        super().init(handle)
        self.handle = handle
        self.made_for = handle.getValueState("workers", "n int")

    def check_workers(self) -> None:
        """Refuse another number of workers: states of a worker that is gone would never be flushed."""
        made_for = self.made_for.get()
        if made_for is None:
            self.made_for.update((self.n_workers,))
        elif made_for[0] != self.n_workers:
            raise ConfigError(
                f"the resident states of this checkpoint lie on {made_for[0]} workers, and the query now has "
                f"{self.n_workers}; go on with n_workers={made_for[0]}, or start anew with another checkpoint"
            )

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Called once a batch and slot."""
        self.check_workers()
        new, batch = self.received(rows)
        if new is not None and self.flush_every > 1:
            for due in list(self.handle.listTimers()):
                self.handle.deleteTimer(due)
            self.handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 1)
        for slot, blob in self.keep(new, batch):
            yield Row(slot=slot, batch=batch, blob=blob)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Called at the end of a batch that had no rows for the slot."""
        for slot, blob in self.hand_on(None):
            yield Row(slot=slot, batch=Task.current().batch, blob=blob)

    def keep(self, new: pa.Table | None, batch: int) -> list[tuple[int, bytes]]:
        """Take new partial states in, and give what the aggregator gets in this batch, by its slot."""
        if (batch + 1) % self.flush_every:
            if new is not None:
                for _ in self.update(new):
                    pass
            return []
        return self.hand_on(new)

    def hand_on(self, new: pa.Table | None) -> list[tuple[int, bytes]]:
        """Give all that is held, and new partial states with it, by the aggregator's slot."""
        tables = [self.opened(value[0]) for value in self.buckets.values()]
        if tables:
            self.buckets.clear()
        tables += [] if new is None else [new]
        return split(self.summary.merge(pa.concat_tables(tables)), self.summary.keys, self.slots) if tables else []


class _Merge(Slots):
    """The aggregator's slot: keeps the merged states for good, and gives those that changed."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Called once a batch and slot."""
        new, batch = self.received(rows)
        if new is not None:
            for touched in self.update(new):
                yield Row(slot=key[0], batch=batch, blob=encode(touched))


def split(partial: pa.Table, keys: tuple[str, ...], slots: list[int]) -> list[tuple[int, bytes]]:
    """The rows by the aggregator's slot, each as a blob."""
    hashes = hashes_of(partial, keys)
    at = (hashes % np.uint64(len(slots))).astype(np.int64)
    return [(slots[i], encode(_ordered(part, keys))) for i, part in _parts(partial, at)]


def by_bucket(table: pa.Table, keys: tuple[str, ...], n: int) -> list[tuple[int, pa.Table]]:
    """The rows by their bucket of n."""
    # The low bits choose the slot: buckets go by others.
    return _parts(table, ((hashes_of(table, keys) >> np.uint64(40)) % np.uint64(n)).astype(np.int64))


def _parts(table: pa.Table, at: NDArray[np.int64]) -> list[tuple[int, pa.Table]]:
    order = np.argsort(at, kind="stable")
    numbers, starts = np.unique(at[order], return_index=True)
    ordered = table.take(pa.array(order))
    ends = np.append(starts, len(at))[1:]
    return [(int(i), ordered.slice(a, b - a)) for i, a, b in zip(numbers, starts, ends, strict=True)]


def _ordered(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """In an order of its own, so that a task that runs again ships the same bytes."""
    return table.take(pa.array(np.argsort(hashes_of(table, keys), kind="stable")))


def hashes_of(table: pa.Table, keys: tuple[str, ...]) -> NDArray[np.uint64]:
    """A hash of each row's key."""
    columns = leaves(canonical(table.select(list(keys))), keys)
    try:
        return hash_keys(*columns)
    except InputError:  # a type that only the JVM hashes, such as an array; here any hash of the value will do
        return hash_keys([repr(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)])


def encode(table: pa.Table) -> bytes:
    """The rows as an Arrow stream, of the same types whatever the session's settings."""
    table = canonical(table)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def decode(blob: bytes) -> pa.Table:
    """The rows of an Arrow stream, of the same types whatever the session's settings were."""
    return canonical(rows_of(blob))


def rows_of(blob: bytes) -> pa.Table:
    """The rows of an Arrow stream as they are."""
    return pa.ipc.open_stream(bytes(blob)).read_all()
