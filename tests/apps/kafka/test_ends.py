from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from pyspark.errors import AnalysisException

from anabranch.apps import (
    Balancing,
    Checkpoint,
    Connection,
    Events,
    KafkaAddress,
    KafkaSink,
    KafkaSource,
    Pipeline,
    Vwap,
    named,
    source,
)
from anabranch.apps.balancing import ROW
from anabranch.apps.kafka.ends import require_connector
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import PartialKeyGrouping, Spillway
from anabranch.spark.progress import BatchMetrics
from anabranch.spark.spark_session import ROCKSDB

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
WORDS = ("the", "cat", "dog", "river", "bank")
LINES = [" ".join(random.Random(i).choices(WORDS, weights=(50, 5, 3, 2, 1), k=4)) for i in range(600)]
POSTS = [(random.Random(i).choice("aaab"), random.Random(-i - 1).choice(("NY", "CA")), f"u{i % 9}") for i in range(800)]
TRADES = [(random.Random(i).choice(("X", "X", "Y")), 1 + i % 97 / 7, i % 13) for i in range(800)]


def newest(records, key: str) -> dict[str, dict]:
    """What a consumer makes of the topic: each key's row of the highest batch."""
    rows = sorted((json.loads(record.value) for record in records), key=lambda row: row["batch"])
    assert all(record.key.decode() == json.loads(record.value)[key] for record in records)
    return {row[key]: row for row in rows}


def exact_hashtags() -> dict[str, tuple]:
    mentions, states, authors = Counter(), defaultdict(Counter), defaultdict(set)
    for tag, state, author in POSTS:
        mentions[tag] += 1
        states[tag][state] += 1
        authors[tag].add(author)
    return {tag: (n, len(states[tag]), states[tag].most_common(1), len(authors[tag])) for tag, n in mentions.items()}


def exact_vwap() -> dict[str, tuple]:
    sums: dict[str, list] = defaultdict(lambda: [0, Fraction(0), 0])
    for symbol, price, quantity in TRADES:
        sums[symbol][0] += 1
        sums[symbol][1] += Fraction(price) * quantity
        sums[symbol][2] += quantity
    return {symbol: (float(total / volume), n, volume) for symbol, (n, total, volume) in sums.items()}


CASES = {
    "word-count": (
        "text",
        [line.encode() for line in LINES],
        lambda row: row["count"],
        dict(Counter(word for line in LINES for word in line.split())),
    ),
    "hashtags": (
        "json",
        [json.dumps({"tag": tag, "state": state, "user": author}).encode() for tag, state, author in POSTS],
        lambda row: (
            row["mentions"],
            row["states"],
            [tuple(entry.values()) for entry in row["top_states"]][:1],
            row["authors"],
        ),
        exact_hashtags(),
    ),
    "vwap": (
        "csv",
        [f"{symbol},{price!r},{quantity}".encode() for symbol, price, quantity in TRADES],
        lambda row: (row["vwap"], row["trades"], row["volume"]),
        exact_vwap(),
    ),
}


@pytest.fixture
def rocksdb(spark) -> Iterator[None]:
    """States in RocksDB, as in a session of ours; top-k needs it."""
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, ROCKSDB)
    yield
    spark.conf.set(PROVIDER, before)


