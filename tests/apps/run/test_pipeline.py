from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrame, SparkSession

from anabranch.apps import (
    Balancing,
    Checkpoint,
    DeadLetters,
    Events,
    FileSource,
    FolderSink,
    GeoTrends,
    KafkaSink,
    KafkaSource,
    MemorySink,
    Pipeline,
    WordCount,
)
from anabranch.cli.progress import batch_line
from anabranch.errors import ConfigError, InputError, QueryError
from anabranch.groupings import Fish, KeyGrouping, PartialKeyGrouping, ShuffleGrouping, Spillway
from anabranch.spark.progress import BatchMetrics

pytestmark = pytest.mark.spark

LINES = ("the cat and the dog", "the bird", "a cat")


@dataclass(frozen=True)
class Failing(MemorySink):
    """Fails as often as `failures` has messages, after the batch has been taken."""

    failures: list[str] = field(default_factory=list)

    def write(self, rows: DataFrame, batch: int) -> None:
        super().write(rows, batch)
        if self.failures:
            raise RuntimeError(self.failures.pop())


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Three files, a file a batch."""
    (tmp_path / "in").mkdir()
    for number, line in enumerate(LINES):
        (tmp_path / "in" / f"{number}.txt").write_text(line + "\n")
    source = FileSource(str(tmp_path / "in"), batch=1)
    checkpoint = Checkpoint(str(tmp_path / "checkpoint"))
    return Pipeline(WordCount(), source, MemorySink(), checkpoint, Balancing(PartialKeyGrouping(), 2), once=True)


def counts(sink: MemorySink) -> dict[str, int]:
    return {word: row["count"] for word, row in sink.latest("word").items()}


def test_every_batch_counts_once_and_a_run_goes_on_where_one_ended(spark: SparkSession, pipeline: Pipeline, tmp_path):
    batches = []
    pipeline.run(spark, Events(on_batch=batches.append))
    assert [metrics.batch for metrics in batches] == [0, 1, 2]
    assert sum(metrics.tuples for metrics in batches) == 9
    assert all(len(metrics.worker_tuples) == 2 for metrics in batches)
    (tmp_path / "in" / "3.txt").write_text("the end")
    batches.clear()
    pipeline.run(spark, Events(on_batch=batches.append))
    assert [metrics.batch for metrics in batches] == [3]
    assert counts(pipeline.sink) == Counter(" ".join([*LINES, "the end"]).split())  # type: ignore[arg-type]


@dataclass(frozen=True)
class LosingTheLedger(MemorySink):
    """In every batch the ledger's folder is removed."""

    ledger: str = ""

    def write(self, rows: DataFrame, batch: int) -> None:
        super().write(rows, batch)
        shutil.rmtree(self.ledger)


def test_a_run_goes_on_without_the_figures_of_a_ledger_that_is_lost(spark: SparkSession, pipeline: Pipeline):
    batches: list[BatchMetrics] = []
    sink = LosingTheLedger(ledger=pipeline.checkpoint.ledger)
    replace(pipeline, sink=sink).run(spark, Events(on_batch=batches.append))
    assert [(one.batch, one.makespan) for one in batches] == [(0, None), (1, None), (2, None)]
    assert counts(sink) == Counter(" ".join(LINES).split())


def test_a_batch_that_spark_could_not_repeat_is_run_again_from_the_checkpoint(spark: SparkSession, pipeline: Pipeline):
    sink = Failing(failures=["… with indeterminate output … cannot rollback the ResultStage 3 …"] * 2)
    restarts = []
    replace(pipeline, sink=sink).run(spark, Events(on_restart=lambda number, cause: restarts.append((number, cause))))
    assert [number for number, _ in restarts] == [1, 2]
    assert all("cannot rollback the ResultStage" in cause for _, cause in restarts)
    assert counts(sink) == Counter(" ".join(LINES).split())


def test_restarts_are_limited(spark: SparkSession, pipeline: Pipeline):
    sink = Failing(failures=["cannot rollback the ResultStage"] * 2)
    with pytest.raises(QueryError, match=r"word-count failed: .*cannot rollback"):
        replace(pipeline, sink=sink, restarts=1).run(spark)
    assert sink.failures == []


def test_any_other_failure_ends_the_run_with_its_cause(spark: SparkSession, pipeline: Pipeline):
    sink = Failing(failures=["never reached", "the disk is full"])
    with pytest.raises(QueryError, match=r"^word-count failed: the disk is full$"):
        replace(pipeline, sink=sink).run(spark)
    assert sink.failures == ["never reached"]


def test_a_run_that_is_told_to_stop_ends_after_its_batch(spark: SparkSession, pipeline: Pipeline):
    events = Events()

    class Stopping(Failing):
        def write(self, rows: DataFrame, batch: int) -> None:
            super().write(rows, batch)
            events.stop = True

    sink = Stopping()
    stopping = replace(pipeline, sink=sink, once=False)
    done = []
    events.on_batch = done.append
    stopping.run(spark, events)
    assert done
    assert stopping.checkpoint.batches() >= done[-1].batch + 1
    events.stop = False
    replace(pipeline, sink=(after := MemorySink(rows=sink.rows))).run(spark)
    assert counts(after) == Counter(" ".join(LINES).split())


