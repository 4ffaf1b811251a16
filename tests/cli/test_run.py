from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

import anabranch.cli.run as run_command

pytest.importorskip("pyspark")

from anabranch.apps import (
    Checkpoint,
    Connection,
    DeadLetters,
    Events,
    FileSource,
    FolderSink,
    KafkaSink,
    KafkaSource,
    Pipeline,
    Vwap,
)
from anabranch.cli import endpoints
from anabranch.errors import QueryError

CSV_TOPIC = KafkaSource("kafka://a:1/t?format=csv")
GENERATED = "generator:zipf(keys=20, z=1.2, tuples=600)"


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
        (
            ("word-count", "--source", "kafka:/a:1/t"),
            "the address of a topic must be kafka://HOST:PORT/TOPIC, got 'kafka:/a:1/t'; write it so",
        ),
        (
            ("word-count", "--source", "x", "--sink", "kafka:/a:1/t"),
            "the address of a topic must be kafka://HOST:PORT/TOPIC, got 'kafka:/a:1/t'; write it so",
        ),
        (("word-count", "--source", "x", "--workers", "0"), "--workers must be at least 1, got '0'"),
        (("word-count", "--source", "x", "--grouping", "fsh"), "no grouping is named 'fsh'; did you mean fish?"),
        (
            ("geo-trends", "--source", "x", "--grouping", "key"),
            "geo-trends routes by tables of its own; leave --grouping and --edge out",
        ),
        (
            ("geo-trends", "--source", "x", "--work-us", "20"),
            "geo-trends emulates no work; leave --work-us out",
        ),
        (
            ("geo-trends", "--source", "x", "--regime", "resident", "--flush-every", "3", "--once"),
            "a bounded run of geo-trends would leave states on its workers that are in no answer; with --once, leave "
            "--flush-every out",
        ),
        (
            ("word-count", "--source", "x", "--column", "word"),
            "--column takes NAME=COLUMN, as in price=close, got 'word'",
        ),
        (
            ("word-count", "--source", "README.md"),
            "--source must be a folder or a pattern, got the file 'README.md'; name its folder",
        ),
        (
            ("word-count", "--source", "x", "--format", "orc"),
            "format must be one of text, csv, json, parquet, got 'orc'",
        ),
        (
            ("word-count", "--source", GENERATED, "--dead-letters", "y"),
            "--dead-letters and --strict are for files and topics; leave them out with the generator",
        ),
        (
            ("word-count", "--source", GENERATED, "--strict"),
            "--dead-letters and --strict are for files and topics; leave them out with the generator",
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
        (
            ("word-count", "--source", "x", "--sink", "out", "--adopt"),
            "--adopt is for a topic that another query has written; leave it out with any other --sink",
        ),
    ],
)
def test_what_cannot_be_run_is_a_usage_error_before_spark_starts(fails, monkeypatch, args, message):
    monkeypatch.setattr("anabranch.apps.own_session", None)
    assert fails(2, "run", *args) == message


