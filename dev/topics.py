"""Topics of a local broker, made, filled and read back as lists; for tests."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

_WAIT_S = 30.0


class Record(NamedTuple):
    """What a topic has of a record."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp_ms: int


def create(servers: str, topic: str, partitions: int = 2, **config: str) -> str:
    """Make a topic, with underscores for the dots of its settings; gives its name."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    made = NewTopic(topic, partitions, 1, config=settings)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([made])[topic].result(_WAIT_S)
    return topic


def delete(servers: str, topic: str) -> None:
    """Delete a topic, and wait until the broker no longer has it."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(_WAIT_S)
    end = time.monotonic() + _WAIT_S
    while topic in admin.list_topics(timeout=_WAIT_S).topics and time.monotonic() < end:
        time.sleep(0.1)


def cut(servers: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Remove the records before an offset in each of these partitions, as retention does."""
    admin = AdminClient({"bootstrap.servers": servers})
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    for done in admin.delete_records(places).values():
        done.result(_WAIT_S)


def send(servers: str, topic: str, values: Iterable[bytes | None]) -> None:
    """Send values round robin to two partitions, and wait until all are there."""
    failures: list[object] = []
    # Without idempotence a retry may overtake, and a value would not have the offset that its place says.
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            str(number).encode(),
            partition=number % 2,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    left = producer.flush(_WAIT_S)
    if failures or left:
        raise RuntimeError(f"{len(failures) + left} records did not reach {topic}")


def read(servers: str, topic: str) -> list[Record]:
    """Everything that is in a topic, partition after partition."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False})
    try:
        found: list[Record] = []
        for partition in sorted(consumer.list_topics(topic, _WAIT_S).topics[topic].partitions):
            found += _read(consumer, topic, partition)
        return found
    finally:
        consumer.close()


def _bounds(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """First offset and the next one; a broker that has just come back takes a moment to lead its partitions."""
    end = time.monotonic() + _WAIT_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, _WAIT_S)
            return int(low), int(high)
        except KafkaException:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _read(consumer: Consumer, topic: str, partition: int) -> list[Record]:
    low, high = _bounds(consumer, TopicPartition(topic, partition))
    consumer.assign([TopicPartition(topic, partition, low)])
    found: list[Record] = []
    while low + len(found) < high:
        messages = consumer.consume(10_000, timeout=1.0)
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            at = message.timestamp()[1]
            found.append(Record(message.key(), message.value(), partition, int(message.offset() or 0), at))
    return found
