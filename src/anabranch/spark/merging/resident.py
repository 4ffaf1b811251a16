"""Merging every so many batches: partial states stay on a slot of their worker in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from anabranch.errors import ConfigError
from anabranch.spark.merging.blobs import split
from anabranch.spark.merging.slot_numbers import SPREAD, slots_of
from anabranch.spark.merging.slots import OnSlots, Ship, Slots, on_slots
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task
from anabranch.spark.upstream import has_watermark
from anabranch.spark.workers.partial_states import PartialStates

_NOW = "__anabranch_now"


class Resident(OnSlots):
    """Workers ship blobs to slots of their own, which hand them on to those of the aggregator when it is time."""

    def before(self, rows: DataFrame) -> DataFrame:
        """The rows with a watermark, which brings out held states at the end."""
        return timed(rows, self.settings)

    def shipped(self, routed: DataFrame) -> DataFrame:
        """Partial states as blobs for the aggregator's slots, in the batches that hand them on."""
        own = Ship(self.partial_states, self.settings, slots_of(self.settings.n_workers), split=False)
        keep = Keep(self.partial_states, slots_of(SPREAD), self.settings)
        return on_slots(self.ship(routed, own), keep, time_mode="EventTime")


def timed(rows: DataFrame, settings: QuerySettings) -> DataFrame:
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


class Keep(Slots):
    """The worker's slot: keeps partial states, and hands all of them on every `flush_every` batches.

    It hands them on sooner in a batch that has no rows for the worker. A timer is due in the next batch; rows delete it
    first and set another.
    """

    # Many, because a worker has one slot and the aggregator has many.
    n_buckets = 64

    def __init__(self, partial_states: PartialStates, slots: list[int], settings: QuerySettings) -> None:
        super().__init__(partial_states)
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
        """Called once per batch and slot."""
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
        return (
            split(self.partial_states.merge(pa.concat_tables(tables)), self.partial_states.keys, self.slots)
            if tables
            else []
        )
