from __future__ import annotations

from contextlib import nullcontext
from threading import Event

import pytest

pytest.importorskip("pyspark")

import anabranch.apps.kafka.broker_watch as broker_watch
import anabranch.apps.run.pipeline as pipelines
from anabranch.apps import Checkpoint, Connection, Events, KafkaSink, KafkaSource, MemorySink, Pipeline, WordCount
from anabranch.apps.kafka.broker_watch import tell_changes, watched
from anabranch.apps.kafka.topics import Caller


def test_each_change_is_told_once():
    left = [True, False, True, False, False, False, True, True, False, False]
    told: list[str] = []
    tell_changes("h:1,i:1", lambda: left.pop(0), told.append, lambda: not left)
    waiting = "waiting for Kafka at h:1,i:1, which gives no answer"
    assert told == [waiting, "Kafka at h:1,i:1 answers again", waiting]


def test_it_is_told_while_the_block_runs(monkeypatch):
    monkeypatch.setattr(broker_watch, "_EVERY_S", 0.0)
    monkeypatch.setattr(Caller, "answers", lambda self: self._properties["bootstrap.servers"] != "h:1")
    told, noted = [], Event()
    brokers = {servers: {"bootstrap.servers": servers} for servers in ("h:1", "i:1")}
    with watched(brokers, lambda line: (told.append(line), noted.set())):
        assert noted.wait(30)
    assert told == ["waiting for Kafka at h:1, which gives no answer"]


def test_a_broker_that_refuses_has_answered_and_one_in_time_out_has_not(monkeypatch):
    def ask(text: str) -> bool:
        def raising(_: object) -> None:
            raise RuntimeError(text)

        monkeypatch.setattr(Caller, "_ask", raising)
        return Caller({}).answers()

    assert ask("o.a.k.common.errors.SaslAuthenticationException: no")
    assert not ask("ExecutionException: o.a.k.common.errors.TimeoutException: Timed out waiting for a node assignment")


def test_without_java_nobody_is_asked(monkeypatch):
    monkeypatch.setattr("anabranch.apps.kafka.topics.SparkContext._active_spark_context", None)
    with Caller({"bootstrap.servers": "h:1"}) as caller:
        assert caller.answers()


def test_a_run_watches_the_brokers_of_all_its_topics(tmp_path, monkeypatch):
    login = Connection({"sasl.password": "swordfish"})
    watching = {}
    monkeypatch.setattr(
        pipelines, "watched", lambda brokers, note: watching.update(brokers, note=note) or nullcontext()
    )
    monkeypatch.setattr(Pipeline, "_run", lambda *_: None)
    source = KafkaSource("kafka://h:1/words?format=text", connection=login)
    sink, dead = KafkaSink("kafka://i:1/counts", "word"), KafkaSink("kafka://h:1/dead", "key", login)
    events = Events()
    Pipeline(WordCount(), source, sink, Checkpoint(str(tmp_path)), dead_letters=dead).run(None, events)
    assert watching == {
        "h:1": {"bootstrap.servers": "h:1", "sasl.password": "swordfish"},
        "i:1": {"bootstrap.servers": "i:1"},
        "note": events.on_note,
    }
    watching.clear()
    Pipeline(WordCount(), source, MemorySink(), Checkpoint(str(tmp_path))).run(None, events)
    assert watching.keys() == {"h:1", "note"}
