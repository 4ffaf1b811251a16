from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import MagicMock

import pyarrow.parquet as pq
import pytest

from anabranch.apps import Balancing, Checkpoint, Events, FolderSink, KafkaSink, KafkaSource, MemorySink, Pipeline, Vwap
from anabranch.apps.kafka.gaps import Gap
from anabranch.apps.kafka.read_topic import ReadTopic
from anabranch.apps.kafka.topic_offsets import TopicOffsets
from anabranch.apps.sinks.dead_letters import DeadLetters
from anabranch.errors import InputError, QueryError
from anabranch.groupings import KeyGrouping

BAD = {
    b"not JSON at all": "not JSON",
    b'{"symbol": "A", "quantity": 1}': "no value in price",
    b'{"symbol": "A", "price": "high", "quantity": 1}': "price is not a double: high",
    b"\xff\xfe": "not UTF-8",
    None: "no value",
}
GOOD = b'{"symbol": "A", "price": 2.5, "quantity": 2}'
N = 4000


def values() -> list[bytes | None]:
    """Good records, every fortieth of them followed by a malformed one."""
    bad = list(BAD)
    return [v for i in range(N) for v in ([GOOD, bad[i // 40 % len(bad)]] if i % 40 == 0 else [GOOD])]


def kept(folder: Path) -> dict[tuple[int, int], tuple[int, str, str | None]]:
    """Dead letters by partition and offset: batch, reason, value; no record is there twice."""
    found = {}
    for row in pq.read_table(folder).to_pylist():
        place = row["partition"], row["offset"]
        assert place not in found
        found[place] = row["batch"], row["reason"], row["value"]
    return found


def expected() -> dict[tuple[int, int], tuple[str, str | None]]:
    """Where malformed records are: they were sent to two partitions in turn."""
    sent = [(i % 2, i // 2, value) for i, value in enumerate(values())]
    texts = {b"\xff\xfe": "//4="} | {value: value.decode() for value in BAD if value and value != b"\xff\xfe"}
    return {(p, at): (BAD[value], texts.get(value)) for p, at, value in sent if value != GOOD}


@pytest.mark.spark
def test_malformed_records_are_put_aside_once_also_after_a_crash(spark, broker, tmp_path, monkeypatch):
    from dev import topics

    topic = topics.create(broker.servers, "malformed")
    topics.send(broker.servers, topic, values())
    pipeline = Pipeline(
        Vwap(),
        KafkaSource(f"kafka://{broker.servers}/{topic}", batch=3000),
        sink := MemorySink(),
        Checkpoint(str(tmp_path / "state")),
        Balancing(KeyGrouping(), 2),
        once=True,
        dead_letters=FolderSink(str(tmp_path / "dead")),
    )
    batches, late = [], []
    events = Events(on_batch=batches.append, on_late=late.append)
    put_aside = DeadLetters._put_aside

    def crash(self, spark, batch, *counted):
        if batch == 1:
            raise RuntimeError("the power went")
        return put_aside(self, spark, batch, *counted)

    monkeypatch.setattr(DeadLetters, "_put_aside", crash)
    with pytest.raises(QueryError, match="the power went"):
        pipeline.run(spark, events)
    assert [metrics.malformed for metrics in batches] == [len(kept(tmp_path / "dead"))]
    assert pipeline.checkpoint.batches() == 2

    monkeypatch.undo()
    pipeline.run(spark, events)
    found = kept(tmp_path / "dead")
    assert {place: (reason, value) for place, (_, reason, value) in found.items()} == expected()
    assert len(expected()) == N // 40
    assert late == [sum(batch == 1 for batch, _, _ in found.values())]
    assert batches[0].malformed + late[0] == pipeline.letters.count == N // 40
    assert sink.latest("symbol")["A"] | {"vwap": 2.5, "trades": N, "volume": 2 * N} == sink.latest("symbol")["A"]

    pipeline.run(spark, events)
    assert (len(batches), len(late)) == (1, 1), "nothing is told twice"
    assert kept(tmp_path / "dead") == found
    assert (pipeline.letters.read, pipeline.letters.good) == (N + N // 40, N)

    # What a crash between the sink and the mark leads to: the batch's files are written again, and are the same.
    (tmp_path / "state" / "anabranch-dead-letters.json").write_text('{"complete": 0}')
    pipeline.run(spark, events)
    assert late == [late[0]] * 2
    assert kept(tmp_path / "dead") == found


@pytest.fixture
def letters(spark, broker, tmp_path, request):
    """Dead letters of a checkpoint whose only batch has two malformed records, at the offsets 1 and 3 of a topic."""
    from dev import topics

    topic = topics.create(broker.servers, request.node.name.replace("[", "-").rstrip("]")[:200], partitions=2)
    topics.send(broker.servers, topic, [GOOD, GOOD, b"bad", GOOD, GOOD, GOOD, b"worse", GOOD, b"after the batch", GOOD])
    for name, offsets in {"sources/0/0": {"0": 1}, "offsets/0": {"0": 4, "1": 4}, "commits/0": {}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("v1\n{}\n" + json.dumps({topic: offsets}))
    source = KafkaSource(f"kafka://{broker.servers}/{topic}")
    return DeadLetters(source, Vwap(), {}, Checkpoint(str(tmp_path)))


@pytest.mark.spark
def test_without_a_sink_they_are_counted_and_one_is_kept_as_an_example(spark, letters):
    assert letters.catch_up(spark) == letters.count == 2
    assert letters.reasons == {"not JSON": 2}
    assert not letters.are_all, "it was another run that read them"
    assert {name: letters.example[name] for name in ("reason", "value", "key", "partition", "offset")} == {
        "reason": "not JSON",
        "value": "bad",
        "key": "2",
        "partition": 0,
        "offset": 1,
    }
    assert letters.catch_up(spark) == 0


@pytest.mark.spark
def test_records_that_retention_has_removed_are_told_and_the_others_put_aside(spark, broker, letters):
    from dev import topics

    notes: list[str] = []
    letters.note = notes.append
    topic = letters.source.address.topic
    topics.cut(broker.servers, topic, {0: 2, 1: 4})
    assert letters.catch_up(spark) == letters.count == 1
    assert notes == [
        f"up to 5 malformed records of batch 0 are lost: topic {topic} had removed 5 records (partition 0, offset 1; "
        "partition 1, offsets 0 to 3) before they were put aside; the answers have all good records"
    ]
    assert letters.catch_up(spark) == 0
    assert len(notes) == 1


@pytest.mark.spark
def test_a_topic_takes_dead_letters_with_where_they_came_from(spark, broker, letters):
    from dev import topics

    dead = topics.create(broker.servers, "dead")
    letters.sink = KafkaSink(f"kafka://{broker.servers}/{dead}", "key")
    assert letters.batch(spark, {"batchId": 0, "observedMetrics": {"anabranch_malformed": {"n": 5, "records": 5}}}) == 2
    assert (letters.read, letters.good, letters.are_all) == (5, 0, True)
    rows = [json.loads(record.value) for record in topics.read(broker.servers, dead)]
    assert sorted((row["value"], row["partition"], row["offset"], row["batch"]) for row in rows) == [
        ("bad", 0, 1, 0),
        ("worse", 0, 3, 0),
    ]
    assert {row["topic"] for row in rows} == {letters.source.address.topic}


def test_batches_without_malformed_records_are_not_read_again(tmp_path):
    letters = DeadLetters(KafkaSource("kafka://127.0.0.1:1/none"), Vwap(), {}, Checkpoint(str(tmp_path)))
    for batch in range(2):
        progress = {"batchId": batch, "observedMetrics": {"anabranch_malformed": {"n": 0, "records": 9}}}
        assert letters.batch(None, progress) == 0  # type: ignore[arg-type]
    assert (letters.read, letters.good, letters.are_all) == (18, 18, False)


@pytest.mark.parametrize(("found", "told"), [(2, "3 malformed records of batch 4 are lost: "), (5, None)])
def test_as_many_are_lost_as_the_query_has_counted(tmp_path, monkeypatch, found, told):
    notes: list[str] = []
    source = KafkaSource("kafka://127.0.0.1:1/none")
    letters = DeadLetters(source, Vwap(), {}, Checkpoint(str(tmp_path)), note=notes.append)
    monkeypatch.setattr(TopicOffsets, "of_batch", lambda *_: ({}, {}))
    monkeypatch.setattr(ReadTopic, "removed", lambda *_: [Gap(0, 0, 9)])
    monkeypatch.setattr(DeadLetters, "_remember", lambda *_: found)
    monkeypatch.setattr(KafkaSource, "malformed", lambda *_: MagicMock())
    (tmp_path / "anabranch-dead-letters.json").write_text('{"complete": 3}')
    progress = {"batchId": 4, "observedMetrics": {"anabranch_malformed": {"n": 5, "records": 9}}}
    assert letters.batch(None, progress) == found  # type: ignore[arg-type]
    assert [note.partition("topic")[0] for note in notes] == ([told] if told else [])


def test_offsets_that_spark_has_deleted_are_an_error(tmp_path):
    letters = DeadLetters(KafkaSource("kafka://127.0.0.1:1/none"), Vwap(), {}, Checkpoint(str(tmp_path)))
    with pytest.raises(InputError, match=r"has no sources/0/0 any more; start with a new checkpoint"):
        letters.batch(None, {"batchId": 0})  # type: ignore[arg-type]
