from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from anabranch.apps import Checkpoint, Connection, KafkaAddress, KafkaSink
from anabranch.apps.kafka.topic_notes import Adopted, TopicNotes
from anabranch.apps.kafka.topic_owner import HEADER, Answers, Owner, SinkTopic
from anabranch.apps.kafka.topics import Tail
from anabranch.errors import ConfigError, InputError

TOPIC = KafkaAddress("h:1", "counts")


@pytest.fixture
def topic(tmp_path: Path, monkeypatch) -> SinkTopic:
    """A topic whose ends the test sets."""
    monkeypatch.setattr("anabranch.apps.kafka.topic_owner.topic_id", lambda *_: "id-1")
    monkeypatch.setattr(SinkTopic, "_answers", lambda *_: Answers(41, 9))
    return SinkTopic(TOPIC, Connection(), TopicNotes(str(tmp_path)))


@pytest.fixture
def ends(monkeypatch):
    """Set where the partitions end, and whose the last records are."""

    def set_to(found: dict[int, Tail] | None) -> None:
        monkeypatch.setattr("anabranch.apps.kafka.topic_owner.tails", lambda *_: found)

    return set_to


@pytest.mark.parametrize("found", [None, {}, {0: Tail(7, "mine"), 3: Tail(1, "mine")}])
def test_a_topic_that_is_not_there_or_empty_or_its_own_is_the_querys(topic, ends, found):
    ends(found)
    assert topic.owner(None, "mine", adopt=True) == Owner("mine")
    assert not Path(topic.notes.uri, "anabranch-topics.json").exists()


@pytest.mark.parametrize("mark", ["other", None])
def test_a_topic_of_another_query_is_refused_with_the_place_and_the_ways_out(topic, ends, mark):
    ends({0: Tail(7, "mine"), 1: Tail(3, mark)})
    with pytest.raises(ConfigError) as refused:
        topic.owner(None, "mine", adopt=False)
    assert str(refused.value) == (
        "topic counts holds records that are not of this query, such as partition 1, offset 2, and its rows would be "
        "mixed up with them; choose another topic or the checkpoint of the query that wrote them, or take the topic "
        "over with --adopt, which goes on with higher batch numbers"
    )


def test_an_adopted_topic_stays_so_until_another_query_writes_to_it(topic, ends):
    ends({0: Tail(7, "other"), 1: Tail(3, None)})
    adopted = Owner("mine", first=42)
    assert topic.owner(None, "mine", adopt=True) == adopted
    assert topic.owner(None, "mine", adopt=False) == adopted, "a restart before anything is written"
    ends({0: Tail(9, "mine"), 1: Tail(3, None), 2: Tail(1, "mine")})
    assert topic.owner(None, "mine", adopt=True) == adopted
    ends({0: Tail(9, "mine"), 1: Tail(4, "other")})
    with pytest.raises(ConfigError, match="partition 1, offset 3"):
        topic.owner(None, "mine", adopt=False)


def test_a_query_that_has_answered_before_adopts_no_answers_of_another(topic, ends, monkeypatch):
    ends({0: Tail(7, "other")})
    before = replace(topic, answered=3)
    with pytest.raises(ConfigError) as refused:
        before.owner(None, "mine", adopt=True)
    assert str(refused.value) == (
        "topic counts holds answers of other queries, 9 in all, and this one has answered before (batches: 3): keys "
        "that do not change again would keep the rows of the others; start with a new checkpoint and --adopt, or "
        "choose another topic"
    )
    assert topic.notes.adopted("id-1") == Adopted()
    monkeypatch.setattr(SinkTopic, "_answers", lambda *_: Answers(41, 0))
    assert before.owner(None, "mine", adopt=True) == Owner("mine", 42), "records that are no answers hide none"


def test_a_topic_that_is_made_again_is_not_the_one_that_was_adopted(topic, ends, monkeypatch):
    topic.notes.adopt("id-1", Adopted(42, {0: 7}))
    monkeypatch.setattr("anabranch.apps.kafka.topic_owner.topic_id", lambda *_: "id-2")
    ends({0: Tail(1, "mine")})
    assert topic.owner(None, "mine", adopt=False) == Owner("mine")
    ends({0: Tail(5, "other")})
    with pytest.raises(ConfigError, match="partition 0, offset 4"):
        topic.owner(None, "mine", adopt=False)


def test_a_topic_that_may_not_be_read_is_an_error_without_secrets(topic, monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("not authorized: swordfish")

    monkeypatch.setattr("anabranch.apps.kafka.topic_owner.tails", refuse)
    with pytest.raises(InputError, match=r"cannot read the last records of topic counts.*\*\*\*; let this user read"):
        replace(topic, connection=Connection({"sasl.password": "swordfish"})).owner(None, "mine", adopt=True)


@pytest.mark.spark
def test_the_newest_rows_of_an_adopted_topic_are_those_of_the_new_query(spark, broker, tmp_path):
    from dev import topics

    name = topics.create(broker.servers, "adopted", 3)
    sink = KafkaSink(f"kafka://{broker.servers}/{name}", "word")

    def counts(**found: int) -> DataFrame:
        return spark.createDataFrame(list(found.items()), "word string, count long").coalesce(1)

    first = sink.owned(spark, Checkpoint(str(tmp_path / "first")), "first")
    for batch in range(3):
        first.write(counts(a=batch, b=9, c=9, d=9, e=9), batch)
    assert first.owned(spark, Checkpoint(str(tmp_path / "first")), "first") == first
    new = Checkpoint(str(tmp_path / "new"))
    with pytest.raises(ConfigError, match="not of this query, such as partition "):
        sink.owned(spark, new, "new")
    second = replace(sink, adopt=True).owned(spark, new, "new")
    second.write(counts(a=100, b=200), 0)
    records = [json.loads(record.value) for record in topics.read(broker.servers, name)]
    newest = {row["word"]: row["count"] for row in sorted(records, key=lambda row: row["batch"])}
    assert newest == {"a": 100, "b": 200, "c": 9, "d": 9, "e": 9}
    assert {row["batch"] for row in records} == {0, 1, 2, 3}
    assert sink.owned(spark, new, "new").owner == second.owner == Owner("new", 3)
    begun = tmp_path / "new" / "commits" / "0"
    begun.parent.mkdir()
    begun.touch()
    topics.send(broker.servers, name, [b"a note of somebody's", b"{}"])
    third = replace(sink, adopt=True).owned(spark, new, "new")
    assert third.owner == Owner("new", 4), "neither its own answers, nor adopted ones, nor notes are foreign"
    third.write(counts(a=101), 1)
    first.write(counts(b=9), 3)
    with pytest.raises(ConfigError, match=r"answers of other queries, 1 in all, .* before \(batches: 1\)"):
        replace(sink, adopt=True).owned(spark, new, "new")
    with pytest.raises(ConfigError, match="not of this query"):
        sink.owned(spark, Checkpoint(str(tmp_path / "first")), "first")
    headed = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": broker.servers, "subscribe": name})
    headers = headed.option("includeHeaders", True).load().selectExpr("inline(headers)").distinct().collect()
    assert {(row.key, bytes(row.value)) for row in headers} == {(HEADER, b"first"), (HEADER, b"new")}