def test_another_application_is_refused_before_anything_runs(pipeline: Pipeline):
    pipeline.claim()
    with pytest.raises(ConfigError, match="was made with regime batch, not resident"):
        replace(pipeline, balancing=Balancing(PartialKeyGrouping(), 2, regime="resident")).claim()


def test_totals_go_on_under_other_workers_groupings_and_edges(spark: SparkSession, tmp_path: Path):
    folder, sink = tmp_path / "words", MemorySink()
    folder.mkdir()
    routings = (
        Balancing(Spillway(), 8),
        Balancing(Fish(), 3),
        Balancing(Spillway(), 3, edge="planned"),
        Balancing(KeyGrouping(), 2, edge="local"),
    )
    for number, balancing in enumerate(routings):
        words = [f"w{min(i % 40, i % 7)}" for i in range(number, 400)]
        (folder / f"{number}.csv").write_text("\n".join(["word", *words]) + "\n")
        checkpoint = Checkpoint(str(tmp_path / "state"))
        Pipeline(WordCount(), FileSource(str(folder)), sink, checkpoint, balancing, once=True).run(spark)
    totals = spark.read.csv(str(folder), header=True).groupBy("word").count().collect()
    assert len(sink.rows) == len(routings)
    assert counts(sink) == dict(map(tuple, totals))


def test_resident_states_go_on_under_another_grouping_and_edge(spark: SparkSession, rocksdb: None, tmp_path: Path):
    folder, sink = tmp_path / "words", MemorySink()
    folder.mkdir()
    for number, (grouping, edge) in enumerate([(ShuffleGrouping(), None), (KeyGrouping(), "planned")]):
        (folder / f"{number}.csv").write_text("\n".join(["word", *(f"w{i % 9}" for i in range(90))]) + "\n")
        balancing = Balancing(grouping, 3, edge, regime="resident", flush_every=2)
        Pipeline(
            WordCount(), FileSource(str(folder)), sink, Checkpoint(str(tmp_path / "state")), balancing, once=True
        ).run(spark)
    assert counts(sink) == {f"w{i}": 20 for i in range(9)}


def test_operators_in_a_row_run_as_one_query_and_say_how_local_it_was(
    spark: SparkSession, rocksdb: None, tmp_path: Path
):
    (tmp_path / "posts").mkdir()
    posts = [("NY", "a"), ("NY", "b"), ("CA", "a"), ("", "a")]
    for number in range(2):
        text = "\n".join(["state,tag", *(f"{state},{tag}" for state, tag in posts)])
        (tmp_path / "posts" / f"{number}.csv").write_text(text + "\n")
    source = FileSource(str(tmp_path / "posts"), batch=1)
    checkpoint, sink = Checkpoint(str(tmp_path / "checkpoint")), MemorySink()
    batches: list[BatchMetrics] = []
    Pipeline(GeoTrends(), source, sink, checkpoint, Balancing(n_workers=2), once=True).run(
        spark, Events(on_batch=batches.append)
    )
    assert {trend: row["posts"] for trend, row in sink.latest("trend").items()} == {
        "location NY": 4,
        "location CA": 2,
        "location unknown": 2,
        "hashtag a": 6,
        "hashtag b": 2,
    }
    # Of each operator two workers, all of them on this host.
    assert [(one.tuples, len(one.worker_tuples), one.locality, one.hosts) for one in batches] == [(4, 4, 1.0, 1)] * 2
    assert batch_line(batches[0]).endswith("on 1 host, where every tuple is local")


@pytest.mark.parametrize(("sink", "dead"), [("words", None), ("counts", "words"), ("counts", "counts")])
def test_a_topic_is_not_read_and_written_by_one_query(tmp_path, sink, dead):
    letters = None if dead is None else KafkaSink(f"kafka://h:1/{dead}", "key")
    source, target = KafkaSource("kafka://h:1/words?format=text"), KafkaSink(f"kafka://h:1/{sink}", "word")
    pipeline = Pipeline(WordCount(), source, target, Checkpoint(str(tmp_path / "c")), dead_letters=letters)
    with pytest.raises(ConfigError, match=f"must be different topics, got {dead or sink} twice; choose another"):
        pipeline.claim()
    assert not (tmp_path / "c").exists()


def test_dead_letters_of_two_queries_do_not_share_a_folder(tmp_path):
    first, second = (
        Pipeline(
            WordCount(),
            KafkaSource("kafka://h:1/words?format=text"),
            MemorySink(),
            Checkpoint(str(tmp_path / name)),
            dead_letters=FolderSink(str(tmp_path / "dead")),
        )
        for name in ("first", "second")
    )
    first.claim()
    with pytest.raises(ConfigError, match=r"sink .*/dead holds the output of another query"):
        second.claim()
    first.claim()


