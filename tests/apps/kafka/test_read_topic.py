from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import anabranch.apps.kafka.read_topic as read_topic
from anabranch.apps import Checkpoint, Connection, KafkaAddress, KafkaSource, MemorySink, Pipeline, WordCount
from anabranch.apps.kafka.read_topic import ReadTopic
from anabranch.apps.kafka.topic_notes import TopicNotes
from anabranch.apps.kafka.topic_offsets import n_offsets
from anabranch.errors import InputError


@pytest.fixture
def topic(tmp_path: Path) -> ReadTopic:
    return ReadTopic(KafkaAddress("h:1", "words"), Connection(), Checkpoint(str(tmp_path)))


@pytest.fixture
def broker_says(monkeypatch):
    """Set which topics a broker has, and the id of ours."""

    def set_to(topics: set[str] | None, id: str | None = None) -> None:
        monkeypatch.setattr(read_topic, "topics_of", lambda _: topics)
        monkeypatch.setattr(read_topic, "topic_id", lambda *_: id)

    return set_to


def read(folder: Path, batches: int = 0) -> None:
    """What Spark writes down of a query that has begun to read, and has done so many batches."""
    files = {"sources/0/0": 0} | {f"{kind}/{batch}": batch + 1 for batch in range(batches) for kind in _KINDS}
    for name, offset in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("v1\n{}\n" + json.dumps({"words": {"0": offset}}))


_KINDS = ("offsets", "commits")


def test_a_topic_that_is_made_again_is_refused_with_the_remedy(topic, broker_says, tmp_path):
    broker_says({"words"}, "id-1")
    topic.check()
    read(tmp_path, batches=2)
    topic.check()
    broker_says({"words"}, "id-2")
    with pytest.raises(InputError) as refused:
        topic.check()
    assert str(refused.value) == (
        f"topic words at h:1 is not the one that checkpoint {tmp_path} has read (id id-1, now id-2): it was deleted "
        "and made again, or is another cluster's, and the offsets in the checkpoint mean other records there; start "
        "with a new checkpoint and a new sink"
    )
    with pytest.raises(InputError, match="id id-1, now id-2"):
        topic.check_running()
    assert TopicNotes(str(tmp_path)).source() == "id-1", "a second try is refused, too"


def test_a_batch_that_was_begun_and_not_done_is_of_the_topic_too(topic, broker_says, tmp_path):
    broker_says({"words"}, "id-1")
    topic.check()
    read(tmp_path)
    broker_says({"words"}, "id-2")
    with pytest.raises(InputError, match="deleted and made again"):
        topic.check()


def test_a_topic_that_was_made_again_before_anything_was_read_is_taken(topic, broker_says, tmp_path):
    for id in ("id-1", "id-2"):
        broker_says({"words"}, id)
        topic.check()
    assert TopicNotes(str(tmp_path)).source() == "id-2"


def test_a_broker_without_ids_is_taken_at_its_word_until_it_has_them(topic, broker_says, tmp_path):
    read(tmp_path, batches=1)
    for id in (None, "id-1", None, "id-1"):
        broker_says({"words"}, id)
        topic.check()
    broker_says({"words"}, "id-2")
    with pytest.raises(InputError, match="id id-1, now id-2"):
        topic.check()


def test_who_has_read_a_topic_is_not_told_to_make_it(topic, broker_says, tmp_path):
    broker_says({"word"})
    with pytest.raises(InputError, match=r"\(did you mean word\?\); make it with anabranch produce kafka://h:1/words"):
        topic.check()
    read(tmp_path, batches=1)
    with pytest.raises(InputError) as refused:
        topic.check()
    assert str(refused.value) == (
        "h:1 has no topic words, or none that this user may see (did you mean word?), but checkpoint "
        f"{tmp_path} has read it; correct the address, or let this user see it; if it was deleted, start with a new "
        "checkpoint, because a topic that is made again under its name is another one"
    )


def test_where_nobody_can_be_asked_the_query_goes_on(topic, broker_says, tmp_path):
    read(tmp_path, batches=1)
    broker_says(None)
    topic.check()
    assert TopicNotes(str(tmp_path)).source() is None


def test_a_broker_that_is_gone_for_a_while_does_not_end_a_running_query(topic, monkeypatch):
    def silent(*_: object) -> None:
        raise InputError("h:1 takes connections and gives no answer")

    monkeypatch.setattr(read_topic, "topic_id", silent)
    topic.check_running()


