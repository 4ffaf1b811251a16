"""Run queries on their own session while faults strike; started as a process of its own, with a job in JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from faults import Faults, FaultyManager, FaultyWChoices, inject
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.aggregates import Count, Sum
from anabranch.apps.run.cause import is_indeterminate
from anabranch.chain import Reconfiguration, chain
from anabranch.groupings.registry import parse
from anabranch.spark import balance, session

_RESTARTS = 3
_WAIT_S = 1000


class Sink:
    """One file a batch, replaced when the batch is replayed, and the moment at which the driver may be told to die."""

    def __init__(self, folder: Path, die: Callable[[str, int], None]) -> None:
        self.folder, self.die = folder, die

    def __call__(self, rows: DataFrame, batch: int) -> None:
        table = rows.toArrow()
        self.die("before the sink", batch)
        pq.write_table(table, self.folder / ".part")
        os.replace(self.folder / ".part", self.folder / f"{batch:06d}.parquet")
        self.die("after the sink", batch)


class Query:
    """One balanced query: rows, edge, workers, aggregator, with what strikes them."""

    def __init__(self, spark: SparkSession, job: dict[str, Any], query: dict[str, Any]) -> None:
        self.spark, self.job, self.query = spark, job, query
        self.folder = Path(job["folder"], query["name"])
        for name in ("out", "faults"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        planned = tuple((stage, batch, kind) for stage, batch, kind in query.get("faults", ()))
        self.faults = Faults(str(self.folder / "faults"), planned, query.get("random_routes", False))
        self.restarts = 0

    def start(self, die: Callable[[str, int], None] = lambda *_: None, *, idle: bool = False) -> StreamingQuery:
        """Start or resume; where it may be idle it waits for more input."""
        writer = self._build().writeStream.outputMode("update").foreachBatch(Sink(self.folder / "out", die))
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        return (writer if idle else writer.trigger(availableNow=True)).start()

    def run(self) -> None:
        """Run to the end, from the checkpoint again where Spark says that it cannot repeat a batch."""
        while True:
            try:
                self.start().awaitTermination()
                return
            except StreamingQueryException as error:
                self.restarts += 1
                if not is_indeterminate(error) or self.restarts > _RESTARTS:
                    raise

    def _build(self) -> DataFrame:
        inject(self.faults)
        struck = {stage for stage, _, _ in self.faults.planned}
        rows = self.spark.readStream.schema("key string, amount long, value double")
        df = rows.option("maxFilesPerTrigger", self.job["files_a_batch"]).parquet(self.job["data"])
        df = self._through("source", df) if "source" in struck else df
        if self.query.get("chain"):
            return self._chain(df)
        grouping = parse(self.query["grouping"])
        if self.query.get("edge") == "planned":
            grouping = FaultyWChoices(faults=self.faults)
        balanced = balance(
            df,
            "key",
            grouping,
            self.query.get("n_workers", 8),
            edge=self.query.get("edge"),
            ledger=str(self.folder / "ledger") if self.query.get("ledger") else None,
            regime=self.query.get("regime", "batch"),
            flush_every=self.query.get("flush_every", 1),
        )
        merged = balanced.aggregate(n=Count(), amount=Sum("amount"), value=Sum("value"))
        return self._through("last", merged) if "last" in struck else merged

    def _chain(self, df: DataFrame) -> DataFrame:
        manager = FaultyManager(1, method="greedy", faults=self.faults)
        begun = chain(
            df,
            self.query["n_workers"],
            ledger=str(self.folder / "ledger"),
            flush_every=self.query["flush_every"],
            reconfiguration=Reconfiguration(
                every=self.query["every"], n_servers=self.query.get("n_servers"), manager=manager
            ),
        )
        if self.query.get("step"):
            sent = "key string, amount long, value double"
            stepped = begun.map_with_state("key", surprise, sent, state="mean double", order_by=["value"])
            return stepped.then("amount", n=Count(), value=Sum("value")).answers()
        by_key = begun.then("key", n=Count(), value=Sum("value"))
        return by_key.then("amount", n=Count(), value=Sum("value")).answers()

    def _through(self, stage: str, df: DataFrame) -> DataFrame:
        faults = self.faults

        def halfway(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return faults.halfway(stage, batches)

        return df.mapInArrow(halfway, df.schema)


def surprise(states: pa.Table, tuples: pa.Table) -> tuple[pa.Table, pa.Table]:
    """How far each value is from the smoothed ones of its key before it."""
    means = dict(zip(states["key"].to_pylist(), states["mean"].to_pylist(), strict=True))
    values = []
    for key, value in zip(tuples["key"].to_pylist(), tuples["value"].to_pylist(), strict=True):
        values.append(value - means.get(key, 0.0))
        means[key] = 0.75 * means.get(key, 0.0) + 0.25 * value
    new = pa.table({"key": pa.array(means.keys(), pa.string()), "mean": pa.array(means.values(), pa.float64())})
    return new, tuples.set_column(tuples.schema.get_field_index("value"), "value", pa.array(values, pa.float64()))


def _run_at_once(queries: list[Query], moment: str, batch: int) -> None:
    """Run until all queries have come to the moment in the batch, and die there with all of them."""
    barrier = threading.Barrier(len(queries), action=_die)

    def die(now: str, reached: int) -> None:
        if (now, reached) == (moment, batch):
            barrier.wait(_WAIT_S)

    running = [query.start(die, idle=moment == "idle") for query in queries]
    commits = [query.folder / "checkpoint" / "commits" / str(batch) for query in queries]
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        for error in filter(None, [one.exception() for one in running]):
            raise error
        if moment == "idle" and all(commit.exists() for commit in commits):
            _die()
        time.sleep(0.1)
    raise TimeoutError(f"the queries did not come to {moment} in batch {batch}")


def _await_executors(spark: Any, n: int) -> None:
    """Wait until that many have registered: a new one takes its time to come in the place of one that was killed."""
    until = time.monotonic() + _WAIT_S
    # The driver counts too.
    while spark._jsc.sc().getExecutorMemoryStatus().size() < n + 1:
        if time.monotonic() > until:
            raise TimeoutError(f"there are not {n} executors")
        time.sleep(0.1)


def _die() -> None:
    spark: Any = SparkSession.active()
    os.kill(int(spark._jvm.java.lang.ProcessHandle.current().pid()), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def main(path: str) -> None:
    """Run the job of a file; what happened goes into a file beside it."""
    job = json.loads(Path(path).read_text())
    spark = session(master=job["master"], **job["conf"])
    queries = [Query(spark, job, query) for query in job["queries"]]
    if job["die"]:
        _run_at_once(queries, *job["die"])
    for query in queries:
        _await_executors(spark, job.get("executors", 0))
        query.run()
    Path(path).with_suffix(".done").write_text(json.dumps({one.query["name"]: one.restarts for one in queries}))
    spark.stop()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except BaseException:
        traceback.print_exc()
        # Sinks that wait for the others to die with would keep the process alive.
        os._exit(1)
