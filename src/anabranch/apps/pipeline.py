"""One application from source to sink: started, followed, restarted and stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.apps.app import App
from anabranch.apps.balancing import Balancing
from anabranch.apps.cause import is_indeterminate, root_cause
from anabranch.apps.checkpoint import Checkpoint
from anabranch.apps.sink import FolderSink, Sink, latest, shown
from anabranch.apps.source import Source
from anabranch.errors import QueryError
from anabranch.spark import session
from anabranch.spark.progress import BatchMetrics, batch_metrics

_POLL_S = 0.25


@contextmanager
def own_session(app_name: str, master: str | None = None) -> Iterator[SparkSession]:
    """A quiet session that ends with the block; or the one that is active, which is left as it is."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    # What goes wrong in a query is told in one line by whoever runs it.
    spark = session(app_name, master=master, spark_log_level="OFF")
    try:
        yield spark
    finally:
        with suppress(Exception):  # a signal to the whole process group has ended the JVM already
            spark.stop()


def _no(*_: object) -> None:
    return None


@dataclass
class Events:
    """What a running pipeline tells, and what it is told.

    Parameters
    ----------
    on_batch
        Takes the metrics of each batch when it is done.
    on_restart
        Takes the number of the restart and its cause.
    stop
        Set to True by whoever wants the pipeline to end after the batch that is running.
    """

    on_batch: Callable[[BatchMetrics], None] = _no
    on_restart: Callable[[int, str], None] = _no
    stop: bool = False


@dataclass(frozen=True)
class Pipeline:
    """An application with its source, sink and checkpoint.

    Guarantees
    ----------
    Each batch reaches the sink, and counts, once: a query that was stopped or killed goes on from its checkpoint.

    Parameters
    ----------
    columns
        Where the application's fields are found in the source; see `App.read`.
    once
        End when everything that is there now has been read.
    restarts
        How often a query is started again after Spark has given up on a batch whose tasks it could not repeat.
    """

    app: App
    source: Source
    sink: Sink
    checkpoint: Checkpoint
    balancing: Balancing = field(default_factory=Balancing)
    columns: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    restarts: int = 3

    def claim(self) -> None:
        """See that checkpoint and sink belong to this pipeline, and make them its own; nothing is started."""
        identity = {"app": self.app.name, "key": self.app.key, **self.balancing.identity()}
        self.sink.claim(self.checkpoint.claim(identity))

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query, or resume it from the checkpoint."""
        self.claim()
        tuples = self.app.read(self.source.open(spark), self.columns)
        balancing = replace(self.balancing, ledger=self.checkpoint.ledger)
        answers = self.app.build(tuples, balancing)
        writer = answers.writeStream.outputMode("update").foreachBatch(self._write).queryName(self.app.name)
        writer = writer.option("checkpointLocation", self.checkpoint.uri)
        return (writer.trigger(availableNow=True) if self.once else writer).start()

    def run(self, spark: SparkSession, events: Events | None = None) -> None:
        """Run until the source ends (`once`), until it is told to stop, or until it fails, which is a QueryError."""
        events = events or Events()
        restarts = 0
        while True:
            query = self.start(spark)
            try:
                return self._follow(query, events)
            except Exception as error:  # a query's own, or any that a JVM leaves behind which has ended
                if events.stop:
                    return
                restarts += 1
                if not is_indeterminate(error) or restarts > self.restarts:
                    raise QueryError(f"{self.app.name} failed: {root_cause(error)}") from error
                events.on_restart(restarts, root_cause(error))
            finally:
                _end(query)

    def heaviest(self, spark: SparkSession, n: int) -> list[list[str]]:
        """Header and the n heaviest rows of the answer so far, as texts; nothing where the sink keeps no answers."""
        if not isinstance(self.sink, FolderSink) or not self.sink.batches():
            return []
        answers = latest(spark, self.sink.uri, self.app.key)
        top = answers.orderBy(F.desc(self.app.heaviest), self.app.key).limit(n).collect()
        return [answers.columns, *([shown(value) for value in row] for row in top)]

    def _write(self, rows: DataFrame, batch: int) -> None:
        self.sink.write(rows, batch)

    def _follow(self, query: StreamingQuery, events: Events) -> None:
        last = -1
        running: int | None = None
        ended = False
        while not ended:
            ended = bool(query.awaitTermination(_POLL_S))  # type: ignore[arg-type]
            last = self._tell(query, last, events)
            if events.stop and running is None:
                running = last
            # A batch in progress is left to end: stopping then costs nothing, and nothing is done twice.
            if running is not None and (last > running or not query.status["isTriggerActive"]):
                _end(query)
                # One more may have been done by then.
                self._tell(query, last, events)
                return

    def _tell(self, query: StreamingQuery, last: int, events: Events) -> int:
        for progress in query.recentProgress:
            if progress["batchId"] > last and _is_batch(progress):
                last = progress["batchId"]
                events.on_batch(batch_metrics(self.checkpoint.ledger, progress))
        return last


def _is_batch(progress: Mapping[str, Any]) -> bool:
    """Whether it tells of a batch that ran; Spark also reports that nothing happens."""
    return "addBatch" in progress["durationMs"]


def _end(query: StreamingQuery) -> None:
    # It may have ended by itself, and said why; or Spark has.
    with suppress(Exception):
        query.stop()
