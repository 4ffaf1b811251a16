"""What a broker says of its topics, asked through the Kafka client that Spark's connector brings along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pyspark import SparkContext

from anabranch.errors import InputError

_ANSWER_S = 30
_CALL_MS = 5000
_POLL_MS = 200
# The last offsets of a partition may be marks of transactions, which no consumer gets to read.
_TAIL = 20
# What brokers of before 2.8 have in place of a topic's id.
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"

_T = TypeVar("_T")


@dataclass(frozen=True)
class Tail:
    """End of a partition that has records.

    Parameters
    ----------
    end
        Offset of the next record.
    mark
        A header of the last record; None where the record has none, or the partition has no record.
    """

    end: int
    mark: str | None


def topics_of(properties: Mapping[str, str]) -> set[str] | None:
    """Names of the topics that a client with these properties may see; None where the brokers cannot be asked.

    Spark's connector tells why they cannot be asked, a wrong password for instance: it asks the same, and
    says so at once. Only a broker that never answers would keep it waiting for minutes.

    Parameters
    ----------
    properties
        Those of Kafka's own clients in Java, ``bootstrap.servers`` among them.
    """
    return _ask(properties, lambda jvm, client: {str(name) for name in _got(jvm, client.listTopics().names())})


def topic_id(properties: Mapping[str, str], topic: str, within_s: int = _ANSWER_S) -> str | None:
    """The id of a topic, which another one of the same name does not have; None where the brokers cannot be asked."""

    def ask(jvm: Any, client: Any) -> str:
        found = _got(jvm, client.describeTopics([topic]).allTopicNames(), within_s)
        return str(found[topic].topicId().toString())

    found = _ask(properties, ask)
    return None if found == _NO_ID else found


def beginnings(properties: Mapping[str, str], topic: str, partitions: Iterable[int]) -> dict[int, int] | None:
    """Offset of the first record that each of these partitions still has; None where the brokers cannot be asked."""

    def ask(jvm: Any, client: Any) -> dict[int, int]:
        earliest = jvm.org.apache.kafka.clients.admin.OffsetSpec.earliest()
        asked = {place: earliest for place in _places(jvm, topic, partitions)}
        found = _got(jvm, client.listOffsets(asked).all())
        return {int(place.partition()): int(found[place].offset()) for place in found}

    return _ask(properties, ask)


def tails(properties: Mapping[str, str], topic: str, header: str) -> dict[int, Tail] | None:
    """Of each partition that has records, where it ends and what its last record has in a header.

    None where there is no Java to ask through, or no topic yet. Whatever Java throws is not caught.
    """
    context = SparkContext._active_spark_context
    return None if context is None else _read_tails(context._jvm, properties, topic, header)


class Caller:
    """Asks a broker again and again whether it is there, by one client, until the block ends.

    Parameters
    ----------
    properties
        Those of Kafka's own clients in Java, ``bootstrap.servers`` among them.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._client: Any = None

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            with suppress(Exception):  # Java may have ended
                self._client.close(_jvm().java.time.Duration.ZERO)

    def answers(self) -> bool:
        """Whether the broker says anything within some seconds, an error included; True where it cannot be asked."""
        try:
            self._ask()
        except Exception as error:  # py4j has one class for whatever Java throws
            return "TimeoutException" not in str(error)
        return True

    def _ask(self) -> None:
        jvm = _jvm()
        admin = jvm.org.apache.kafka.clients.admin
        if self._client is None:
            self._client = admin.AdminClient.create(_java(jvm, self._properties))
        self._client.describeCluster(admin.DescribeClusterOptions().timeoutMs(_CALL_MS)).clusterId().get()


def _ask(properties: Mapping[str, str], question: Callable[[Any, Any], _T]) -> _T | None:
    context = SparkContext._active_spark_context
    if context is None:
        return None
    try:
        return _asked(context._jvm, properties, question)
    except Exception as error:  # py4j has one class for whatever Java throws, and another for a class that is not there
        if "TimeoutException" not in str(error):
            return None
        raise InputError(
            f"{properties['bootstrap.servers']} takes connections and gives no answer; see that it is a Kafka broker, "
            "and that security.protocol in --kafka-properties is the listener's"
        ) from None


def _asked(jvm: Any, properties: Mapping[str, str], question: Callable[[Any, Any], _T]) -> _T:
    client = jvm.org.apache.kafka.clients.admin.AdminClient.create(_java(jvm, properties))
    try:
        return question(jvm, client)
    finally:
        client.close(jvm.java.time.Duration.ZERO)


def _read_tails(jvm: Any, properties: Mapping[str, str], topic: str, header: str) -> dict[int, Tail] | None:
    given = _java(jvm, {**properties, "allow.auto.create.topics": "false"})
    bytes_ = jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(given, bytes_(), bytes_())
    try:
        known = consumer.partitionsFor(topic, jvm.java.time.Duration.ofSeconds(_ANSWER_S))
        if not known:
            return None
        places = _places(jvm, topic, [info.partition() for info in known])
        begins, ends = consumer.beginningOffsets(places), consumer.endOffsets(places)
        filled = {place: int(ends[place]) for place in places if begins[place] < ends[place]}
        consumer.assign(list(filled))
        for place, end in filled.items():
            consumer.seek(place, max(int(begins[place]), end - _TAIL))
        marks = _marks(jvm, consumer, filled, header)
        return {int(place.partition()): Tail(end, marks.get(int(place.partition()))) for place, end in filled.items()}
    finally:
        consumer.close(jvm.java.time.Duration.ZERO)


def _marks(jvm: Any, consumer: Any, ends: Mapping[Any, int], header: str) -> dict[int, str | None]:
    """A header of the last record of each partition; the consumer must stand shortly before their ends."""
    found: dict[int, str | None] = {}
    for _ in range(_ANSWER_S * 1000 // _POLL_MS):
        if all(int(consumer.position(place)) >= end for place, end in ends.items()):
            return found
        records = consumer.poll(jvm.java.time.Duration.ofMillis(_POLL_MS)).iterator()
        while records.hasNext():
            record = records.next()
            mark = record.headers().lastHeader(header)
            found[int(record.partition())] = None if mark is None else bytes(mark.value()).decode(errors="replace")
    raise TimeoutError(f"the broker did not hand them out within {_ANSWER_S} s")


def _places(jvm: Any, topic: str, partitions: Iterable[int]) -> list[Any]:
    return [jvm.org.apache.kafka.common.TopicPartition(topic, int(partition)) for partition in partitions]


def _got(jvm: Any, future: Any, within_s: int = _ANSWER_S) -> Any:
    return future.get(within_s, jvm.java.util.concurrent.TimeUnit.SECONDS)


def _jvm() -> Any:
    context = SparkContext._active_spark_context
    if context is None:
        raise RuntimeError("Spark does not run")
    return context._jvm


def _java(jvm: Any, properties: Mapping[str, str]) -> Any:
    given = jvm.java.util.Properties()
    for name, value in properties.items():
        given.setProperty(name, value)
    return given
