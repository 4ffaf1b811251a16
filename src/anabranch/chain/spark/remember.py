"""The workers of a stateful step: the state of a key is in one place, and travels when tables change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from anabranch import snapshot
from anabranch.aggregates import Groups
from anabranch.chain.spark.operator import Operate, Tally
from anabranch.chain.spark.settings import Operator, TaskSettings
from anabranch.chain.spark.step import Step
from anabranch.chain.spark.tables import FIRST, Tables, moved_name, routers_of
from anabranch.errors import InputError, SnapshotError
from anabranch.groupings import TableRouter
from anabranch.spark.columns.key_columns import key_hashes, normal
from anabranch.spark.columns.types import canonical
from anabranch.spark.merging.blobs import by_bucket, decode, encode
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.task import Task


class Remember(Operate):
    """A worker of a stateful step, in its slot.

    New tables take effect for it a batch later than for aggregates. In the batch of the decision tuples still find the
    states where they were; when they are served, the worker leaves the states that belong elsewhere in the ledger and
    forgets them, and in the next batch the new worker takes them up before it looks at a tuple: the next in which it is
    called, because Spark calls no worker in a batch without partitions. Whatever an attempt at a task leaves there
    follows from the checkpoint, the input and the tables of the batch alone, so that it does not matter how many
    attempts there are, nor which of them Spark takes.
    """

    step: Step

    def __init__(self, operators: tuple[Operator, ...], number: int, settings: TaskSettings) -> None:
        super().__init__(operators, number, settings)
        assert self.operator.step is not None
        self.step = self.operator.step

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are kept."""
        return list(self.step.states.names)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of the slot."""
        super().init(handle)
        self.held_by = handle.getValueState("held", "version long, first long")
        self.awaited = handle.getValueState("awaited", "batch long")

    def _onward(self, number: int, tuples: pa.Table, routers: list[TableRouter], tally: Tally) -> Iterator[Row]:
        tally.tuples += tuples.to_batches()
        return iter(())

    def _served(
        self, task: Task, number: int, tables: Tables, routers: list[TableRouter], tally: Tally
    ) -> Iterator[Row]:
        began = time.perf_counter()
        self._take_up(task, number, tables)
        n = sum(batch.num_rows for batch in tally.tuples)
        if n:
            yield from self._send(number, self.operator.onward(self._updated(tally.tuples)), routers, tally)
        if tables.version == task.batch:
            tally.flushed = self._hand_over(task, number, tables)
            self.awaited.update((task.batch,))
        if self.chain.ledger is not None:
            self._report(task, number, n, time.perf_counter() - began, n, tally)

    def _updated(self, batches: list[pa.RecordBatch]) -> pa.Table:
        """Serve the tuples: new states of their keys are kept, and what goes on is returned."""
        keys, step = self.partial_states.keys, self.step
        tuples = step.ordered(normal(pa.Table.from_batches(batches), keys))
        touched = [bucket for bucket, _ in by_bucket(tuples, keys, self.n_buckets)]
        found = [held for bucket in touched if (held := self.held(bucket)) is not None]
        held = pa.concat_tables([step.states.empty_table(), *found])
        both = pa.concat_tables([canonical(tuples.select(list(keys))), held.select(list(keys))])
        codes = Groups.of(both, keys)[0].codes
        own = np.isin(codes[tuples.num_rows :], codes[: tuples.num_rows])
        new, sent = step(keys, held.filter(pa.array(own)), tuples)
        self._store(touched, pa.concat_tables([held.filter(pa.array(~own)), new]))
        return sent

    def _store(self, buckets: list[int], states: pa.Table) -> None:
        parts = dict(by_bucket(states, self.partial_states.keys, self.n_buckets))
        for bucket in buckets:
            if bucket in parts:
                self.store(bucket, parts[bucket])
            elif self.buckets.containsKey((bucket,)):
                self.buckets.removeKey((bucket,))

    def _take_up(self, task: Task, number: int, tables: Tables) -> None:
        """Add the states that were handed over to this worker when it was called last."""
        serving = tables.previous if tables.version == task.batch else tables.version
        first = crc32(self.chain.first_placement().pack())
        known = tuple(self.held_by.get() or (FIRST, first))
        if known != (serving, first):
            raise InputError(
                f"states of operator {self.operator.name} lie where the tables of batch {known[0]} have them, and the "
                f"ledger now has those of batch {serving}; go on with the ledger and placement of this checkpoint"
            )
        self.held_by.update((tables.version, first))
        awaited = self.awaited.get()
        if awaited is None:
            return
        self.awaited.clear()
        blobs = [self._blob(task.query, awaited[0], sender, number) for sender in range(self.n_workers)]
        arrived = [decode(blob) for blob in blobs if blob]
        for bucket, part in (
            by_bucket(pa.concat_tables(arrived), self.partial_states.keys, self.n_buckets) if arrived else ()
        ):
            old = self.held(bucket)
            self._store([bucket], part if old is None else pa.concat_tables([old, part]))

    def _hand_over(self, task: Task, number: int, tables: Tables) -> int:
        """Leave in the ledger, and forget, the states that are another worker's from the next batch on."""
        router = routers_of(self.chain, task.query, tables.version)[self.number]
        leaving = pa.concat_tables([self.step.states.empty_table(), *self._leaving(router, number)])
        workers = router.route(key_hashes(leaving, self.partial_states.keys))
        blobs = {
            str(worker): np.frombuffer(encode(leaving.filter(pa.array(workers == worker))), np.uint8)
            for worker in np.unique(workers).tolist()
        }
        data = snapshot.pack({"kind": "moved"}, blobs)
        Ledger(str(self.chain.ledger)).put(task.query, moved_name(task.batch, self.number, number), data)
        return int(leaving.num_rows)

    def _blob(self, query: str, batch: int, sender: int, number: int) -> bytes | None:
        name = moved_name(batch, self.number, sender)
        try:
            _, blobs = snapshot.unpack(Ledger(str(self.chain.ledger)).found(query, name) or b"")
        except SnapshotError:
            raise InputError(
                f"the ledger {self.chain.ledger} has lost {name}, states that moved in batch {batch}; "
                "restore it, or go back to a checkpoint before that batch"
            ) from None
        return blobs[str(number)].tobytes() if str(number) in blobs else None
