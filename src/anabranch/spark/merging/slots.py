"""States that live on slots, where only Python can merge them.

A slot is a key of `transformWithState`. Its state is a map from bucket to a blob: an Arrow stream with the partial
states of all keys of the bucket. One blob per bucket crosses the border to the JVM, never one row per key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from anabranch.aggregates import Groups
from anabranch.spark.merging.blobs import by_bucket, decode, encode, ordered, split
from anabranch.spark.merging.fingerprint import slot_columns
from anabranch.spark.merging.output_mode import running_totals
from anabranch.spark.merging.slot_numbers import SPREAD, slots_of
from anabranch.spark.merging.way import Merging
from anabranch.spark.plans.unwritten import flagged, mapped
from anabranch.spark.requirements import check_state_store
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task
from anabranch.spark.workers.partial_states import TUPLES, PartialStates
from anabranch.spark.workers.worker import Worker

_SCHEMA = "slot int, batch long, blob binary"


class OnSlots(Merging):
    """Workers ship blobs to the slots of the aggregator, which keep merged states for good."""

    def merged(self, routed: DataFrame) -> DataFrame:
        """Merged states of the keys that changed."""
        check_state_store(routed.sparkSession)
        merged = running_totals(on_slots(self.shipped(routed), _Merge(self.partial_states)))
        return merged.mapInArrow(_unpack, self.columns)

    def shipped(self, routed: DataFrame) -> DataFrame:
        """Partial states as blobs for the aggregator's slots."""
        return self.ship(routed, Ship(self.partial_states, self.settings, slots_of(SPREAD), split=True))

    def ship(self, routed: DataFrame, ship: Ship) -> DataFrame:
        """What workers ship."""
        return mapped(routed, ship.__call__, _SCHEMA, self.settings.ledger)


def on_slots(
    rows: DataFrame, processor: StatefulProcessor, schema: str = _SCHEMA, *, time_mode: str = "None"
) -> DataFrame:
    """Rows of `schema` that a processor makes of those that come to each slot."""
    return rows.groupBy("slot").transformWithState(processor, schema, outputMode="Update", timeMode=time_mode)


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column("blob"):
            if blob.is_valid:
                yield from decode(blob.as_py()).drop([TUPLES]).to_batches()


class Ship:
    """A worker whose partial states leave as blobs: one for its own slot, or one for each slot of the aggregator."""

    def __init__(
        self, partial_states: PartialStates, settings: QuerySettings, slots: list[int], *, split: bool
    ) -> None:
        self.worker = Worker(partial_states, settings)
        self.slots = slots
        self.split = split

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per slot, from a worker without rows too: a slot without input is not called, and could not flush."""
        task = Task.current()
        partial, tuples, seconds = self.worker.summarise(batches)
        rows = self._rows(task, partial)
        if self.worker.settings.ledger is not None:
            rows = flagged(rows, lambda: self.worker.report(task, partial, tuples, seconds))
        yield from rows

    def _rows(self, task: Task, partial: pa.Table | None) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[int, bytes | None]]
        if self.split:
            rows = [] if partial is None else [*split(partial, self.worker.partial_states.keys, self.slots)]
        else:
            blob = None if partial is None else encode(ordered(partial, self.worker.partial_states.keys))
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
    """What all stateful operators have in common: the map of a slot from bucket to blob."""

    n_buckets = 8

    def __init__(self, partial_states: PartialStates) -> None:
        self.partial_states = partial_states

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of the slot."""
        columns = "blob binary" + slot_columns(self.partial_states.fingerprint)
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
        return (tables[0] if len(tables) == 1 else self.partial_states.merge(pa.concat_tables(tables))), batch

    def held(self, bucket: int) -> pa.Table | None:
        """Partial states of a bucket."""
        found = self.buckets.getValue((bucket,)) if self.buckets.containsKey((bucket,)) else None
        return None if found is None else self.opened(found[0])

    def store(self, bucket: int, states: pa.Table) -> None:
        """Keep the partial states of a bucket."""
        self.buckets.updateValue((bucket,), (encode(states), *[None] * len(self.partial_states.fingerprint)))

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are kept."""
        return self.partial_states.columns

    def opened(self, blob: bytes) -> pa.Table:
        """Partial states out of the slot's state, with the columns in the order of the query as it is now."""
        return decode(blob).select(self.columns)

    def update(self, new: pa.Table) -> Iterator[pa.Table]:
        """Merge into the state, and give the merged states of the keys that came in."""
        for bucket, part in by_bucket(new, self.partial_states.keys, self.n_buckets):
            old = self.held(bucket)
            merged = touched = part
            if old is not None:
                both = pa.concat_tables([part, old])
                merged = self.partial_states.merge(both)
                codes = Groups.of(both, self.partial_states.keys)[0].codes
                touched = merged.take(pa.array(np.unique(codes[: part.num_rows])))
            self.store(bucket, merged)
            yield touched


class _Merge(Slots):
    """The aggregator's slot: keeps the merged states for good, and gives those that changed."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Called once per batch and slot."""
        new, batch = self.received(rows)
        if new is not None:
            for touched in self.update(new):
                yield Row(slot=key[0], batch=batch, blob=encode(touched))
