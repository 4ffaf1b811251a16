"""The workers of one operator of a chain: they keep states, and send tuples on to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from anabranch.arrays import I32, U64
from anabranch.chain.planning import PairCounts
from anabranch.chain.spark.aggregator import aggregator_slots
from anabranch.chain.spark.edge import routes
from anabranch.chain.spark.hop_report import HopReport, host_name
from anabranch.chain.spark.settings import Operator, TaskSettings
from anabranch.chain.spark.tables import Tables, in_force
from anabranch.groupings import TableGrouping, TableRouter
from anabranch.spark.columns.key_columns import key_hashes
from anabranch.spark.edges import packs
from anabranch.spark.merging.blobs import rows_of, split
from anabranch.spark.merging.resident import Keep
from anabranch.spark.merging.slot_numbers import slots_of
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.plans.unwritten import attempt
from anabranch.spark.settings import WORKER, QuerySettings
from anabranch.spark.task import Task
from anabranch.spark.workers.worker import Worker


@dataclass
class Tally:
    """What a worker counts in a batch."""

    n_workers: int
    pairs: PairCounts | None
    tuples: list[pa.RecordBatch] = field(default_factory=list)
    flushed: int = 0

    def __post_init__(self) -> None:
        self.sent = np.zeros(self.n_workers if self.pairs is not None else 0, dtype=np.int64)

    def count(self, first: U64, second: U64, workers: I32) -> None:
        """Count tuples that are sent on."""
        if self.pairs is not None:
            self.pairs.update(first, second)
            self.sent += np.bincount(workers, minlength=self.n_workers)


class Operate(Keep):
    """A worker of one operator, in its slot: keeps states, sends tuples on, gives up states that belong elsewhere.

    Parameters
    ----------
    operators
        The whole chain.
    number
        Which of them this is.
    settings
        Of the chain.
    """

    def __init__(self, operators: tuple[Operator, ...], number: int, settings: TaskSettings) -> None:
        self.operator, self.number, self.chain = operators[number], number, settings
        self.next = operators[number + 1] if number + 1 < len(operators) else None
        own = QuerySettings(
            TableGrouping(),
            settings.n_workers,
            "adaptive",
            settings.ledger,
            "resident",
            settings.flush_every,
            settings.seed,
            keys=self.operator.keys,
        )
        super().__init__(self.operator.partial_states, aggregator_slots(number), own)
        self.worker = Worker(self.operator.partial_states, own)
        self.own_slots = slots_of(settings.n_workers)
        inputs = [name for bound in self.partial_states.bounds for name in bound.reads]
        self.own_columns = list(dict.fromkeys([*self.operator.keys, *inputs]))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of the slot."""
        super().init(handle)
        self.version = handle.getValueState("tables", "version long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Called once per batch and slot."""
        self.check_workers()
        task, number = Task.current(), self.own_slots.index(key[0])
        tables, routers = in_force(self.chain, task)
        capacity = self.chain.reconfiguration.capacity
        tally = Tally(self.chain.n_workers, PairCounts(capacity) if self.next is not None else None)
        for row in rows:
            if row["target"] is not None:
                yield self._to_aggregator(number, row["target"], row["operator"], row["blob"])
            elif row["blob"] is not None:
                yield from self._onward(number, rows_of(row["blob"]), routers, tally)
        if self.next is not None and number == 0:
            yield from (self._to_worker(slot, None) for slot in self.own_slots)
        yield from self._served(task, number, tables, routers, tally)

    def _served(
        self, task: Task, number: int, tables: Tables, routers: list[TableRouter], tally: Tally
    ) -> Iterator[Row]:
        """Take the tuples into the states; give what leaves the worker besides them."""
        partial, tuples, seconds = self.worker.summarise(iter(tally.tuples))
        for target, blob in self._kept(partial, task.batch, tables.version, routers[self.number], number, tally):
            yield self._to_aggregator(number, target, self.number, blob)
        if self.chain.ledger is not None:
            partials = 0 if partial is None else partial.num_rows
            self._report(task, number, tuples, seconds, partials, tally)

    def _onward(self, number: int, tuples: pa.Table, routers: list[TableRouter], tally: Tally) -> Iterator[Row]:
        """Blobs for the next operator, each made of one that came in: in which order those came does not show."""
        tally.tuples += tuples.select(self.own_columns).to_batches()
        if self.next is not None:
            yield from self._send(number, self.operator.onward(tuples), routers, tally)

    def _send(self, number: int, sent: pa.Table, routers: list[TableRouter], tally: Tally) -> Iterator[Row]:
        """Route tuples of worker `number` to the next operator, one blob per worker."""
        if self.next is None or not sent.num_rows:
            return
        second = key_hashes(sent, self.next.keys)
        workers = routes(routers[self.number + 1], second, number)
        tally.count(key_hashes(sent, self.operator.keys), second, workers)
        packed = packs.packed(sent.select(list(self.next.columns)), workers, self.chain.n_workers, WORKER)
        for worker, blob in zip(packed[WORKER].to_pylist(), packed[packs.ROWS].to_pylist(), strict=True):
            yield self._to_worker(self.own_slots[worker], blob)

    def _kept(
        self, new: pa.Table | None, batch: int, version: int, router: TableRouter, number: int, tally: Tally
    ) -> list[tuple[int, bytes]]:
        """What goes to the aggregator: all states when it is time, else those that belong elsewhere from now on."""
        known = self.version.get()
        self.version.update((version,))
        flushed = self.keep(new, batch)
        if flushed or known is None or known[0] == version:
            return flushed
        leaving = self._leaving(router, number)
        tally.flushed = sum(table.num_rows for table in leaving)
        return split(pa.concat_tables(leaving), self.partial_states.keys, self.slots) if leaving else []

    def _leaving(self, router: TableRouter, number: int) -> list[pa.Table]:
        """Take the keys out of the state that are another worker's now."""
        leaving = []
        for bucket, value in list(self.buckets.iterator()):
            held = self.opened(value[0])
            stays = router.may_get(key_hashes(held, self.partial_states.keys), number)
            if stays.all():
                continue
            leaving.append(held.filter(pa.array(~stays)))
            if stays.any():
                self.store(bucket[0], held.filter(pa.array(stays)))
            else:
                self.buckets.removeKey(bucket)
        return leaving

    def _to_worker(self, slot: int, blob: bytes | None) -> Row:
        return Row(slot=slot, target=None, operator=self.number + 1, blob=blob)

    def _to_aggregator(self, number: int, target: int, operator: int, blob: bytes) -> Row:
        """States pass the workers of the same number of all later operators: one plan has no other way."""
        return Row(
            slot=target if self.next is None else self.own_slots[number], target=target, operator=operator, blob=blob
        )

    def _report(self, task: Task, number: int, tuples: int, seconds: float, partials: int, tally: Tally) -> None:
        ledger = Ledger(str(self.chain.ledger))
        report = HopReport(self.number, number, host_name(), tuples, seconds, partials, tally.flushed, tally.sent)
        attempt(ledger.uri, lambda: report.write(ledger, task.query, task.batch))
        if tally.pairs is not None:
            name, pairs = f"{task.batch:012d}/pairs-{self.number:03d}-{number:06d}", tally.pairs.pairs().pack()
            attempt(ledger.uri, lambda: ledger.put(task.query, name, pairs))
