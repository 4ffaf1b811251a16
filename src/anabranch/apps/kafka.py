"""Topics of Kafka as source and sink, through Spark's own connector."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.apps.answering import answering
from anabranch.apps.app import App
from anabranch.apps.balancing import ROW
from anabranch.apps.connection import Connection
from anabranch.apps.records import REASON, Records
from anabranch.apps.sink import BATCH, Sink
from anabranch.apps.source import KAFKA, MALFORMED, Source, without_malformed
from anabranch.apps.topics import topics_of
from anabranch.errors import ConfigError, InputError

STARTS = ("earliest", "latest")
# What identifies a record, and is all of Kafka's own columns that goes on to the edge.
_IDENTITY = ("partition", "offset")
_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+):(?P<port>\d{1,5})")
_SECRET = re.compile(r"(sasl|ssl|security|kafka)\.|password|secret|token|jaas", re.IGNORECASE)
# Kafka's own defaults, 500 records and a megabyte at a time, are for consumers that look at each record. At the end of
# a topic a consumer has asked for more already, and may ask for nothing else before the broker answers: by default that
# takes 500 ms, and so much longer the batch that reaches the end.
_FETCH = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.wait.ms": "20",
}


@dataclass(frozen=True)
class KafkaAddress:
    """Where a topic is: ``kafka://HOST:PORT[,HOST:PORT…]/TOPIC``, for a source with parameters behind a question mark.

    Parameters
    ----------
    servers
        Brokers to ask first, with commas between.
    parameters
        Whatever stands behind the question mark.
    """

    servers: str
    topic: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for server in self.servers.split(","):
            found = _SERVER.fullmatch(server)
            if found is None or not 0 < int(found["port"]) < 1 << 16:
                raise ConfigError(f"a broker must be HOST:PORT, as in 127.0.0.1:9092, got {server!r}")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", self.topic) or self.topic in (".", ".."):
            raise ConfigError(f"a topic has letters, digits, dots, _ and - in its name, got {self.topic!r}")

    @classmethod
    def parse(cls, text: str, known: tuple[str, ...] = ()) -> KafkaAddress:
        """Read an address; parameters that are not `known` are refused.

        Examples
        --------
        >>> KafkaAddress.parse("kafka://127.0.0.1:9092/trades?format=csv", known=("format",))
        KafkaAddress(servers='127.0.0.1:9092', topic='trades', parameters={'format': 'csv'})
        """
        place, _, query = text.removeprefix(KAFKA).partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        # Neither is shown: it may hold a password.
        if "@" in place or any(_SECRET.search(name) for name in parameters):
            raise ConfigError(
                "users, passwords and other security options do not belong into an address, where others can see them; "
                "write them into a file for --kafka-properties, or into variables such as "
                "ANABRANCH_KAFKA_SECURITY_PROTOCOL"
            )
        if not text.startswith(KAFKA):
            raise ConfigError(f"the address of a topic must be kafka://HOST:PORT/TOPIC, got {place!r}; write it so")
        for name in parameters:
            if name not in known:
                takes = f"takes {', '.join(known)}" if known else "takes no parameters here"
                raise ConfigError(f"an address kafka://HOST:PORT/TOPIC {takes}, got {name!r}; leave it out")
        servers, _, topic = place.partition("/")
        if not topic:
            raise ConfigError(
                f"the address of a topic must be kafka://HOST:PORT/TOPIC, got {KAFKA}{place}; add the topic"
            )
        return cls(servers, topic, parameters)

    def check(self) -> None:
        """See that a broker can be reached; Kafka's own clients would try for minutes."""
        if not answering(self.servers):
            raise InputError(f"no Kafka broker answers at {self.servers}; start one there, or correct the address")

    def check_topic(self, connection: Connection) -> None:
        """See that the topic is there; Spark would look for it for a minute, and not say which it was."""
        known = topics_of({"bootstrap.servers": self.servers, **connection.properties})
        if known is not None and self.topic not in known:
            raise InputError(self.missing(known))

    def missing(self, known: Iterable[str] = ()) -> str:
        """That the topic is not there, and what to do about it."""
        close = difflib.get_close_matches(self.topic, known, n=1)
        return (
            f"{self.servers} has no topic {self.topic}, or none that this user may see"
            f"{f' (did you mean {close[0]}?)' if close else ''}"
            f"; make it with anabranch produce kafka://{self.servers}/{self.topic}, "
            f"or kafka-topics.sh --create --topic {self.topic} --bootstrap-server {self.servers}"
        )

    def options(self, connection: Connection) -> dict[str, str]:
        """What both ends of Spark's connector need."""
        return {"kafka.bootstrap.servers": self.servers, **connection.options()}