def test_kafka_does_not_say_which_topic_it_does_not_know_but_the_error_does(tmp_path):
    source, sink = KafkaSource("kafka://h:1/words?format=text"), KafkaSink("kafka://h:1/counts", "word")
    unknown = RuntimeError("x.UnknownTopicOrPartitionException: This server does not host this topic-partition.")
    reading = Pipeline(WordCount(), source, MemorySink(), Checkpoint(str(tmp_path)))
    assert reading._cause(unknown).startswith("h:1 has no topic words, or none that this user may see; make it with ")
    assert " or h:1 has no topic counts, " in replace(reading, sink=sink)._cause(unknown)
    begin(tmp_path, {"words": {"0": 7}})
    both = replace(reading, sink=sink)._cause(unknown)
    assert f"h:1 has no topic words, or none that this user may see, but checkpoint {tmp_path} has read it" in both
    assert both.count("make it with anabranch produce") == 1


def begin(checkpoint: Path, offsets: dict[str, dict[str, int]]) -> None:
    """What Spark writes down of a query that has begun to read a topic."""
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_text(f"v1\n{json.dumps(offsets)}")


def test_what_is_lost_is_told_before_the_query_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(KafkaSource, "check", lambda _self, _spark, _checkpoint, note: note("3 records are skipped"))
    monkeypatch.setattr(DeadLetters, "catch_up", lambda self, _: self.note("4 malformed records are lost") or 0)
    notes: list[str] = []
    source = KafkaSource("kafka://h:1/words?format=text")
    Pipeline(WordCount(), source, MemorySink(), Checkpoint(str(tmp_path)))._catch_up(
        None,  # type: ignore[arg-type]
        Events(on_note=notes.append),
    )
    assert notes == ["3 records are skipped", "4 malformed records are lost"]


def test_what_a_batch_has_skipped_is_told_after_it(tmp_path, monkeypatch):
    progress = {"batchId": 4, "durationMs": {"addBatch": 1}}
    monkeypatch.setattr(Pipeline, "_metrics", lambda *_: BatchMetrics(4, 1, 1.0, 1.0, 0.0, 1.0, 0, 0, [1], [1.0]))
    monkeypatch.setattr(DeadLetters, "batch", lambda *_: 0)
    monkeypatch.setattr(KafkaSource, "tell_skipped", lambda _, found, note: note(f"skipped in {found['batchId']}"))
    told: list[object] = []
    events = Events(on_batch=lambda metrics: told.append(metrics.batch), on_note=told.append)
    source = KafkaSource("kafka://h:1/words?format=text")
    pipeline = Pipeline(WordCount(), source, MemorySink(), Checkpoint(str(tmp_path)))
    query = SimpleNamespace(recentProgress=[progress])
    assert pipeline._tell(None, query, -1, events) == 4  # type: ignore[arg-type]
    assert told == [4, "skipped in 4"]


def test_a_run_ends_with_an_error_where_its_source_has_become_another(spark: SparkSession, pipeline: Pipeline):
    class Changing(FileSource):
        def check_running(self, checkpoint: Checkpoint) -> None:
            raise InputError("topic words is not the one that was read")

    changing = replace(pipeline, source=Changing(pipeline.source.path))  # type: ignore[attr-defined]
    with pytest.raises(QueryError, match=r"^word-count failed: topic words is not the one that was read$"):
        changing.run(spark)


def test_a_spark_that_ended_with_the_signal_that_stops_a_run_is_no_failure(pipeline: Pipeline, monkeypatch):
    def start(*_: object) -> None:
        raise ConnectionRefusedError("Java is gone")

    monkeypatch.setattr(Pipeline, "start", start)
    pipeline.run(None, Events(stop=True))  # type: ignore[arg-type]
    with pytest.raises(ConnectionRefusedError):
        pipeline.run(None, Events())  # type: ignore[arg-type]


def test_lines_that_are_no_json_are_left_out_and_counted(spark: SparkSession, pipeline: Pipeline, tmp_path):
    (tmp_path / "lines").mkdir()
    lines = ['{"word": "a"}', '{"word": "a"', "", "[1]", '{"word": "b"}', '{"other": 1}', "plain"]
    (tmp_path / "lines" / "0.json").write_text("\n".join(lines))
    batches = []
    pipeline = replace(pipeline, source=FileSource(str(tmp_path / "lines"), batch=1))
    pipeline.run(spark, Events(on_batch=batches.append))
    (tmp_path / "lines" / "1.json").write_text('{"word": "a"}\n{"word": "b"')
    pipeline.run(spark, Events(on_batch=batches.append))
    assert counts(pipeline.sink) == {"a": 2, "b": 1}  # type: ignore[arg-type]
    assert [metrics.malformed for metrics in batches] == [4, 1], "one of them lacks the word"
    (tmp_path / "lines" / "0.json").write_text("plain\n")
    (tmp_path / "lines" / "1.json").unlink()
    with pytest.raises(InputError, match=r"no line of .* is a JSON object; check --source and --format"):
        FileSource(str(tmp_path / "lines")).read(spark, WordCount(), {})
