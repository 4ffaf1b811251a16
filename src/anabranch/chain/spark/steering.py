"""The manager of a running chain: pairs of past batches become the tables of the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from anabranch.chain.planning import Decision, Manager, Pairs, Seats
from anabranch.chain.spark.hop_report import HopReport, hop_reports
from anabranch.chain.spark.settings import TaskSettings
from anabranch.chain.spark.tables import (
    FIRST,
    MOVED,
    Tables,
    placement_name,
    placement_of,
    tables_of,
)
from anabranch.errors import SnapshotError
from anabranch.spark.plans.ledger import KEPT_BATCHES, Ledger, parse
from anabranch.spark.plans.plan_source import ONE_ROW, OneTask, PlanSource, note_failure, rows_of
from anabranch.spark.plans.unwritten import UNPLANNED, attempt, flag
from anabranch.spark.task import Task


def behind_tables(df: DataFrame, settings: TaskSettings) -> DataFrame:
    """The rows; none is read before the batch has its tables."""
    if settings.ledger is None or not df.isStreaming:
        return df
    return df.crossJoin(F.broadcast(rows_of(df.sparkSession, TablesSource, settings).select()))


class TablesSource(PlanSource):
    """A batch source with one partition, whose task settles the tables of the running micro-batch."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "anabranch-tables"

    def reader(self, schema: StructType) -> DataSourceReader:
        """Called once per query."""
        return _TablesReader(self.settings())