@pytest.fixture
def source(monkeypatch, broker_says) -> Callable[[str], KafkaSource]:
    """Make a source of a topic whose first offset in partition 0 is 5, and which has always been the same."""
    broker_says({"words"})
    monkeypatch.setattr(read_topic, "beginnings", lambda *_: {0: 5})
    monkeypatch.setattr(KafkaAddress, "check", lambda _: None)
    monkeypatch.setattr("anabranch.apps.kafka.ends.require_connector", lambda _: None)
    return lambda parameters: KafkaSource(f"kafka://h:1/words{parameters}")


def test_unread_records_that_retention_has_removed_are_an_error_with_the_remedy(source, tmp_path):
    read(tmp_path, batches=2)
    with pytest.raises(InputError) as refused:
        source("").check(None, Checkpoint(str(tmp_path)))
    assert str(refused.value) == (
        f"topic words has removed 3 records that checkpoint {tmp_path} has not read (partition 0, offsets 2 to 4); go "
        "on without them with ?failOnDataLoss=false behind the topic in --source, or start with a new checkpoint; a "
        "longer retention.ms of the topic keeps records until they are read"
    )


def test_unread_records_are_skipped_and_told_where_that_is_asked_for(source, tmp_path):
    read(tmp_path, batches=2)
    notes: list[str] = []
    source("?failOnDataLoss=false").check(None, Checkpoint(str(tmp_path)), notes.append)
    assert notes == ["3 records are skipped, which topic words has removed: partition 0, offsets 2 to 4"]


@pytest.mark.parametrize(
    ("parameters", "records", "told"),
    [("?failOnDataLoss=false", 4, True), ("?failOnDataLoss=false", 6, False), ("", 4, False)],
)
def test_a_batch_says_how_many_of_its_offsets_had_no_record(source, parameters, records, told):
    reached = {"startOffset": '{"words":{"0":5}}', "endOffset": '{"words":{"0":9,"1":2}}'}
    progress = {
        "batchId": 7,
        "sources": [reached],
        "observedMetrics": {"anabranch_malformed": {"n": 0, "records": records}},
    }
    notes: list[str] = []
    source(parameters).tell_skipped(progress, notes.append)
    shown = (
        "2 offsets of batch 7 had no record: topic words had removed them (retention or compaction), or has marks of "
    )
    assert notes == ([shown + "transactions there"] if told else [])


@pytest.mark.parametrize("start", [None, "None", "null"])
def test_a_first_batch_does_not_say_where_it_began(start):
    assert n_offsets({"sources": [{"startOffset": start, "endOffset": '{"words":{"0":9}}'}]}) == 0


@pytest.mark.parametrize("batches", [None, 5, 6])
def test_records_that_were_read_may_be_removed(source, tmp_path, batches):
    if batches is not None:
        read(tmp_path, batches)
    source("").check(None, Checkpoint(str(tmp_path)), pytest.fail)


def test_a_failed_query_says_which_records_are_lost(source, broker_says, tmp_path):
    read(tmp_path, batches=1)
    pipeline = Pipeline(WordCount(), source(""), MemorySink(), Checkpoint(str(tmp_path)))
    lost = RuntimeError("Py4JJavaError: o712.save\nSome data may have been lost because they are not available")
    assert pipeline._cause(lost).startswith("topic words has removed 4 records that checkpoint ")
    assert pipeline._cause(RuntimeError("no luck")) == "no luck"
    broker_says(set())
    assert pipeline._cause(lost).startswith("h:1 has no topic words, or none that this user may see, but checkpoint ")


@pytest.mark.spark
def test_a_broker_has_another_id_for_a_topic_that_is_made_again(spark, broker, tmp_path):
    from dev import topics

    name = topics.create(broker.servers, "made-again")
    topic = ReadTopic(KafkaAddress(broker.servers, name), Connection(), Checkpoint(str(tmp_path)))
    topic.check()
    read(tmp_path, batches=1)
    topic.check()
    topics.delete(broker.servers, name)
    with pytest.raises(InputError, match="start with a new checkpoint"):
        topic.check()
    topics.create(broker.servers, name)
    with pytest.raises(InputError, match="deleted and made again"):
        topic.check()
