from __future__ import annotations

import csv
import json
import time
from collections import Counter, defaultdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("pyspark")

import anabranch.cli.produce as produce_command
from anabranch.streams import Zipf

ZIPF = ("--stream", "zipf(keys=50, z=1.2)", "--seed", 3)


def exact(n: int) -> dict[str, int]:
    return Counter(str(key) for batch in Zipf(n, 50, 1.2).batches(3) for key in batch["key"].to_pylist())


@pytest.mark.spark
def test_a_stream_is_sent_at_its_rate_with_event_times(broker, run):
    from dev import topics

    before = time.time()
    address = f"kafka://{broker.servers}/rated"
    done = run("produce", address, *ZIPF, "--tuples", 3000, "--rate", "2k", "--keyed", "--partitions", 3)
    assert done.code == 0, done.err
    assert done.out.startswith("3,000 records in ")
    assert done.out.endswith(" records/s to rated\n")
    assert all(" records in " in line for line in done.err.splitlines())
    records = topics.read(broker.servers, "rated")
    assert Counter(str(json.loads(record.value)["key"]) for record in records) == exact(3000)
    at = sorted(record.timestamp_ms for record in records)
    assert before * 1000 <= at[0]
    assert at[-1] - at[0] == pytest.approx(2999 / 2, abs=2)
    partitions = defaultdict(set)
    for record in records:
        value = json.loads(record.value)
        assert record.key.decode() == str(value["key"])
        assert value["time"].endswith("+00:00")
        partitions[record.key].add(record.partition)
    assert all(len(found) == 1 for found in partitions.values())
    assert {record.partition for record in records} == {0, 1, 2}


@pytest.mark.spark
def test_text_is_the_key_and_records_have_none_unless_asked(broker, run):
    from dev import topics

    assert run("produce", f"kafka://{broker.servers}/plain", *ZIPF, "--tuples", 500, "--format", "text").code == 0
    records = topics.read(broker.servers, "plain")
    assert Counter(record.value.decode() for record in records) == exact(500)
    assert {record.key for record in records} == {None}


@pytest.mark.spark
def test_a_recording_is_sent_at_its_own_pace_with_its_columns(broker, run, tmp_path):
    from dev import topics

    trades = {"at": [0.0, 0.2, 0.1, 0.5], "symbol": ["A", 'B, "b"', "C", None], "price": [1.5, 2.0, 2.5, 3.0]}
    pq.write_table(pa.table(trades), tmp_path / "trades.parquet")
    asked = ("--input", tmp_path / "trades.parquet", "--key", "symbol", "--timestamp", "at", "--columns", "price")
    done = run("produce", f"kafka://{broker.servers}/recorded", *asked, "--format", "csv", "--partitions", 1)
    assert done.code == 0, done.err
    records = topics.read(broker.servers, "recorded")
    rows = list(csv.reader(record.value.decode() for record in records))
    assert [row[:2] for row in rows] == [["A", "1.5"], ['B, "b"', "2.0"], ["C", "2.5"], ["", "3.0"]]
    first = records[0].timestamp_ms
    assert [record.timestamp_ms - first for record in records] == pytest.approx([0, 200, 100, 500], abs=1)


@pytest.mark.spark
def test_records_that_are_not_delivered_are_counted_and_fail_the_command(broker, run):
    from dev import topics

    topics.create(broker.servers, "tiny", max_message_bytes="10")
    done = run("produce", f"kafka://{broker.servers}/tiny", *ZIPF, "--tuples", 20)
    assert done.code == 1
    assert done.out.startswith("0 records in ")
    assert "Error: 20 of 20 records were not delivered: " in done.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("kafka://a:1/t?format=csv",), "takes no parameters here, got 'format'; leave it out"),
        (("kafka://a:1/t", "--stream", "zpf"), "did you mean zipf?"),
        (("kafka://a:1/t", "--stream", "zipf(z=1,2)"), "produce takes one value per parameter of --stream"),
        (("kafka://a:1/t", "--rate", "0"), "--rate must be above 0, got '0'"),
        (("kafka://a:1/t", "--format", "avro"), "format of records must be one of json, text, csv, got 'avro'"),
        (("kafka://a:1/t", "--partitions", "0"), "--partitions must be at least 1, got '0'"),
        (("kafka://a:1/t", "--key", "symbol"), "give --input FILE with it"),
        (("kafka://a:1/t", "--input", "x.csv"), "--input needs --key COLUMN: which column holds the key?"),
        (("kafka://a:1/t", "--columns", "a,b"), "--columns is about columns of --input"),
        (("kafka://a:1/t", "--input", "x.csv", "--stream", "zipf"), "takes no --stream; leave one of them out"),
    ],
)
def test_what_cannot_be_sent_is_a_usage_error(fails, args, message):
    assert message in fails(2, "produce", *args)


def test_help_says_nothing_of_sweeps_for_one_stream_is_sent(on_terminal):
    listed = " ".join(on_terminal(200, "produce", "--help"))
    assert "[default: zipf]" in " ".join(listed.split())
    assert "Sweep" not in listed


def test_what_only_java_knows_is_named_and_its_value_is_not(fails, monkeypatch, tmp_path):
    monkeypatch.setattr("anabranch.apps.KafkaAddress.check", lambda _: None)
    (tmp_path / "client.properties").write_text("ssl.protocol=swordfish\n")
    message = fails(2, "produce", "kafka://127.0.0.1:1/t", "--kafka-properties", tmp_path / "client.properties")
    assert message == (
        'No such configuration property: "ssl.protocol"; only Java has it: leave it out for anabranch produce'
    )


def test_without_a_client_the_extra_is_named(fails, monkeypatch):
    monkeypatch.setattr(produce_command, "find_spec", lambda name: None if name == "confluent_kafka" else True)
    message = "anabranch produce needs confluent-kafka, which is not installed; install anabranch[spark,kafka]"
    assert fails(1, "produce", "kafka://a:1/t") == message


def test_a_broker_that_is_not_there_is_one_line(fails):
    from dev.kafka import free_port

    assert "no Kafka broker answers at 127.0.0.1:" in fails(1, "produce", f"kafka://127.0.0.1:{free_port()}/t", *ZIPF)
