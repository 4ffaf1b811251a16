"""Faults that strike one task once, and witnesses of what workers computed; Python workers import this module."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.chain import Decision, Manager
from anabranch.chain.spark.remember import Remember
from anabranch.groupings import Plan, Router, WChoices
from anabranch.groupings.plan import Table
from anabranch.spark.edges import adaptive as edge
from anabranch.spark.edges.adaptive import router_of
from anabranch.spark.merging import slots, way
from anabranch.spark.settings import QuerySettings
from anabranch.spark.task import Task
from anabranch.spark.workers.partial_states import PartialStates
from anabranch.spark.workers.worker import Worker


@dataclass(frozen=True)
class Faults:
    """What strikes the tasks of one query: at a stage, in a batch, once, however often the task runs again.

    Kinds: ``error`` raises, ``python`` kills the Python worker, ``executor`` kills the executor as soon as one of its
    tasks of that stage has ended, so that some tasks of the stage are done and others are not. ``driver`` kills a
    driver that is its own executor. ``slow`` waits, for Spark to run a copy of the task elsewhere.

    Parameters
    ----------
    folder
        Where strikes and what workers computed are kept, as names of empty files: those are there whole or not at all.
    planned
        Stage, batch and kind.
    random_routes
        Routes that do not repeat when a task runs again: what the library must never do.
    """

    folder: str
    planned: tuple[tuple[str, int, str], ...] = ()
    random_routes: bool = False

    def strike(self, stage: str) -> None:
        """Called by a task at the stage; does what is planned there."""
        task = Task.current()
        for kind in [kind for where, batch, kind in self.planned if (where, batch) == (stage, task.batch)]:
            ended = f"ended-{stage}-{task.batch}-{_executor()}"
            if (kind != "executor" or Path(self.folder, ended).exists()) and self._first(f"{stage}-{task.batch}"):
                _strike(kind)

    def ended(self, stage: str) -> None:
        """Called by a task that is about to end: the next one of a single-core executor finds that it has."""
        self._touch(f"ended-{stage}-{Task.current().batch}-{_executor()}")

    def witness(self, partial: pa.Table | None, tuples: int) -> None:
        """Keep a digest of partial states as a set of rows."""
        task = Task.current()
        rows = [] if partial is None else sorted(map(repr, zip(*partial.to_pydict().values(), strict=True)))
        digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
        self._touch(f"witness-{task.batch}-{task.partition}-{tuples}-{digest}-{uuid.uuid4().hex}")

    def halfway(self, stage: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, each in two; the fault strikes when the first half has been taken, and nothing after it."""
        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            self.strike(stage)
            yield batch.slice(half)
        self.ended(stage)

    def _first(self, name: str) -> bool:
        try:
            Path(self.folder, f"struck-{name}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _touch(self, name: str) -> None:
        Path(self.folder, name).touch()


def _executor() -> int:
    """Process of the executor: the parent of the daemon that forked this Python worker."""
    return _parent(os.getppid())


def _parent(process: int) -> int:
    stat = Path(f"/proc/{process}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def _strike(kind: str) -> None:
    # What was yielded before is on its way to the JVM: let it arrive.
    time.sleep(0.3)
    if kind == "error":
        raise RuntimeError("a fault that strikes once")
    if kind == "slow":
        time.sleep(20)
        return
    if kind == "driver":
        os.kill(_parent(_executor()), signal.SIGKILL)
    os.kill(os.getpid() if kind == "python" else _executor(), signal.SIGKILL)
    time.sleep(60)


class FaultyWorker(Worker):
    """A worker that faults strike while it reads and while it writes, and that leaves a witness."""

    def __init__(self, faults: Faults, partial_states: PartialStates, settings: QuerySettings) -> None:
        super().__init__(partial_states, settings)
        self.faults = faults

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.faults.halfway("worker-output", super().__call__(batches))

    def summarise(self, batches: Iterator[pa.RecordBatch]) -> tuple[pa.Table | None, int, float]:
        partial, tuples, seconds = super().summarise(self.faults.halfway("worker", batches))
        self.faults.witness(partial, tuples)
        return partial, tuples, seconds


def faulty_router_of(faults: Faults, *args: Any) -> Router:
    """The router of a task, struck when its first tuples are routed."""
    router = router_of(*args)
    route = router.route

    def struck(*args: Any) -> Any:
        faults.strike("edge")
        workers = route(*args)
        if faults.random_routes:
            np.random.default_rng().shuffle(workers)
        return workers

    router.route = struck  # type: ignore[assignment,method-assign]
    return router


@dataclass(frozen=True)
class FaultyWChoices(WChoices):
    """Struck in the plan task, which is all the Python that the planned edge has."""

    faults: Faults = Faults("")

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        self.faults.strike("edge")
        return super().table(plan, n_workers, seed)


class _Struck(tuple[Any, ...]):
    """Moved keys, struck when they are looked at: the placement is written by then, and not in force yet."""

    faults: Faults

    def __iter__(self) -> Iterator[Any]:
        self.faults.strike("written")
        return super().__iter__()


@dataclass(frozen=True)
class FaultyManager(Manager):
    """Struck when it has decided, before the placement is written, and between that and its being in force."""

    faults: Faults = Faults("")

    def decide(self, *args: Any, **kwargs: Any) -> Decision:
        decision = super().decide(*args, **kwargs)
        self.faults.strike("decided")
        moved = _Struck(decision.moved)
        moved.faults = self.faults
        return replace(decision, moved=moved)


class FaultyRemember(Remember):
    """Struck when states have been left in the ledger, and when they have been taken up; neither is committed."""

    def __init__(self, faults: Faults, *args: Any) -> None:
        super().__init__(*args)
        self.faults = faults

    def _leaving(self, *args: Any) -> list[pa.Table]:
        leaving = list(super()._leaving(*args))
        self.faults.witness(pa.concat_tables([self.step.states.empty_table(), *leaving]), 0)
        return leaving

    def _hand_over(self, *args: Any) -> int:
        moved = super()._hand_over(*args)
        self.faults.strike("handed-over")
        self.faults.ended("handed-over")
        return moved

    def _take_up(self, *args: Any) -> None:
        super()._take_up(*args)
        self.faults.strike("taken-up")
        self.faults.ended("taken-up")


def inject(faults: Faults) -> None:
    """Strike the queries that are built from here on."""
    worker: Any = functools.partial(FaultyWorker, faults)
    way.Worker = slots.Worker = worker  # type: ignore[attr-defined]
    chained: Any = importlib.import_module("anabranch.chain.spark.chain")
    chained.Remember = functools.partial(FaultyRemember, faults)
    edge.router_of = functools.partial(faulty_router_of, faults)