@pytest.mark.spark
@pytest.mark.usefixtures("rocksdb")
@pytest.mark.parametrize("name", CASES)
def test_an_application_from_topic_to_topic_has_the_exact_answer(spark, broker, tmp_path, capsys, name):
    from dev.latency import latency

    from dev import topics

    format, values, answer, expected = CASES[name]
    into, out = (topics.create(broker.servers, f"{name}-{end}") for end in ("in", "out"))
    topics.send(broker.servers, into, values)
    app = named(name)()
    grouping = PartialKeyGrouping() if name == "hashtags" else Spillway()
    pipeline = Pipeline(
        app,
        source(f"kafka://{broker.servers}/{into}?format={format}", batch=len(values) - len(values) // 4),
        KafkaSink(f"kafka://{broker.servers}/{out}", app.key),
        Checkpoint(str(tmp_path)),
        Balancing(grouping, 2, "planned" if name == "vwap" else None),
        once=True,
    )
    batches: list[BatchMetrics] = []
    pipeline.run(spark, Events(on_batch=batches.append))
    assert [metrics.malformed for metrics in batches] == [0, 0]
    records = topics.read(broker.servers, out)
    assert {key: answer(row) for key, row in newest(records, app.key).items()} == expected
    measured = latency(spark, broker.servers, into, out, tmp_path)
    assert len(measured.milliseconds) == len(values)
    assert measured.milliseconds.min() >= 0
    with capsys.disabled():
        print(f"\n{name} from Kafka to Kafka under {grouping.name}: {measured}")
    if name == "word-count":
        # What a crash between the sink and the commit leads to: the rows of the batch once more, the same ones.
        for left in ("1", ".1.crc"):
            (tmp_path / "commits" / left).unlink()
        pipeline.run(spark)
        again = [record.value for record in records if json.loads(record.value)["batch"] == 1]
        assert again
        after = Counter(record.value for record in topics.read(broker.servers, out))
        assert after == Counter(record.value for record in records) + Counter(again)
        # Whoever deletes the checkpoint and keeps the topic would find old rows under higher batch numbers.
        anew = replace(pipeline, checkpoint=Checkpoint(str(tmp_path / "anew")))
        with pytest.raises(ConfigError, match=f"topic {out} holds records that are not of this query"):
            anew.run(spark)


@pytest.mark.spark
def test_the_planned_edge_deals_rows_out_by_their_offsets(spark):
    rows = spark.createDataFrame(
        [("A", 1.0, 2, 0, 7)], f"symbol string, price double, quantity long, {ROW}p int, {ROW}o int"
    )
    tuples = Vwap().read(rows)
    assert tuples.columns == ["symbol", "price", "quantity", f"{ROW}p", f"{ROW}o"]
    assert Balancing(Spillway(), 2, edge="planned").balance(tuples, "symbol").settings.row_id == (f"{ROW}p", f"{ROW}o")
    assert Balancing(Spillway(), 2, edge="adaptive").balance(tuples, "symbol").settings.row_id == ()


@pytest.mark.spark
def test_the_examples_of_the_guide_run(spark, broker, capsys):
    from pyspark.sql import functions

    from dev import topics

    guide = (Path(__file__).parents[3] / "docs" / "kafka.md").read_text()
    reading, block = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    topic = topics.create(broker.servers, "guide-counts")
    rows = ({"word": "river", "count": count, "batch": batch} for batch, count in ((1, 1042), (0, 17)))
    topics.send(broker.servers, topic, [json.dumps(row).encode() for row in rows])
    reading = reading.replace("127.0.0.1:9092", broker.servers).replace('"counts"', f'"{topic}"')
    exec(reading, {"spark": spark, "F": functions})
    assert re.search(r"river\|\s+1042\|", capsys.readouterr().out)
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        exec(block.replace("state/ledger", f"{folder}/ledger"), names)
    assert names["vwap"].columns == ["symbol", "vwap"]  # type: ignore[attr-defined]


def test_an_address_names_brokers_and_a_topic():
    made = source("kafka://a:9092,[::1]:9093/my.topic?format=csv&from=latest&columns=a,b", batch=7)
    assert isinstance(made, KafkaSource)
    assert (made.address.servers, made.address.topic, made.batch) == ("a:9092,[::1]:9093", "my.topic", 7)
    assert (made.records.format, made.records.columns) == ("csv", ("a", "b"))
    assert source("kafka://a:1/t").records.format == "json"  # type: ignore[attr-defined]
    assert source("kafka://a:1/t", format="text").records.format == "text"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kafka://a/t", "a broker must be HOST:PORT, as in 127.0.0.1:9092, got 'a'"),
        ("kafka://a:99999/t", "a broker must be HOST:PORT"),
        ("kafka://a:1,/t", "a broker must be HOST:PORT, as in 127.0.0.1:9092, got ''"),
        ("kafka://a:1", "must be kafka://HOST:PORT/TOPIC, got kafka://a:1; add the topic"),
        ("kafka:/a:1/t", "must be kafka://HOST:PORT/TOPIC, got 'kafka:/a:1/t'; write it so"),
        ("kafka:a:1/t", "must be kafka://HOST:PORT/TOPIC, got 'kafka:a:1/t'; write it so"),
        ("Kafka://a:1/t", "must be kafka://HOST:PORT/TOPIC, got 'Kafka://a:1/t'; write it so"),
        ("kafka://a:1/t t", "a topic has letters, digits"),
        ("kafka://a:1/t?form=csv", "takes format, from, columns, failOnDataLoss, got 'form'; leave it out"),
        ("kafka://a:1/t?failOnDataLoss=no", "failOnDataLoss must be one of true, false, got 'no'"),
        ("kafka://a:1/t?from=middle", "from must be one of earliest, latest, got 'middle'"),
        ("kafka://a:1/t?format=avro", "format of records must be one of json, text, csv"),
    ],
)
def test_an_address_that_cannot_be_is_refused_at_once(text, message):
    with pytest.raises(ConfigError, match=message):
        source(text)