class _TablesReader(OneTask):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Run as a task in every micro-batch. It raises only where tables are needed: else any are correct."""
        task, unwritten, failed = Task.current(), 0, list[Exception]()
        if self.settings.steps:
            settle(self.settings, task.query, task.batch, failed)
        else:  # whatever fails, the batch goes by hash
            ledger = str(self.settings.ledger)
            unwritten = attempt(ledger, lambda: settle(self.settings, task.query, task.batch, failed))
        yield flag(flag(ONE_ROW, unwritten), len(failed), UNPLANNED)


def settle(settings: TaskSettings, query: str, batch: int, failed: list[Exception] | None = None) -> Tables:
    """The tables of a batch: those that are written, or new ones, written before they are returned.

    Every `every` batches the manager decides; in between the tables of the batch before stay in force. A placement is
    written before the tables that put it in force, so a crash in between leaves the old ones in force, and the batch,
    when it is replayed, finds the placement that it had. `failed` gets the reason where the manager cannot decide.
    """
    ledger = Ledger(str(settings.ledger))
    known = tables_of(ledger, query, batch)
    if known is not None:
        return known
    tables = _last(settings, ledger, query, batch)
    if batch and batch % settings.reconfiguration.every == 0:
        tables = _decided(settings, ledger, query, batch, tables, failed)
    tables = replace(tables, n_servers=settings.reconfiguration.n_servers)
    tables = parse(Tables.unpack, ledger.settle(query, f"{batch:012d}/tables", tables.pack()))
    _forget(settings, ledger, query, batch)
    return tables


def _last(settings: TaskSettings, ledger: Ledger, query: str, batch: int) -> Tables:
    """Tables of the last batch before this one.

    If they were new there, and the batch had no partitions, no worker was called to hand states over: those of stateful
    steps are where the version before has them, which then stays in force.
    """
    for one in reversed([before for before in ledger.batches(query) if before < batch]):
        tables = tables_of(ledger, query, one)
        if tables is None:
            continue
        is_new = bool(settings.steps) and tables.version == one
        if is_new and not any(name.startswith(MOVED) for name in ledger.names(query, f"{one:012d}")):
            return replace(tables, version=tables.previous)
        return tables
    return Tables()


def _decided(
    settings: TaskSettings, ledger: Ledger, query: str, batch: int, before: Tables, failed: list[Exception] | None
) -> Tables:
    try:
        return decide(settings, ledger, query, batch, before)
    except Exception as error:  # tables stay, and the query goes on, if the planner is missing or fails
        note_failure(batch, error, failed)
        return before


def decide(settings: TaskSettings, ledger: Ledger, query: str, batch: int, before: Tables) -> Tables:
    """Plan from what the workers have reported since the last decision, and take the plan if it pays."""
    recent = _pairs(settings, ledger, query, batch)
    chain = _remembered(settings, ledger, query, batch, recent)
    seats = seats_of(settings, hop_reports(ledger, query, batch - 1))
    if seats is None or not all(map(len, recent)):
        return before
    manager = _manager(settings, seats.n_servers)
    if seats.n_servers < 2:
        if not manager.split or settings.n_workers < 2:
            return before
        seats, manager = _on_one_host(settings, manager)
    now = placement_of(settings, query, before.version)
    nothing = tuple(np.zeros(0, np.uint64) for _ in now.tables)
    last = Decision(seats.by_server(now, chain), False, before.trust, 0.0, 0.0, 0.0, 0.0, nothing)
    decision = manager.decide(chain, last, recent=recent)
    tables = replace(
        before,
        trust=decision.trust,
        measured=decision.locality_now,
        gain_s=decision.gain_s,
        cost_s=decision.cost_s,
    )
    if not decision.migrates:
        return tables
    ledger.settle(query, placement_name(batch), seats.by_worker(decision.placement, now).pack())
    moved = sum(map(len, decision.moved))
    new = replace(tables, version=batch, previous=before.version, moved=moved, split=decision.placement.n_split)
    return replace(new, promised=decision.locality_candidate)


def _manager(settings: TaskSettings, n_servers: int) -> Manager:
    """The manager, who may not split keys of a stateful step: their states are in one place."""
    given = settings.reconfiguration.manager
    may = range(settings.n_operators) if given.split is True else given.split or ()
    split = tuple(operator for operator in may if operator not in settings.steps)
    return replace(given, n_servers=n_servers, seed=settings.seed, split=split)


def _on_one_host(settings: TaskSettings, manager: Manager) -> tuple[Seats, Manager]:
    """Nothing crosses a network there: each worker stands for a server, so that hot keys keep none of them busy."""
    seats = Seats(np.tile(np.arange(settings.n_workers, dtype=np.int32), (settings.n_operators, 1)))
    servers = replace(manager.servers, remote_s=0.0)
    return seats, replace(manager, n_servers=settings.n_workers, servers=servers, padding=0.0)


def seats_of(settings: TaskSettings, reports: list[HopReport]) -> Seats | None:
    """Servers of all workers, as far as they have reported where they ran; None where one has not."""
    n_workers, assumed = settings.n_workers, settings.reconfiguration.n_servers
    if assumed is not None:
        return Seats(np.tile(np.arange(n_workers, dtype=np.int32) % assumed, (settings.n_operators, 1)))
    hosts = [[""] * n_workers for _ in range(settings.n_operators)]
    for report in reports:
        hosts[report.operator][report.worker] = report.host
    return Seats.of(hosts) if all(map(all, hosts)) else None


def _pairs(settings: TaskSettings, ledger: Ledger, query: str, batch: int) -> list[Pairs]:
    """Pairs of each hop, of all workers, since the last decision."""
    counted: list[list[Pairs]] = [[] for _ in range(settings.n_operators - 1)]
    for one in range(batch - settings.reconfiguration.every, batch):
        for name in ledger.names(query, f"{one:012d}"):
            if name.startswith("pairs-"):
                counted[int(name.split("-")[1])].extend(_whole([ledger.found(query, f"{one:012d}/{name}")]))
    return [Pairs.pooled(parts) for parts in counted]


def _remembered(settings: TaskSettings, ledger: Ledger, query: str, batch: int, recent: list[Pairs]) -> list[Pairs]:
    """The pairs of as many periods as a plan is made from; those of this one are put aside for later ones."""
    history, fade = settings.reconfiguration.history, settings.reconfiguration.fade
    if history == 1:
        return recent
    names = [name for name in ledger.names(query) if name.startswith("period-")]
    earlier = sorted({int(name.split("-")[1]) for name in names if int(name.split("-")[1]) < batch})
    chain = []
    for hop, pairs in enumerate(recent):
        ledger.settle(query, _period_name(batch, hop), pairs.top(settings.reconfiguration.capacity).pack())
        found = [ledger.found(query, _period_name(one, hop)) for one in earlier[1 - history :]]
        chain.append(Pairs.faded([*_whole(found), pairs], fade))
    for one in earlier[: 1 - history]:
        for hop in range(len(recent)):
            ledger.remove(query, _period_name(one, hop))
    return chain


def _whole(files: Iterable[bytes | None]) -> Iterator[Pairs]:
    """The pairs of files that are there and not damaged: a plan can do without some."""
    for data in files:
        with suppress(SnapshotError):
            yield parse(Pairs.unpack, data or b"")


def _period_name(batch: int, hop: int) -> str:
    return f"period-{batch:012d}-{hop:03d}"


def _forget(settings: TaskSettings, ledger: Ledger, query: str, batch: int) -> None:
    """Remove what no batch needs that may be replayed, nor the next decision."""
    oldest = batch - max(KEPT_BATCHES, settings.reconfiguration.every + 1)
    kept = [tables_of(ledger, query, one) for one in ledger.batches(query) if one >= oldest]
    ledger.forget(query, oldest)
    first = min((tables.version for tables in kept if tables is not None), default=FIRST)
    for name in ledger.names(query):
        if name.startswith("placement-") and int(name.split("-")[1]) < first:
            ledger.remove(query, name)


def warm_up(settings: TaskSettings) -> None:
    """Compile what the manager's task would, once, here; and see that its planner is there."""
    keys = np.arange(64, dtype=np.uint64) << np.uint64(50)
    pairs = Pairs.exact(keys, keys + np.uint64(1))
    replace(settings.reconfiguration.manager, n_servers=2).decide([pairs] * (settings.n_operators - 1))
