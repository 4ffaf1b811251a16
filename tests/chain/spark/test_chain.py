"""Operators in a row: the answers are those of plain `groupBy`s, wherever tables send keys and whenever they change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from anabranch.aggregates import Count, DistinctCount, Sum, TopK
from anabranch.chain import Manager, Pairs, Reconfiguration, answers_of, chain, place
from anabranch.chain.spark.hop_report import hop_reports
from anabranch.chain.spark.metrics import chain_metrics
from anabranch.chain.spark.tables import tables_of
from anabranch.errors import ConfigError, InputError
from anabranch.hashing import hash_keys
from anabranch.spark import Ledger
from anabranch.spark.spark_session import ROCKSDB

from ...spark.running import Rows, Run, rows_of, run, stream_of, write_files
from ...spark.summaries import FEW, NATIVE, OPAQUE, aggregates_of, assert_plain, plain, trades

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("rocksdb")]

ALL = (*NATIVE, *OPAQUE)
SOME = tuple(case for case in ALL if case.name in ("n", "sum_q", "sum_x", "mean_d", "few", "tags", "top"))


def last(done: Run, operator: str, n_keys: int = 1) -> Rows:
    """The last row of each key of an operator."""
    rows: Rows = {}
    for table in done.tables:
        own = table.filter(pc.equal(table["operator"], operator))[operator].combine_chunks()
        if len(own):
            rows |= rows_of(pa.Table.from_arrays(own.flatten(), [field.name for field in own.type]), n_keys)
    return rows


def posts(seed: int, rows: int = 3000, shift: int = 0) -> pa.Table:
    """Regions and tags of which most belong to one region; a shift makes them belong to another."""
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 12, rows)
    tag = np.where(rng.random(rows) < 0.9, region * 5 + rng.integers(0, 5, rows), rng.integers(0, 60, rows))
    return pa.table(
        {
            "region": pa.array([None if i == 11 else f"region {i}" for i in region]),
            "tag": (tag + shift * 25) % 60,
            "likes": rng.random(rows) * 10.0 ** rng.integers(-5, 6, rows),
            "author": rng.integers(0, 100, rows),
        }
    )


def test_every_operator_of_a_batch_dataframe_gives_the_plain_answer(spark, tmp_path):
    df = spark.createDataFrame(trades(5, 400)).repartition(3)
    found = chain(df, 3).then("key", **aggregates_of(ALL)).then(["s", "flag"], **aggregates_of(SOME)).answers()
    assert found.columns == ["operator", "key", "s_flag"]
    assert_plain(answers_of(found, "key"), df, ["key"], ALL)
    assert_plain(answers_of(found, "s_flag"), df, ["s", "flag"], SOME)


def test_every_operator_of_a_stream_gives_the_plain_answer(spark, tmp_path):
    """Every aggregate, keys of several types, a batch without rows; states are merged in the last batch."""
    folder = write_files(tmp_path / "files", [trades(1, 300), trades(3, 0), trades(2, 200)])
    begun = chain(stream_of(spark, folder), 3, flush_every=3)
    answers = begun.then(["odd", "day"], **aggregates_of(FEW)).then("key", **aggregates_of(ALL)).answers()
    done = run(answers, tmp_path / "checkpoint")
    assert [table.num_rows > 0 for table in done.tables] == [False, False, True]
    df = spark.read.parquet(str(folder))
    assert last(done, "odd_day", 2) == rows_of(chain_answer(df, ["odd", "day"], FEW), 2)
    assert last(done, "key").keys() == rows_of(plain(df, ["key"], ALL).toArrow(), 1).keys()
    batch = chain(df, 2).then(["odd", "day"], n=Count()).then("key", **aggregates_of(ALL)).answers()
    assert last(done, "key") == rows_of(answers_of(batch, "key").toArrow(), 1)


def chain_answer(df, keys, cases) -> pa.Table:
    """The answer of a chain on a batch DataFrame, which another test holds to Spark's: doubles have other last bits."""
    return answers_of(
        chain(df, 2).then(keys, **aggregates_of(cases)).then("key", n=Count()).answers(), "_".join(keys)
    ).toArrow()


def words_of(tuples: pa.Table) -> pa.Table:
    """A stateless step that makes several tuples, or none, of one."""
    times = tuples["author"].combine_chunks().to_numpy() % 3
    rows = tuples.take(pa.array(np.repeat(np.arange(len(times)), times)))
    return rows.append_column("word", pc.binary_join_element_wise("w", pc.cast(rows["tag"], pa.string()), "-"))


