"""One application from source to sink: started, followed, restarted and stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from anabranch.apps.app import App
from anabranch.apps.balancing import Balancing
from anabranch.apps.kafka.address import KafkaAddress
from anabranch.apps.kafka.broker_watch import watched
from anabranch.apps.kafka.ends import KafkaSink, KafkaSource
from anabranch.apps.run.cause import is_indeterminate, root_cause
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.run.notes import Note, silent
from anabranch.apps.sinks.dead_letters import DeadLetters
from anabranch.apps.sinks.sink import FolderSink, Sink, latest, shown
from anabranch.apps.sources.file_source import FileSource
from anabranch.apps.sources.source import STRICT, Source
from anabranch.errors import AnabranchError, ConfigError, InputError, QueryError
from anabranch.spark.progress import BatchMetrics, unreported

_POLL_S = 0.25
# Each time the source is asked whether it is still the same.
_CHECK_S = 10.0


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
    on_late
        Takes the number of malformed records that an earlier run had not put aside yet.
    on_note
        Takes a line about whatever else the user should know: records that are lost, brokers that are gone.
    stop
        Set it to True to end the pipeline after the batch that is running.
    """

    on_batch: Callable[[BatchMetrics], None] = _no
    on_restart: Callable[[int, str], None] = _no
    on_late: Callable[[int], None] = _no
    on_note: Note = silent
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
    dead_letters
        Where malformed rows of files and records of a topic go; None to count them only.
    strict
        End with an error at the first malformed one; its batch is not done then.
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
    dead_letters: Sink | None = None
    strict: bool = False

    def claim(self) -> str:
        """See that the application can do what is asked, and that checkpoint and sink belong to this pipeline.

        They are made its own; nothing is started. Gives the checkpoint's name.
        """
        self.app.check(self.balancing, once=self.once)
        self._check_topics()
        name = self.checkpoint.claim(self.app.identity(self.balancing), self.balancing.routing())
        self.sink.claim(name)
        if self.dead_letters is not None:
            self.dead_letters.claim(name)
        return name

    def _check_topics(self) -> None:
        """A query that writes into the topic it reads would feed on its own answers."""
        topics = [(address.servers, address.topic) for address in self._addresses()]
        for at, topic in enumerate(topics):
            if topic in topics[:at]:
                raise ConfigError(
                    f"source, sink and dead letters must be different topics, got {topic[1]} twice; choose another"
                )

    def _addresses(self) -> list[KafkaAddress]:
        """Where its topics are, that of the source first."""
        return [end.address for end in self._topics()]

    def _brokers(self) -> dict[str, dict[str, str]]:
        """Whom it needs, and what Kafka's clients need to ask them."""
        return {end.address.servers: end.address.properties(end.connection) for end in self._topics()}

    def _topics(self) -> list[KafkaSource | KafkaSink]:
        ends = (self.source, self.sink, self.dead_letters)
        return [end for end in ends if isinstance(end, KafkaSource | KafkaSink)]

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query, or resume it from the checkpoint."""
        name = self.claim()
        self._open(spark)
        sink = self.sink.owned(spark, self.checkpoint, name)
        tuples = self.source.read(spark, self.app, self.columns, strict=self.strict)
        balancing = replace(self.balancing, ledger=self.checkpoint.ledger)
        answers = self.app.build(tuples, balancing)
        writer = answers.writeStream.outputMode("update").foreachBatch(sink.write).queryName(self.app.name)
        writer = writer.option("checkpointLocation", self.checkpoint.uri)
        return (writer.trigger(availableNow=True) if self.once else writer).start()

    def run(self, spark: SparkSession, events: Events | None = None) -> None:
        """Run until the source ends (`once`), until it is told to stop, or until it fails, which is a QueryError."""
        events = events or Events()
        with watched(self._brokers(), events.on_note):
            self._run(spark, events)

    def _run(self, spark: SparkSession, events: Events) -> None:
        restarts = 0
        while True:
            query: StreamingQuery | None = None
            try:
                self._catch_up(spark, events)
                query = self.start(spark)
                return self._follow(spark, query, events)
            except Exception as error:  # a query's own, or any that a JVM leaves behind which has ended
                if events.stop:
                    return
                if query is None:
                    raise
                if STRICT in _full_text(error):
                    raise QueryError(self._ended_strictly(spark)) from None
                restarts += 1
                if not is_indeterminate(error) or restarts > self.restarts:
                    raise QueryError(f"{self.app.name} failed: {self._cause(error)}") from self._shown(error)
                events.on_restart(restarts, self._cause(error))
            finally:
                if query is not None:
                    _end(query)

    def _ended_strictly(self, spark: SparkSession) -> str:
        assert self.letters is not None, "only their sources know malformed rows"
        return (
            f"{self.app.name} has come to a malformed row, {self.letters.first(spark)}; mend it where it is, or leave "
            "--strict out to put such rows aside and go on"
        )

    @cached_property
    def letters(self) -> DeadLetters | None:
        """What becomes of malformed records; None where the source has none."""
        if not isinstance(self.source, KafkaSource | FileSource):
            return None
        return DeadLetters(self.source, self.app, self.columns, self.checkpoint, self.dead_letters)

    def heaviest(self, spark: SparkSession, n: int) -> list[list[str]]:
        """Header and the n heaviest rows of the answer so far, as texts; nothing where the sink keeps no answers."""
        if not isinstance(self.sink, FolderSink) or not self.sink.batches():
            return []
        answers = latest(spark, self.sink.uri, self.app.key)
        top = answers.orderBy(F.desc(self.app.heaviest), self.app.key).limit(n).collect()
        return [answers.columns, *([shown(value) for value in row] for row in top)]

    def _catch_up(self, spark: SparkSession, events: Events) -> None:
        """Put aside the malformed records of batches that were committed when a run ended."""
        if self.letters is None:
            return
        self.letters.note = events.on_note
        self.claim()
        self._open(spark, events.on_note)
        try:
            late = self.letters.catch_up(spark)
        except AnabranchError:
            raise
        except Exception as error:  # py4j's, too, which is all that some of Java's errors are
            raise QueryError(f"malformed records could not be put aside: {self._cause(error)}") from self._shown(error)
        if late:
            events.on_late(late)

    def _open(self, spark: SparkSession, note: Note = silent) -> None:
        self.source.check(spark, self.checkpoint, note)
        self.sink.open(spark)
        if self.dead_letters is not None:
            self.dead_letters.open(spark)

    def _cause(self, error: Exception) -> str:
        """Why a query failed, in one line and without secrets."""
        # Kafka does not say which topic it does not know.
        if "UnknownTopicOrPartition" in _full_text(error) and self._addresses():
            return " or ".join(self._missing())
        if "may have been lost" in _full_text(error) and (lost := self._lost()):
            return lost
        return root_cause(RuntimeError(self._redacted(_full_text(error)) or type(error).__name__))

    def _lost(self) -> str | None:
        """What has become of unread records of the source's topic."""
        if not isinstance(self.source, KafkaSource):
            return None
        topic = self.source.topic(self.checkpoint)
        try:
            topic.check()
            gone = topic.unread()
        except InputError as lost:  # all of it: the topic was deleted, or made again
            return str(lost)
        return topic.lost(gone) if gone else None

    def _missing(self) -> list[str]:
        """What to do about each topic if it is not there."""
        if not isinstance(self.source, KafkaSource):
            return [address.missing() for address in self._addresses()]
        others = [address.missing() for address in self._addresses()[1:]]
        return [self.source.topic(self.checkpoint).missing(), *others]

    def _shown(self, error: Exception) -> Exception | None:
        """The error itself, unless it would tell secrets in a traceback."""
        return error if self._redacted(_full_text(error)) == _full_text(error) else None

    def _redacted(self, text: str) -> str:
        for part in (self.source, self.sink, self.dead_letters):
            text = text if part is None else part.redacted(text)
        return text

    def _follow(self, spark: SparkSession, query: StreamingQuery, events: Events) -> None:
        last = -1
        running: int | None = None
        ended = False
        check_at = time.monotonic() + _CHECK_S
        while not ended:
            ended = bool(query.awaitTermination(_POLL_S))  # type: ignore[arg-type]
            last = self._tell(spark, query, last, events)
            if ended or time.monotonic() >= check_at:
                self.source.check_running(self.checkpoint)
                check_at = time.monotonic() + _CHECK_S
            if events.stop and running is None:
                running = last
            # A batch in progress is left to end: stopping then costs nothing, and nothing is done twice.
            if running is not None and (last > running or not query.status["isTriggerActive"]):
                _end(query)
                # One more may have been done by then.
                self._tell(spark, query, last, events)
                return

    def _tell(self, spark: SparkSession, query: StreamingQuery, last: int, events: Events) -> int:
        for progress in query.recentProgress:
            if progress["batchId"] > last and _is_batch(progress):
                last = progress["batchId"]
                metrics = self._metrics(progress)
                malformed = 0 if self.letters is None else self.letters.batch(spark, progress)
                events.on_batch(replace(metrics, malformed=malformed))
                if isinstance(self.source, KafkaSource):
                    self.source.tell_skipped(progress, events.on_note)
        return last

    def _metrics(self, progress: Mapping[str, Any]) -> BatchMetrics:
        """Figures of a batch. A ledger that is lost does not end the run: it goes on without its figures."""
        found = None
        with suppress(InputError, OSError):
            found = self.app.metrics(self.checkpoint.ledger, progress)
        return found or unreported(progress)


def _is_batch(progress: Mapping[str, Any]) -> bool:
    """Whether it tells of a batch that ran; Spark also reports that nothing happens."""
    return "addBatch" in progress["durationMs"]


def _full_text(error: Exception) -> str:
    """What an error says, with Java's causes, which PySpark leaves out unless a setting asks for them."""
    return f"{error}\n{getattr(error, '_stackTrace', '') or ''}".strip()


def _end(query: StreamingQuery) -> None:
    # It may have ended by itself, and said why; or Spark has.
    with suppress(Exception):
        query.stop()