@dataclass(frozen=True)
class KafkaSource(Source):
    """The records of a topic, those that are there and each that is added.

    Malformed records do not reach the application: they are counted, and `malformed` finds them again.

    Parameters
    ----------
    text
        ``kafka://HOST:PORT/TOPIC?format=json&from=earliest&columns=a,b``: the format is one of `records.FORMATS`,
        ``from`` is earliest or latest and counts at a query's first start only, and ``columns`` are those of `Records`.
    format
        Of the values, unless the address says it; json where neither does.
    batch
        Most records in a micro-batch.
    """

    text: str
    format: str | None = None
    batch: int | None = None
    connection: Connection = field(default_factory=Connection)

    def __post_init__(self) -> None:
        if self._start not in STARTS:
            raise ConfigError(f"from must be one of {', '.join(STARTS)}, got {self._start!r}")
        written = self.address.parameters.get("format")
        if written and self.format and written != self.format:
            raise ConfigError(f"the address says format {written}, --format says {self.format}; leave one out")
        _ = self.records

    @property
    def address(self) -> KafkaAddress:
        """Where the topic is."""
        return KafkaAddress.parse(self.text, known=("format", "from", "columns"))

    @property
    def records(self) -> Records:
        """How its values are written."""
        given = self.address.parameters
        columns = tuple(name.strip() for name in given["columns"].split(",")) if "columns" in given else ()
        return Records(given.get("format") or self.format or "json", columns)

    @property
    def _start(self) -> str:
        return self.address.parameters.get("from", STARTS[0])

    def open(self, spark: SparkSession) -> DataFrame:
        self.address.check()
        require_connector(spark)
        self.address.check_topic(self.connection)
        options = {"subscribe": self.address.topic, "startingOffsets": self._start, **_FETCH}
        if self.batch is not None:
            options["maxOffsetsPerTrigger"] = str(self.batch)
        return spark.readStream.format("kafka").options(**options | self.address.options(self.connection)).load()

    def read(self, spark: SparkSession, app: App, columns: Mapping[str, str]) -> DataFrame:
        parsed = self.records.parse(self.open(spark), app, columns)
        good = without_malformed(parsed, REASON)
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

    def redacted(self, text: str) -> str:
        return self.connection.redacted(text)


Offsets = Mapping[str, Mapping[str, int]]
"""Per topic and partition, the offset of the next record."""


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A topic to which every row that a batch changed goes as a JSON object with the field ``batch``.

    Guarantees
    ----------
    Each row is there at least once. After a crash within a batch its rows come again, the same ones with the same batch
    number: whoever keeps each key's row with the highest batch number has the answer, however often a row came.

    Parameters
    ----------
    text
        ``kafka://HOST:PORT/TOPIC``.
    key
        The column that becomes the record's key.
    """

    text: str
    key: str
    connection: Connection = field(default_factory=Connection)

    def __post_init__(self) -> None:
        _ = self.address

    @property
    def address(self) -> KafkaAddress:
        """Where the topic is."""
        return KafkaAddress.parse(self.text)

    def open(self, spark: SparkSession) -> None:
        self.address.check()
        require_connector(spark)

    def write(self, rows: DataFrame, batch: int) -> None:
        value = F.struct(*(f"`{name}`" for name in rows.columns), F.lit(batch).alias(BATCH))
        records = rows.select(
            F.col(f"`{self.key}`").cast("string").alias("key"),
            F.to_json(value, {"ignoreNullFields": "false"}).alias("value"),
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
    """Bytes as text, or in base64 where they are no text."""
    raw = F.col(ROW + name)
    text = raw.cast("string")
    # Spark breaks the lines of base64.
    return F.when(F.is_valid_utf8(text), text).otherwise(F.translate(F.base64(raw), "\r\n", "")).alias(name)