def test_three_operators_and_a_stateless_step_between(spark, tmp_path):
    folder = write_files(tmp_path / "files", [posts(1, 400), posts(2, 400)])
    answers = (
        chain(stream_of(spark, folder), 2, ledger=str(tmp_path / "ledger"))
        .then("region", posts=Count(), authors=DistinctCount("author"))
        .map(words_of, "region string, author long, word string, likes double")
        .then("word", "words", likes=Sum("likes"), regions=TopK("region", 100))
        .then("author", words=Count())
        .answers()
    )
    done = run(answers, tmp_path / "checkpoint")
    df = spark.read.parquet(str(folder))
    assert last(done, "region") == rows_of(
        df.groupBy("region").agg(F.count("*"), F.expr("hll_sketch_estimate(hll_sketch_agg(author, 12))")).toArrow(), 1
    )
    each = df.select("*", F.explode(F.expr("filter(array(1, 2), i -> i <= author % 3)")))
    assert last(done, "author") == rows_of(each.groupBy("author").agg(F.count("*")).toArrow(), 1)
    words = each.groupBy(F.concat(F.lit("w-"), F.col("tag").cast("string"))).agg(F.countDistinct("region"))
    assert {key: len(row[1]) - 1 for key, row in last(done, "words").items()} != {}
    assert last(done, "words").keys() == rows_of(words.toArrow(), 1).keys()
    reports = hop_reports(Ledger(str(tmp_path / "ledger")), done.query, 1)
    assert [(report.operator, report.worker) for report in reports] == [(i, w) for i in range(3) for w in range(2)]
    # What one operator sends, the next gets.
    for number in (1, 2):
        sent = sum(report.sent for report in reports if report.operator == number - 1)
        assert sent.tolist() == [report.tuples for report in reports if report.operator == number]


RECONFIGURATION = Reconfiguration(every=2, n_servers=3)


@pytest.fixture(scope="module")
def moving(spark, tmp_path_factory) -> tuple[Run, Path, Path]:
    """A stream whose correlations change once, and tables that follow; states are merged every third batch."""
    folder = tmp_path_factory.mktemp("moving")
    files = write_files(folder / "files", [posts(i, shift=int(i >= 2)) for i in range(6)])
    # A fixture of a module cannot use that of a test.
    provider = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(provider)
    spark.conf.set(provider, ROCKSDB)
    begun = chain(
        stream_of(spark, files), 3, ledger=str(folder / "ledger"), flush_every=3, reconfiguration=RECONFIGURATION
    )
    answers = begun.then("region", posts=Count(), likes=Sum("likes")).then("tag", posts=Count(), likes=Sum("likes"))
    done = run(answers.answers(), folder / "checkpoint")
    spark.conf.set(provider, str(before))
    return done, files, folder / "ledger"


def test_tables_change_while_a_stream_runs_and_no_answer_does(spark, moving):
    done, files, _ = moving
    df = spark.read.parquet(str(files))
    for key in ("region", "tag"):
        wanted = chain(df, 2).then("region", posts=Count(), likes=Sum("likes"))
        wanted = wanted.then("tag", posts=Count(), likes=Sum("likes")).answers()
        assert last(done, key) == rows_of(answers_of(wanted, key).toArrow(), 1)
        counts = rows_of(df.groupBy(key).agg(F.count("*").alias("posts")).toArrow(), 1)
        assert {one: row[:1] for one, row in last(done, key).items()} == counts


def test_locality_grows_with_new_tables_and_moved_states_are_flushed(moving):
    done, _, folder = moving
    ledger = Ledger(str(folder))
    metrics = [chain_metrics(str(folder), progress) for progress in done.progress]
    metrics = [one for one in metrics if one is not None and one.tuples]
    assert [tables_of(ledger, done.query, batch).version for batch in range(6)] == [-1, -1, 2, 2, 4, 4]
    assert all(one.tuples == 3000 and len(one.worker_tuples) == 6 for one in metrics)
    assert all(metrics[batch].locality < 0.55 for batch in (0, 1, 2, 3))
    assert all(metrics[batch].locality > 0.8 for batch in (4, 5))
    assert metrics[4].promised == pytest.approx(metrics[5].locality, abs=0.05)
    assert metrics[2].promised > 0.8
    # States of a key that moves are flushed in the batch in which the tables take effect, unless all are anyway.
    assert [one.moved > 0 for one in metrics] == [False, False, False, False, True, False]
    assert metrics[4].moved == done.tables[4].num_rows
    assert [done.tables[batch].num_rows for batch in (0, 1, 2, 3, 5)] == [0, 0, 12 + 60, 0, 12 + 60]


def with_hot_tag(table: pa.Table) -> pa.Table:
    """Every second post has the same tag."""
    tags = pc.if_else(pa.array(np.arange(table.num_rows) % 2 == 0), 7, table["tag"])
    return table.set_column(1, "tag", tags)