@pytest.mark.parametrize(
    "text",
    [
        "kafka://me:swordfish@a:1/t",
        "kafka:/me:swordfish@a:1/t",
        "kafka://a:1/t?sasl.jaas.config=swordfish",
        "kafka://a:1/t?kafka.ssl.key.password=swordfish",
        "kafka://a:1/t?password=swordfish",
    ],
)
def test_secrets_in_an_address_are_refused_and_not_repeated(text):
    for make in (source, lambda text: KafkaSink(text, "word"), KafkaAddress.parse):
        with pytest.raises(ConfigError, match="--kafka-properties") as refused:
            make(text)
        assert "swordfish" not in str(refused.value)


def test_a_format_is_said_once():
    with pytest.raises(ConfigError, match="the address says format csv, --format says json; leave one out"):
        source("kafka://a:1/t?format=csv", format="json")
    with pytest.raises(ConfigError, match="takes no parameters here, got 'format'"):
        KafkaSink("kafka://a:1/t?format=csv", "word")


def test_a_broker_that_does_not_answer_is_an_error_at_once():
    from dev.kafka import free_port

    with pytest.raises(InputError, match="no Kafka broker answers at 127"):
        KafkaAddress(f"127.0.0.1:{free_port()}", "t").check()


@pytest.mark.spark
def test_a_topic_that_is_not_there_is_named_before_the_query_starts(spark, broker, tmp_path):
    from dev import topics

    topics.create(broker.servers, "absentee")
    with pytest.raises(InputError) as refused:
        source(f"kafka://{broker.servers}/absentees").check(spark, Checkpoint(str(tmp_path)))
    assert str(refused.value) == (
        f"{broker.servers} has no topic absentees, or none that this user may see (did you mean absentee?); make it "
        f"with anabranch produce kafka://{broker.servers}/absentees, "
        f"or kafka-topics.sh --create --topic absentees --bootstrap-server {broker.servers}"
    )


class Options:
    """Stands for a reader or writer of Spark's, and keeps its options."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self.readStream = self.read = self.write = self

    def format(self, _name):
        return self

    def options(self, **given):
        self.given |= given
        return self

    def load(self):
        return self

    save = load


LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'Module required username="me" password="swordfish";',
    "ssl.truststore.location": "ca.jks",
    "ssl.truststore.password": "halibut",
}


def test_a_log_in_reaches_reader_and_writer_under_sparks_names(monkeypatch):
    monkeypatch.setattr("anabranch.apps.kafka.ends.F", MagicMock())
    reading, writing, rows = Options(), Options(), MagicMock(columns=["word"])
    rows.select.return_value = writing
    KafkaSource("kafka://a:1/in", connection=Connection(LOGIN)).open(reading)  # type: ignore[arg-type]
    KafkaSink("kafka://a:1/out", "word", Connection(LOGIN)).write(rows, 0)
    passed = {f"kafka.{name}": value for name, value in LOGIN.items()} | {"kafka.bootstrap.servers": "a:1"}
    assert passed.items() <= reading.given.items()
    assert writing.given == passed | {"topic": "out"}


def test_without_the_connector_both_ways_to_get_it_are_named():
    def load():
        raise AnalysisException("[DATA_SOURCE_NOT_FOUND] Failed to find data source: kafka.")

    bare = SimpleNamespace(load=load)
    reader = SimpleNamespace(format=lambda _: SimpleNamespace(options=lambda **_: bare))
    with pytest.raises(
        InputError, match=r"--packages org\.apache\.spark:spark-sql-kafka-0-10_2\.13:4\.9\.9, or --jars"
    ):
        require_connector(SimpleNamespace(read=reader, version="4.9.9"))  # type: ignore[arg-type]
