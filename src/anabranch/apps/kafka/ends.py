"""Topics of Kafka as source and sink, through Spark's own connector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.apps.app import App
from anabranch.apps.balancing import ROW
from anabranch.apps.kafka.address import KafkaAddress
from anabranch.apps.kafka.connection import Connection
from anabranch.apps.kafka.gaps import places, size
from anabranch.apps.kafka.read_topic import ReadTopic
from anabranch.apps.kafka.records import REASON, Records
from anabranch.apps.kafka.topic_notes import TopicNotes
from anabranch.apps.kafka.topic_offsets import Offsets, TopicOffsets, n_offsets
from anabranch.apps.kafka.topic_owner import Owner, SinkTopic
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.run.notes import Note, silent
from anabranch.apps.sinks.sink import BATCH, Sink
from anabranch.apps.sources.reread import Reread
from anabranch.apps.sources.source import MALFORMED, Source, observed, without_malformed
from anabranch.errors import ConfigError, InputError

STARTS = ("earliest", "latest")
_LOSS = ("true", "false")
# What identifies a record, and is all of Kafka's own columns that goes on to the edge.
_IDENTITY = ("partition", "offset")
# Kafka's own defaults, 500 records and a megabyte at a time, are for consumers that look at each record. At the end of
# a topic a consumer has asked for more already, and may ask for nothing else before the broker answers: by default that
# takes 500 ms, and so much longer the batch that reaches the end.
_FETCH = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.wait.ms": "20",
}


@dataclass(frozen=True)
class KafkaSource(Source):
    """The records of a topic, those that are there and each that is added.

    Malformed records do not reach the application: they are counted, and `malformed` finds them again.

    Parameters
    ----------
    text
        ``kafka://HOST:PORT/TOPIC?format=json&from=earliest&columns=a,b&failOnDataLoss=true``: the format is one of
        `records.FORMATS`, ``from`` is earliest or latest and counts at a query's first start only, ``columns`` are
        those of `Records`, and ``failOnDataLoss=false`` skips records that the topic has removed before they were read.
    format
        Of the values, unless the address says it; json where neither does.
    batch
        Most records in a micro-batch.
    """

    text: str
    format: str | None = None
    batch: int | None = None
    connection: Connection = field(default_factory=Connection)

    place: ClassVar[tuple[str, ...]] = ("timestamp", "partition", "offset")
    rows: ClassVar[str] = "records"

    def __post_init__(self) -> None:
        if self._start not in STARTS:
            raise ConfigError(f"from must be one of {', '.join(STARTS)}, got {self._start!r}")
        if self._loss not in _LOSS:
            raise ConfigError(f"failOnDataLoss must be one of {', '.join(_LOSS)}, got {self._loss!r}")
        written = self.address.parameters.get("format")
        if written and self.format and written != self.format:
            raise ConfigError(f"the address says format {written}, --format says {self.format}; leave one out")
        _ = self.records

    @property
    def address(self) -> KafkaAddress:
        """Where the topic is."""
        return KafkaAddress.parse(self.text, known=("format", "from", "columns", "failOnDataLoss"))

    @property
    def records(self) -> Records:
        """How its values are written."""
        given = self.address.parameters
        columns = tuple(name.strip() for name in given["columns"].split(",")) if "columns" in given else ()
        return Records(given.get("format") or self.format or "json", columns)

    @property
    def _start(self) -> str:
        return self.address.parameters.get("from", STARTS[0])

    @property
    def _fails_on_loss(self) -> bool:
        return self._loss == _LOSS[0]

    @property
    def _loss(self) -> str:
        return self.address.parameters.get("failOnDataLoss", _LOSS[0])

    def check(self, spark: SparkSession, checkpoint: Checkpoint, note: Note = silent) -> None:
        self.address.check()
        require_connector(spark)
        topic = self.topic(checkpoint)
        topic.check()
        gone = topic.unread()
        if gone and self._fails_on_loss:
            raise InputError(topic.lost(gone))
        if gone:
            note(f"{size(gone):,} records are skipped, which topic {topic.address.topic} has removed: {places(gone)}")

    def check_running(self, checkpoint: Checkpoint) -> None:
        self.topic(checkpoint).check_running()

    def tell_skipped(self, progress: Mapping[str, Any], note: Note) -> None:
        """Say how many offsets of a batch had no record, where records that are gone are skipped."""
        counted = observed(progress)
        skipped = 0 if counted is None else n_offsets(progress) - counted["records"]
        if skipped > 0 and not self._fails_on_loss:
            note(
                f"{skipped:,} offsets of batch {progress['batchId']} had no record: topic {self.address.topic} had "
                "removed them (retention or compaction), or has marks of transactions there"
            )

    def topic(self, checkpoint: Checkpoint) -> ReadTopic:
        """The topic, and what this checkpoint knows of it."""
        return ReadTopic(self.address, self.connection, checkpoint)

    def open(self, spark: SparkSession) -> DataFrame:
        options = {"subscribe": self.address.topic, "startingOffsets": self._start, **_FETCH}
        options["failOnDataLoss"] = str(self._fails_on_loss).lower()
        if self.batch is not None:
            options["maxOffsetsPerTrigger"] = str(self.batch)
        return spark.readStream.format("kafka").options(**options | self.address.options(self.connection)).load()

    def read(self, spark: SparkSession, app: App, columns: Mapping[str, str], *, strict: bool = False) -> DataFrame:
        parsed = self.records.parse(self.open(spark), app, columns)
        good = without_malformed(parsed, REASON, strict=strict)
        fields = [name for name in good.columns if not name.startswith(ROW)]
        return app.read(good.select(*fields, *(ROW + name for name in _IDENTITY)))

    def malformed(
        self, spark: SparkSession, app: App, columns: Mapping[str, str], start: Offsets, end: Offsets
    ) -> DataFrame:
        """The malformed records from `start` to `end`, with the reason; a batch DataFrame."""
        # Partitions that came with this batch were read from their beginning.
        begin = {topic: {p: start.get(topic, {}).get(p, -2) for p in ends} for topic, ends in end.items()}
        assign = {topic: [int(p) for p in ends] for topic, ends in end.items()}
        limits = {"assign": assign, "startingOffsets": begin, "endingOffsets": end}
        options = {name: json.dumps(value) for name, value in limits.items()} | _FETCH
        rows = spark.read.format("kafka").options(**options | self.address.options(self.connection)).load()
        # Spark would push the filter below the parser, and parse every record twice: not below an observation.
        parsed = self.records.parse(rows, app, columns).observe(MALFORMED, F.count(REASON).alias("n"))
        bad = parsed.where(F.col(REASON).isNotNull())
        others = [F.col(ROW + name).alias(name) for name in ("topic", "partition", "offset", "timestamp")]
        return bad.select(F.col(REASON).alias("reason"), _shown("value"), _shown("key"), *others)

    def reread(
        self, spark: SparkSession, app: App, columns: Mapping[str, str], checkpoint: Checkpoint, batch: int
    ) -> Reread:
        """The malformed records of a batch."""
        start, end = TopicOffsets(checkpoint).of_batch(batch)
        topic = self.address.topic
        gone = self.topic(checkpoint).removed(start.get(topic, {}), end.get(topic, {}))
        begin = {**start, topic: {**start.get(topic, {}), **{str(gap.partition): gap.end for gap in gone}}}
        rows = self.malformed(spark, app, columns, begin, end)
        removed = f"topic {topic} had removed {size(gone):,} records ({places(gone)})"
        return Reread(rows, removed, size(gone)) if gone else Reread(rows)

    def where(self, spark: SparkSession, app: App, columns: Mapping[str, str], example: Mapping[str, Any]) -> str:
        """Where a malformed record is."""
        return f"partition {example['partition']}, offset {example['offset']}"

    def redacted(self, text: str) -> str:
        return self.connection.redacted(text)


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A topic to which every row that a batch changed goes as a JSON object with the field ``batch``.

    Guarantees
    ----------
    Each row is there at least once. After a crash within a batch its rows come again, the same ones with the same batch
    number: a reader that keeps each key's row with the highest batch number has the answer, however often a row came.

    Parameters
    ----------
    text
        ``kafka://HOST:PORT/TOPIC``.
    key
        The column that becomes the record's key.
    adopt
        Take the topic over if it holds the answers of another query; see `SinkTopic`.
    owner
        Whose answers these are; `owned` finds it. Dead letters have none: each says where it came from.
    """

    text: str
    key: str
    connection: Connection = field(default_factory=Connection)
    adopt: bool = False
    owner: Owner | None = None

    def __post_init__(self) -> None:
        _ = self.address

    @property
    def address(self) -> KafkaAddress:
        """Where the topic is."""
        return KafkaAddress.parse(self.text)

    def open(self, spark: SparkSession) -> None:
        self.address.check()
        require_connector(spark)

    def owned(self, spark: SparkSession, checkpoint: Checkpoint, query: str) -> KafkaSink:
        topic = SinkTopic(self.address, self.connection, TopicNotes(checkpoint.uri), checkpoint.batches())
        return replace(self, owner=topic.owner(spark, query, adopt=self.adopt))

    def write(self, rows: DataFrame, batch: int) -> None:
        first = self.owner.first if self.owner else 0
        value = F.struct(*(f"`{name}`" for name in rows.columns), F.lit(first + batch).alias(BATCH))
        records = rows.select(
            F.col(f"`{self.key}`").cast("string").alias("key"),
            F.to_json(value, {"ignoreNullFields": "false"}).alias("value"),
            *([self.owner.headers()] if self.owner else []),
        )
        options = {"topic": self.address.topic, **self.address.options(self.connection)}
        records.write.format("kafka").options(**options).save()

    def redacted(self, text: str) -> str:
        return self.connection.redacted(text)


def require_connector(spark: SparkSession) -> None:
    """Raise InputError, with what to do, where the session has no Kafka connector."""
    try:
        spark.read.format("kafka").options(**{"kafka.bootstrap.servers": "none:1", "subscribe": "none"}).load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        raise InputError(
            "Spark's Kafka connector is not there; add --packages "
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}, or --jars FOLDER with its jars"
        ) from None


def _shown(name: str) -> F.Column:  # type: ignore[name-defined]
    """Bytes as text, or in base64 where they are not text."""
    raw = F.col(ROW + name)
    text = raw.cast("string")
    # Spark breaks the lines of base64.
    return F.when(F.is_valid_utf8(text), text).otherwise(F.translate(F.base64(raw), "\r\n", "")).alias(name)