def test_a_placement_made_beforehand_is_in_force_from_the_start_and_may_split_hot_keys(spark, tmp_path):
    folder = write_files(tmp_path / "files", [with_hot_tag(posts(1))])
    sample = with_hot_tag(posts(2))
    pairs = Pairs.exact(hash_keys(sample["region"]), hash_keys(sample["tag"]))
    placement = place(pairs, 3, method="greedy", split=True)
    # There are 60 tags: each has more than a hundredth of a server's share.
    assert placement.tables[1].split_keys.tolist() == sorted(np.unique(pairs.second).tolist())
    begun = chain(
        stream_of(spark, folder),
        3,
        ledger=str(tmp_path / "ledger"),
        placement=placement,
        reconfiguration=Reconfiguration(n_servers=3),
    )
    done = run(begun.then("region", n=Count()).then("tag", n=Count()).answers(), tmp_path / "checkpoint")
    metrics = chain_metrics(str(tmp_path / "ledger"), done.progress[0])
    assert metrics.locality == 1.0 == placement.locality[0]
    # Of 3000 tuples of the second operator 1500 have one key.
    assert max(metrics.worker_tuples[3:]) < 1100
    wanted = spark.read.parquet(str(folder)).groupBy("tag").count()
    assert last(done, "tag") == rows_of(wanted.toArrow(), 1)


def test_hot_keys_are_split_while_a_stream_runs_and_stay_on_their_hosts(spark, tmp_path):
    """Six workers on three hosts: from the third batch on every tag is with all of them, and no tuple leaves a host."""
    folder = write_files(tmp_path / "files", [with_hot_tag(posts(i)) for i in range(4)])
    manager = Manager(1, method="greedy", split=True)
    begun = chain(
        stream_of(spark, folder),
        6,
        ledger=str(tmp_path / "ledger"),
        flush_every=4,
        reconfiguration=Reconfiguration(every=2, n_servers=3, manager=manager),
    )
    done = run(begun.then("region", n=Count()).then("tag", n=Count()).answers(), tmp_path / "checkpoint")
    metrics = [chain_metrics(str(tmp_path / "ledger"), progress) for progress in done.progress]
    assert [one.locality for one in metrics if one is not None and one.tuples][2:] == [1.0] * 2
    assert metrics[0].locality < 0.5 and max(metrics[0].worker_tuples[6:]) > 1500
    of_hosts = np.reshape(metrics[2].worker_tuples[6:], (2, 3)).sum(axis=0)
    assert max(of_hosts) < 1100
    df = spark.read.parquet(str(folder))
    for key in ("region", "tag"):
        assert last(done, key) == rows_of(df.groupBy(key).count().toArrow(), 1)


def test_what_cannot_be_a_chain_is_refused(spark, tmp_path):
    df = spark.createDataFrame(posts(1, 10))
    begun = chain(df, 2).then("region", n=Count())
    two = begun.then("tag", n=Count())
    for build, error, message in [
        (lambda: begun.answers(), ConfigError, "at least two operators, got 1"),
        (lambda: begun.then("region", n=Count()), ConfigError, "operator region has a name that is taken"),
        (lambda: begun.then("tag", "operator", n=Count()), ConfigError, "operator operator has a name that is taken"),
        (lambda: begun.then("nope", n=Count()), InputError, "key nope is not a column; there are region, tag"),
        (lambda: begun.then((), n=Count()), ConfigError, "key must name at least one column"),
        (lambda: begun.then(3, n=Count()), ConfigError, "key must name columns, .* got 3"),
        (lambda: begun.then(df.tag, n=Count()), ConfigError, "must be text that names a column; make it a column"),
        (lambda: begun.then("tag", n=Sum("nope")), InputError, "n reads column nope"),
        (lambda: begun.then("tag"), ConfigError, "at least one aggregate"),
        (lambda: begun.map(words_of, "word string"), ConfigError, "region is missing"),
        (lambda: chain(df, 2).map(words_of, "word string"), ConfigError, "map comes after an operator"),
        (lambda: two.map(words_of, df.schema).answers(), ConfigError, "a map must come before an operator"),
        (lambda: begun.map(words_of, df.schema).answers(), ConfigError, "a map must come before an operator"),
        (lambda: answers_of(two.answers(), "nope"), ConfigError, "one that has answers, region, tag, got 'nope'"),
        (lambda: chain(df, 2, reconfiguration=Reconfiguration()), ConfigError, "reconfiguration needs a ledger"),
        (lambda: chain(df, 0), ConfigError, "n_workers must be at least 1"),
        (lambda: chain(df, 2, flush_every=0), ConfigError, "flush_every must be at least 1"),
        (lambda: Reconfiguration(every=0), ConfigError, "every must be at least 1"),
    ]:
        with pytest.raises(error, match=message):
            build()
    small = place(Pairs.exact(*np.ones((2, 3), np.uint64)), 3, method="greedy")
    with pytest.raises(ConfigError, match="placement must be for 2 operators on 2 workers, got one for 2 on 3"):
        chain(df, 2, placement=small).then("region", n=Count()).then("tag", n=Count()).answers()
    split = place(Pairs.exact(hash_keys([1] * 4), hash_keys([1] * 4)), 2, method="greedy", split=True)
    with pytest.raises(ConfigError, match="placement must not split keys of the stateful step 0"):
        replace(begun.settings, steps=(0,), placement=split)
