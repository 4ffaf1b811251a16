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
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from anabranch.aggregates import Groups
from anabranch.errors import ConfigError, InputError
from anabranch.hashing import hash_keys
from anabranch.spark.aggregator import partial_schema
from anabranch.spark.requirements import check_state_store
from anabranch.spark.settings import Settings
from anabranch.spark.slots import SPREAD, slots_of
from anabranch.spark.task import Task
from anabranch.spark.types import canonical
from anabranch.spark.worker import TUPLES, Summary, Worker, leaves

# Of the aggregator, which has many slots, and of a worker, which has one.
_BUCKETS, _WORKER_BUCKETS = 8, 64
_SCHEMA = "slot int, batch long, blob binary"


def merge(routed: DataFrame, schema: StructType, summary: Summary, settings: Settings) -> DataFrame:
    """Merged states of the keys that changed: workers, resident or not, then the aggregator, all on slots."""
    check_state_store(routed.sparkSession)
    aggregators = slots_of(SPREAD)
    if settings.regime == "resident":
        ship = _Ship(summary, settings, slots_of(settings.n_workers), split=False)
        keep = Keep(summary, aggregators, settings)
        blobs = on_slots(routed.mapInArrow(ship.__call__, _SCHEMA), keep)
    else:
        blobs = routed.mapInArrow(_Ship(summary, settings, aggregators, split=True).__call__, _SCHEMA)
    merged = on_slots(blobs, _Merge(summary))
    return merged.mapInArrow(_unpack, partial_schema(schema, summary))


def on_slots(rows: DataFrame, processor: StatefulProcessor, schema: str = _SCHEMA) -> DataFrame:
    """Rows of `schema` that a processor makes of those that come to each slot."""
    return rows.groupBy("slot").transformWithState(processor, schema, outputMode="Update", timeMode="None")


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
        if self.worker.settings.ledger is not None:
            self.worker.report(task, partial, tuples, seconds)
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
        self.buckets = handle.getMapState("buckets", "bucket int", "blob binary")

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

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are kept."""
        return self.summary.columns

    def opened(self, blob: bytes) -> pa.Table:
        """Partial states out of the slot's state; those of another query are refused."""
        table = decode(blob)
        if sorted(table.column_names) != sorted(self.columns):
            raise ConfigError(
                f"the states of this checkpoint hold {_shown(table.column_names)}, and the query now has "
                f"{_shown(self.columns)}; go on with the same, or start anew with another checkpoint"
            )
        return table.select(self.columns)

    def update(self, new: pa.Table) -> Iterator[pa.Table]:
        """Merge into the state, and give the merged states of the keys that came in."""
        for bucket, part in by_bucket(new, self.summary.keys, self.n_buckets):
            old = self.held(bucket)
            merged = touched = part
            if old is not None:
                both = together([part, old])
                merged = self.summary.merge(both)
                codes = Groups.of(both, self.summary.keys)[0].codes
                touched = merged.take(pa.array(np.unique(codes[: part.num_rows])))
            self.buckets.updateValue((bucket,), (encode(merged),))
            yield touched


class Keep(Slots):
    """The worker's slot: keeps partial states, and hands all of them on every `flush_every` batches."""

    n_buckets = _WORKER_BUCKETS

    def __init__(self, summary: Summary, slots: list[int], settings: Settings) -> None:
        super().__init__(summary)
        self.slots = slots
        self.flush_every = settings.flush_every
        self.n_workers = settings.n_workers

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of the slot."""
        super().init(handle)
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
        for slot, blob in self.keep(new, batch):
            yield Row(slot=slot, batch=batch, blob=blob)

    def keep(self, new: pa.Table | None, batch: int) -> list[tuple[int, bytes]]:
        """Take new partial states in, and give what the aggregator gets in this batch, by its slot."""
        if (batch + 1) % self.flush_every:
            if new is not None:
                for _ in self.update(new):
                    pass
            return []
        tables = [self.opened(value[0]) for value in self.buckets.values()]
        if tables:
            self.buckets.clear()
        tables += [] if new is None else [new]
        return split(self.summary.merge(together(tables)), self.summary.keys, self.slots) if tables else []


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
    ends = [*starts[1:], len(at)]
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


def together(tables: list[pa.Table]) -> pa.Table:
    """Rows of all tables; stored ones whose types are others by now are refused."""
    for name in tables[0].column_names:
        first, *others = (table.schema.field(name).type for table in tables)
        for other in others:
            if other != first:
                raise ConfigError(
                    f"states that are merged must have one type, {_shown([name])} has {first} and {other}; "
                    "cast its column to what it was, or start anew with another checkpoint"
                )
    return pa.concat_tables(tables)


def _shown(columns: list[str]) -> str:
    """Keys as they are, and each column of a state behind the name of its aggregate."""
    named = [name.removeprefix("__anabranch_").rpartition("__") for name in columns if name != TUPLES]
    return ", ".join(f"{aggregate}.{column}" if aggregate else column for aggregate, _, column in named)


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
