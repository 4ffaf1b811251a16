from __future__ import annotations

import os

import pytest

from dev import kafka


def test_a_fetch_that_broke_off_does_not_count(monkeypatch, tmp_path):
    pytest.importorskip("pyspark")
    monkeypatch.setattr(kafka, "HOME", tmp_path / "kafka")
    monkeypatch.setattr(kafka, "java", lambda: "false")
    with pytest.raises(kafka.KafkaMissing, match="the jars of the Kafka connector could not be fetched"):
        kafka.connector_jars()
    assert list((tmp_path / "kafka").iterdir()) == []


def test_what_has_been_fetched_is_not_fetched_again(monkeypatch, tmp_path):
    monkeypatch.setattr(kafka, "HOME", tmp_path)
    monkeypatch.setattr(kafka, "java", None)
    (tmp_path / "broker").mkdir()
    assert kafka.broker_jars() == tmp_path / "broker"


@pytest.mark.spark
def test_a_broker_that_was_killed_comes_back_with_its_records(broker):
    from dev import topics

    topic = topics.create(broker.servers, "survivors")
    topics.send(broker.servers, topic, [b"one", b"two"])
    broker.kill()
    assert not broker.answers()
    broker.restart()
    assert [record.value for record in topics.read(broker.servers, topic)] == [b"one", b"two"]


def test_only_a_broker_is_stopped_by_its_number(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(kafka, "HOME", tmp_path)
    (tmp_path / "broker.pid").write_text(f"{os.getpid()}\n")
    kafka._stop()
    assert capsys.readouterr().out == "no broker runs\n"
    assert not (tmp_path / "broker.pid").exists()
