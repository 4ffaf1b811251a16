from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

import anabranch.cli.run as run_command

pytest.importorskip("pyspark")

from anabranch.apps import Connection, Events, FolderSink, KafkaSink, KafkaSource
from anabranch.cli import ends

GENERATED = "generator:zipf?keys=20&z=1.2&tuples=600"


def counts(folder: Path) -> dict[str, int]:
    """Each word's count in the newest batch that has it."""
    found: dict[str, int] = {}
    for batch in sorted(folder.glob("batch=*"), key=lambda path: int(path.name.partition("=")[2])):
        for file in batch.glob("*.parquet"):
            table = pq.read_table(file, partitioning=None)
            found |= dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
    return found


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A folder with one file of lines."""
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1.txt").write_text("to be or\nnot to be\n")
    return tmp_path / "lines"


def test_without_an_application_they_are_listed(run):
    done = run("run")
    assert done.code == 0
    listed = [line.split()[0] for line in done.out.splitlines()]
    assert listed == ["name", "word-count", "hashtags", "vwap", "geo-trends"]


def test_without_pyspark_the_extra_is_named(fails, monkeypatch):
    monkeypatch.setattr(run_command, "find_spec", lambda name: None)
    assert fails(1, "run") == "anabranch run needs PySpark, which is not installed; install anabranch[spark]"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("wordcount", "--source", "x"), "no application is named 'wordcount'; did you mean word-count?"),
        (
            ("word-count",),
            "run needs --source: a folder of files, kafka://HOST:PORT/TOPIC, or generator:zipf for generated tuples",
        ),
        (("word-count", "--source", "x", "--workers", "0"), "--workers must be at least 1, got '0'"),
        (("word-count", "--source", "x", "--grouping", "fsh"), "no grouping is named 'fsh'; did you mean fish?"),
        (
            ("word-count", "--source", "x", "--column", "word"),
            "--column takes NAME=COLUMN, as in price=close, got 'word'",
        ),
        (
            ("word-count", "--source", "x", "--format", "orc"),
            "format must be one of text, csv, json, parquet, got 'orc'",
        ),
        (
            ("word-count", "--source", "x", "--dead-letters", "y"),
            "--dead-letters is for records of a topic; leave it out with any other --source",
        ),
        (
            ("word-count", "--source", "kafka://a:1/t", "--jars", "nowhere"),
            "--jars must name a folder with jars, or jars, got 'nowhere', which is not there",
        ),
        (
            ("word-count", "--source", "kafka://a:1/t", "--jars", "tests"),
            "--jars must name a folder with jars, got 'tests', which has none",
        ),
        (
            ("word-count", "--source", "x", "--conf", "executor.memory=4g"),
            "--conf takes NAME=VALUE, as in spark.executor.memory=4g, got 'executor.memory=4g'",
        ),
    ],
)
def test_what_cannot_be_run_is_a_usage_error_before_spark_starts(fails, monkeypatch, args, message):
    monkeypatch.setattr("anabranch.apps.own_session", None)
    assert fails(2, "run", *args) == message


def test_other_settings_than_the_checkpoints_are_an_error_before_spark_starts(run, fails, monkeypatch, tmp_path):
    monkeypatch.setattr("anabranch.cli.run._run", lambda *_: None)
    asked = ("run", "word-count", "--source", GENERATED, "--checkpoint", tmp_path)
    assert run(*asked).code == 0
    assert "was made with workers 16, not 4; keep that, or start with a new checkpoint" in fails(
        2, *asked, "--workers", 4
    )


def test_topics_go_to_topics_and_malformed_records_into_the_checkpoint(run, monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr("anabranch.cli.run._run", lambda *given: made.append(given))
    (tmp_path / "client.properties").write_text("sasl.mechanism=PLAIN\n")
    (tmp_path / "a.jar").touch()
    asked = ("run", "vwap", "--source", "kafka://a:1/in?format=csv", "--sink", "kafka://a:1/out", "--batch", "5k")
    asked += ("--kafka-properties", tmp_path / "client.properties", "--jars", tmp_path, "--packages", "g:n:1")
    state = ("--checkpoint", tmp_path / "state")
    for more in ((), state, (*state, "--dead-letters", "kafka://a:1/dead")):
        assert run(*asked, *more).code == 0
    connection = Connection({"sasl.mechanism": "PLAIN"})
    assert made[0][0].source == KafkaSource("kafka://a:1/in?format=csv", None, 5000, connection)
    assert made[0][0].sink == KafkaSink("kafka://a:1/out", "symbol", connection)
    assert made[0][2] == {"spark_jars_packages": "g:n:1", "spark_jars": str(tmp_path / "a.jar")}
    assert [pipeline.dead_letters for pipeline, *_ in made] == [
        None,
        FolderSink(f"{tmp_path}/state/dead-letters"),
        KafkaSink("kafka://a:1/dead", "key", connection),
    ]


@pytest.mark.parametrize(("sink", "where"), [(None, "THEY ARE KEPT NOWHERE"), (FolderSink("d"), "they are in d")])
def test_a_run_says_where_malformed_records_are(capsys, sink, where):
    letters = SimpleNamespace(count=3, example={"partition": 1, "offset": 7, "reason": "no field price"})
    ends.tell_malformed(SimpleNamespace(letters=letters, dead_letters=sink))
    assert f"3 malformed, such as partition 1, offset 7: no field price; {where}" in capsys.readouterr().err


@pytest.mark.spark
def test_a_folder_is_counted_once_and_resumed_when_it_has_grown(spark, run, words, tmp_path):
    asked = ("run", "word-count", "--source", words, "--sink", tmp_path / "out", "--checkpoint", tmp_path / "state")
    asked += ("--workers", 2, "--grouping", "partial-key", "--once", "--top", 2)
    done = run(*asked)
    assert done.code == 0, done.err
    assert [line.split() for line in done.out.splitlines()] == [["word", "count"], ["be", "2"], ["to", "2"]]
    lines = done.err.splitlines()
    assert lines[0].startswith("batch 0 · 6 tuples in ")
    assert " · makespan 1.000 · imbalance 0 · replication " in lines[0]
    assert lines[1].startswith("done: 1 batch · 6 tuples · ")
    (words / "2.txt").write_text("to be\n")
    done = run(*asked)
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == "resuming after batch 0"
    assert done.err.splitlines()[1].startswith("batch 1 · 2 tuples")
    assert counts(tmp_path / "out") == {"to": 3, "be": 3, "or": 1, "not": 1}
    done = run(*asked)
    assert done.err.splitlines() == ["resuming after batch 1", "nothing new to read"]


@pytest.mark.spark
def test_a_replayed_batch_replaces_its_files(spark, run, words, tmp_path):
    state, out = tmp_path / "state", tmp_path / "out"
    asked = ("run", "word-count", "--source", words, "--sink", out, "--checkpoint", state, "--workers", 2, "--once")
    assert run(*asked, "--grouping", "key").code == 0
    before = {path.name for path in (out / "batch=0").glob("*.parquet")}
    # What a crash between the sink and the end of a batch leaves behind.
    for left in ("0", ".0.crc"):
        (state / "commits" / left).unlink()
    done = run(*asked, "--grouping", "key")
    assert done.err.splitlines()[0].startswith("batch 0 · 6 tuples"), done.err
    after = {path.name for path in (out / "batch=0").glob("*.parquet")}
    assert not before & after
    assert counts(out) == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_a_second_ctrl_c_is_one_that_python_raises():
    events = Events()
    with run_command._stopped_by_signals(events):
        assert not events.stop
        signal.raise_signal(signal.SIGINT)
        assert events.stop
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.spark
def test_ctrl_c_ends_a_run_after_its_batch(spark, run, tmp_path):
    out = tmp_path / "out"

    def interrupt() -> None:
        while not (out / "batch=0").exists():
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    handler = signal.getsignal(signal.SIGINT)
    endless = "generator:zipf?keys=20&z=1.2&batch=300"
    asked = (
        "run",
        "word-count",
        "--source",
        endless,
        "--sink",
        out,
        "--checkpoint",
        tmp_path / "state",
        "--workers",
        2,
    )
    done = run(*asked, "--grouping", "key", "--top", 0)
    assert done.code == 0, done
    lines = done.err.splitlines()
    assert "stopping after this batch; once more to stop at once" in lines
    assert lines[-1].startswith("stopped after ")
    assert signal.getsignal(signal.SIGINT) is handler
    done_batches = len(list((tmp_path / "state" / "commits").glob("[0-9]*")))
    assert sum(line.startswith("batch ") for line in lines) == done_batches


@pytest.mark.spark
def test_a_failure_is_one_line_with_its_cause(spark, fails, words, tmp_path):
    asked = ("run", "vwap", "--source", GENERATED, "--column", "quantity=raise_error('no quantity today')", "--once")
    message = fails(1, *asked, "--grouping", "key", "--workers", 2, "--checkpoint", tmp_path / "state")
    assert message.startswith("vwap failed: ")
    assert "no quantity today" in message


@pytest.mark.spark
def test_the_console_shows_each_batch(spark, run):
    done = run(
        "run", "word-count", "--source", GENERATED, "--workers", 2, "--grouping", "key", "--once", "--batch", 400
    )
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == "no --checkpoint: this run cannot be resumed"
    blocks = [block.splitlines() for block in done.out.strip().split("\n\n")]
    # Spark 4.1 hands out all that a source in Python has at once.
    assert [block[0].partition(",")[0] for block in blocks] == ["batch 0", "batch 1"][
        : 2 if spark.version >= "4.2" else 1
    ]
    assert blocks[0][1].split() == ["word", "count"]
    heaviest = [int(line.split()[1]) for line in blocks[-1][2:]]
    assert heaviest == sorted(heaviest, reverse=True)
    assert sum(heaviest) <= 600
