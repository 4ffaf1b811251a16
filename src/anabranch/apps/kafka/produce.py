"""A stream into a topic of Kafka, at a rate, with event times."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.apps.kafka.address import KafkaAddress
from anabranch.apps.kafka.connection import Connection
from anabranch.apps.kafka.records import FORMATS
from anabranch.errors import ConfigError, MissingExtraError, QueryError
from anabranch.streams import Stream

# Records are handed over this often: a record waits so long at most, and the clock is read as seldom.
_STEP_S = 0.02
_MOST_AT_ONCE = 10_000
_FLUSH_S = 60.0
_ADMIN_S = 30.0
_ASKED = 5
# The event time goes in their place.
_TIMES = ("ts", "time")


@dataclass(frozen=True)
class Produced:
    """What has become of the records so far."""

    sent: int
    failed: int
    seconds: float
    reason: str = ""


@dataclass(frozen=True)
class Produce:
    """Sends a stream's tuples to a topic; the topic is made where it is missing.

    Guarantees
    ----------
    A record's timestamp, and its field ``time``, is its event time: the moment at which it was due. With a rate, or
    where the stream has times of its own (``ts``), that is when it should have been sent, so that a producer that falls
    behind shows in latencies; otherwise it is the moment it was sent. No record is sent before its event time.

    Parameters
    ----------
    rate
        Tuples a second; 0 for the stream's own times or, without any, as fast as it goes.
    format
        Of the values, one of `records.FORMATS`: JSON objects of all columns, the key as text, or CSV of all columns.
    keyed
        Whether the tuple's key is the record's, so that a key is always in the same partition.
    partitions
        Of a topic that is made.
    limit
        Most tuples to send.
    """

    address: KafkaAddress
    stream: Stream
    rate: float = 0.0
    format: str = "json"
    keyed: bool = False
    partitions: int = 4
    seed: int = 0
    limit: int | None = None
    connection: Connection = field(default_factory=Connection)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ConfigError(f"format of records must be one of {', '.join(FORMATS)}, got {self.format!r}")
        if self.rate < 0:
            raise ConfigError(f"rate must be 0 or more, got {self.rate}")
        if self.partitions < 1:
            raise ConfigError(f"partitions must be at least 1, got {self.partitions}")

    def run(self, on_step: Callable[[Produced], None] = lambda _: None) -> Produced:
        """Send everything and wait until it is delivered; `on_step` is told after every handful."""
        if find_spec("confluent_kafka") is None:
            raise MissingExtraError(
                "anabranch produce needs confluent-kafka, which is not installed; install anabranch[kafka]"
            )
        from confluent_kafka import KafkaException

        self.address.check()
        try:
            self._make_topic()
            return self._send(on_step)
        except KafkaException as error:
            reason = self.connection.redacted(_reason(error))
            if "No such configuration property" in reason:
                # Most of them are the same as in Java, and some are not.
                raise ConfigError(f"{reason}; only Java has it: leave it out for anabranch produce") from None
            raise QueryError(f"produce failed: {reason}") from None

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address.servers,
            **self.connection.for_librdkafka(),
            # Kafka's own logs would go to stderr, between the lines of progress; failures come as errors.
            "log_level": 0,
        }

    def _make_topic(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        troubles: list[str] = []
        admin = AdminClient(self._settings() | {"error_cb": lambda error: troubles.append(_reason(error))})
        if self.address.topic in self._topics(admin, troubles):
            return
        # A replication of -1 is the broker's default.
        admin.create_topics([NewTopic(self.address.topic, self.partitions, -1)])[self.address.topic].result(_ADMIN_S)

    def _topics(self, admin: Any, troubles: list[str]) -> Any:
        """Names of the topics; why a broker does not tell them, such as a wrong password, comes to light in between."""
        from confluent_kafka import KafkaException

        for _ in range(_ASKED):
            try:
                return admin.list_topics(timeout=_ADMIN_S / _ASKED).topics
            except KafkaException as error:
                admin.poll(0.5)
                telling = [trouble for trouble in troubles if "brokers are down" not in trouble]
                reason = telling[0] if telling else _reason(error)
            if telling:
                break
        raise QueryError(
            f"produce failed: {self.connection.redacted(reason)}; see that security.protocol in --kafka-properties is "
            f"that of {self.address.servers}, and the log-in one that it knows"
        )

    def _send(self, on_step: Callable[[Produced], None]) -> Produced:
        from confluent_kafka import Producer

        failures: list[str] = []
        settings = self._settings() | {
            # Java's way to choose a partition of a key, so that both kinds of producers agree.
            "partitioner": "murmur2_random",
            "linger.ms": 5,
            "queue.buffering.max.messages": 500_000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _: failures.append(str(error)),
        }
        producer = Producer(settings)
        # The first batch takes its time, for kernels are compiled: the clock starts when it is there.
        batches = self.stream.batches(self.seed, _MOST_AT_ONCE, stop=self.limit)
        first = list(islice(batches, 1))
        began, sent = time.time(), 0
        for times, keys, values in self._steps(chain(first, batches), began):
            _hand_over(producer, self.address.topic, times, keys, values)
            sent += len(values)
            on_step(Produced(sent, len(failures), time.time() - began))
        left = producer.flush(_FLUSH_S)
        reason = self.connection.redacted(failures[0]) if failures else f"no answer in {_FLUSH_S:.0f} s" if left else ""
        return Produced(sent, len(failures) + left, time.time() - began, reason)

    def _steps(
        self, batches: Iterable[pa.RecordBatch], began: float
    ) -> Iterator[tuple[list[int], list[bytes | None], list[bytes]]]:
        """Event times in milliseconds, keys and values of a few records at a time, when they are due."""
        number = 0
        for batch in batches:
            due = self._due(batch, number)
            number += len(batch)
            start = 0
            while start < len(batch):
                # A stream has an order, so a record that stands behind a later one is sent with it.
                pace = None if due is None else np.maximum.accumulate(due[start:])
                n = len(batch) - start if pace is None else max(1, int(np.searchsorted(pace, pace[0] + _STEP_S)))
                step = batch.slice(start, n)
                if pace is not None:
                    time.sleep(max(0.0, began + pace[n - 1] - time.time()))
                times = [time.time()] * n if due is None else (began + due[start : start + n]).tolist()
                yield [int(at * 1000) for at in times], self._keys(step), self._values(step, times)
                start += n

    def _due(self, batch: pa.RecordBatch, number: int) -> NDArray[np.float64] | None:
        """Seconds from the start at which each record is due; None where nothing says so."""
        if self.rate:
            return np.arange(number, number + len(batch)) / self.rate
        return np.asarray(batch["ts"].to_numpy()) if "ts" in batch.schema.names else None

    def _keys(self, step: pa.RecordBatch) -> list[bytes | None]:
        if not self.keyed:
            return [None] * len(step)
        return [None if key is None else str(key).encode() for key in step["key"].to_pylist()]

    def _values(self, step: pa.RecordBatch, times: Sequence[float]) -> list[bytes]:
        if self.format == "text":
            return [("" if key is None else str(key)).encode() for key in step["key"].to_pylist()]
        names = [name for name in step.schema.names if name not in _TIMES]
        columns = [*(step[name].to_pylist() for name in names), [_iso(at) for at in times]]
        rows = zip(*columns, strict=True)
        if self.format == "csv":
            return [_csv_line(row) for row in rows]
        names.append("time")
        return [json.dumps(dict(zip(names, row, strict=True)), default=_plain).encode() for row in rows]


def _hand_over(
    producer: Any, topic: str, times: Sequence[int], keys: Sequence[bytes | None], values: Sequence[bytes]
) -> None:
    for at, key, value in zip(times, keys, values, strict=True):
        while True:
            try:
                producer.produce(topic, value, key, timestamp=at)
                break
            except BufferError:
                # The broker is slower than the stream: wait until there is room.
                producer.poll(0.05)
    producer.poll(0)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _plain(value: object) -> str:
    """What JSON has no type for, such as dates and padding, as text."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _csv_line(row: Sequence[Any]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(row)
    return line.getvalue().encode()


def _reason(error: object) -> str:
    """What librdkafka says, without its codes."""
    first = next(iter(getattr(error, "args", ())), error)
    return str(getattr(first, "str", lambda: first)())