def test_settings_that_the_checkpoints_states_forbid_are_an_error_before_spark_starts(
    run, fails, monkeypatch, tmp_path
):
    monkeypatch.setattr("anabranch.cli.run._run", lambda *_: None)
    asked = ("run", "word-count", "--source", GENERATED, "--checkpoint", tmp_path)
    assert run(*asked).code == 0
    assert run(*asked, "--workers", 4, "--edge", "adaptive", "--grouping", "fish").code == 0
    assert "was made with regime batch, not resident, and its states hold for nothing else; go on with regime" in fails(
        2, *asked, "--regime", "resident"
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
    assert run(*asked, "--adopt").code == 0
    assert made.pop()[0].sink == KafkaSink("kafka://a:1/out", "symbol", connection, adopt=True)
    assert made[0][2] == {"spark_jars_packages": "g:n:1", "spark_jars": str(tmp_path / "a.jar")}
    assert [pipeline.dead_letters for pipeline, *_ in made] == [
        None,
        FolderSink(f"{tmp_path}/state/dead-letters"),
        KafkaSink("kafka://a:1/dead", "key", connection),
    ]


@pytest.mark.parametrize(("sink", "where"), [(None, "THEY ARE KEPT NOWHERE"), (FolderSink("d"), "they are in d")])
def test_a_run_says_where_malformed_records_are(capsys, sink, where):
    letters = SimpleNamespace(count=3, example={"partition": 1, "offset": 7, "reason": "no value in price"})
    endpoints.tell_malformed(SimpleNamespace(letters=letters, dead_letters=sink))
    assert f"3 malformed, such as partition 1, offset 7: no value in price; {where}" in capsys.readouterr().err


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
def test_a_bounded_run_gives_what_workers_hold(spark, rocksdb, run, words, tmp_path):
    command = ["run", "word-count", "--source", words, "--sink", tmp_path / "counts", "--workers", 2, "--once"]
    done = run(*command, "--checkpoint", tmp_path / "state", "--regime", "resident", "--flush-every", 3)
    assert done.code == 0, done.err
    assert counts(tmp_path / "counts") == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert "workers hold" not in done.err


@pytest.mark.parametrize(("n", "said"), [(0, ""), (1, "the last batch"), (2, "the last 2 batches")])
def test_a_run_says_what_workers_hold(capsys, n, said):
    checkpoint = SimpleNamespace(held={3: n}.__getitem__)
    endpoints.tell_held(SimpleNamespace(checkpoint=checkpoint, balancing=SimpleNamespace(flush_every=3)))  # type: ignore[arg-type]
    rest = "changed; it comes out when the run goes on and there are rows to read\n"
    assert capsys.readouterr().err == (f"workers hold what {said} {rest}" if n else "")


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


@pytest.fixture
def attended():
    """Signals as a terminal leaves them: nohup, and a shell's background, set some aside."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for one in before:
        signal.signal(one, signal.SIG_DFL)
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["ctrl-c", "sigterm", "sighup"],
)
def test_the_first_signal_asks_and_the_second_ends_java_at_once(attended, monkeypatch, number, code):
    events, ended_java = Events(), []
    monkeypatch.setattr("anabranch.apps.end_java", lambda: ended_java.append(True))
    with run_command._stopped_by_signals(events):
        assert not events.stop
        signal.raise_signal(number)
        assert events.stop
        assert not ended_java
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(number)
    assert ended.value.code == code
    assert ended_java == [True]


def test_a_signal_that_nohup_has_set_aside_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with run_command._stopped_by_signals(events := Events()):
            signal.raise_signal(signal.SIGHUP)
        assert not events.stop
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_hang_up_asks_though_the_terminal_is_gone(attended, monkeypatch):
    def gone(_: object) -> None:
        raise OSError("Input/output error")

    monkeypatch.setattr(run_command, "say", gone)
    with run_command._stopped_by_signals(events := Events()):
        signal.raise_signal(signal.SIGHUP)
    assert events.stop


def test_sigterm_before_the_query_starts_ends_the_command_and_leaves_nothing(attended, run, monkeypatch, tmp_path):
    def interrupted(pipeline, *_):
        assert Path(pipeline.checkpoint.uri).is_relative_to(tmp_path)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("anabranch.cli.run._run", interrupted)
    handler = signal.getsignal(signal.SIGTERM)
    done = run("run", "word-count", "--source", GENERATED)
    assert (done.code, done.err) == (143, "no --checkpoint: this run cannot be resumed\n")
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is handler


def test_what_a_run_has_to_say_is_a_line_on_stderr(run, monkeypatch):
    monkeypatch.setattr("anabranch.apps.own_session", lambda *_, **__: nullcontext())
    monkeypatch.setattr(Pipeline, "run", lambda _self, _spark, events: events.on_note("waiting for Kafka at h:1"))
    done = run("run", "word-count", "--source", GENERATED)
    assert "waiting for Kafka at h:1" in done.err.splitlines()
    assert done.out == ""


def test_a_stopped_run_whose_spark_is_gone_prints_no_rows(capsys):
    def gone(*_):
        raise ConnectionRefusedError

    pipeline = SimpleNamespace(heaviest=gone)
    run_command._print_top(pipeline, None, 3, stopped=True)
    assert capsys.readouterr().out == ""
    with pytest.raises(ConnectionRefusedError):
        run_command._print_top(pipeline, None, 3, stopped=False)


def test_a_run_says_where_malformed_rows_of_files_are(capsys):
    letters = SimpleNamespace(count=1200, example={"file": "/in/a.csv", "reason": "price is not a double: x"})
    endpoints.tell_malformed(SimpleNamespace(letters=letters, dead_letters=None))
    assert capsys.readouterr().err == (
        "1,200 malformed, such as /in/a.csv: price is not a double: x; THEY ARE KEPT NOWHERE ELSE; "
        "add --dead-letters DIR, or --checkpoint DIR\n"
    )
    for none in (None, SimpleNamespace(count=0)):
        endpoints.tell_malformed(SimpleNamespace(letters=none, dead_letters=None))
    assert not capsys.readouterr().err


def letters_of(read: int, malformed: int, source: KafkaSource | FileSource = CSV_TOPIC) -> SimpleNamespace:
    """What a pipeline knows after a run."""
    letters = DeadLetters(source, Vwap(), {}, Checkpoint("none"))
    letters.read, letters.good = read, read - malformed
    letters.reasons.update({"not UTF-8": malformed // 3, "no value in price": malformed - malformed // 3})
    return SimpleNamespace(letters=letters, source=letters.source, once=True)


def test_a_run_of_nothing_but_malformed_records_fails_with_the_usual_reason_and_what_to_check():
    with pytest.raises(QueryError) as failed:
        endpoints.check_some_good(letters_of(3000, 3000))
    assert str(failed.value) == (
        "all 3,000 records that were read are malformed, most often for the reason: no value in price; they were read "
        "with format=csv: correct format= or columns= in --source, or --column, and read them again with a new "
        "--checkpoint"
    )
    with pytest.raises(QueryError, match=r"all 9 rows that were .* no value in price; correct --format or --co"):
        endpoints.check_some_good(letters_of(9, 9, FileSource("in")))
    for other in (letters_of(3000, 2999), letters_of(0, 0), SimpleNamespace(letters=None)):
        endpoints.check_some_good(other)
    endless = letters_of(3000, 3000)
    endless.once = False
    endpoints.check_some_good(endless)


@pytest.mark.spark
def test_a_topic_read_in_the_wrong_format_ends_with_exit_code_1(spark, broker, run, tmp_path):
    from dev import topics

    topic = topics.create(broker.servers, "misread")
    topics.send(broker.servers, topic, [b"plain words"] * 20)
    asked = ("run", "word-count", "--source", f"kafka://{broker.servers}/{topic}", "--checkpoint", tmp_path / "state")
    done = run(*asked, "--workers", 2, "--grouping", "key", "--once")
    assert done.code == 1
    lines = done.err.splitlines()
    assert "20 malformed" in lines[-2]
    assert f"they are in {tmp_path}/state/dead-letters" in lines[-2]
    assert lines[-1].startswith(
        "Error: all 20 records that were read are malformed, most often for the reason: not JSON; "
    )
    assert pq.read_table(tmp_path / "state" / "dead-letters").num_rows == 20


@pytest.mark.spark
def test_ctrl_c_ends_a_run_after_its_batch(spark, run, tmp_path):
    out = tmp_path / "out"

    def interrupt() -> None:
        while not (out / "batch=0").exists():
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    handler = signal.getsignal(signal.SIGINT)
    endless = "generator:zipf(keys=20, z=1.2, batch=300)"
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
