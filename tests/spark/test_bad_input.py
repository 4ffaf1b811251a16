"""What cannot work is refused before anything starts, with the rule, the value and a remedy."""

from __future__ import annotations

import json
import logging
import re
from copy import copy
from dataclasses import dataclass, replace
from io import StringIO

import pandas as pd
import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.errors import PythonException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.aggregates import (
    Aggregate,
    CollectN,
    Count,
    DistinctCount,
    Groups,
    Max,
    Min,
    StateColumn,
    Sum,
    TopK,
    Types,
)
from anabranch.chain import chain
from anabranch.errors import AnabranchError, ConfigError, InputError
from anabranch.groupings import (
    Fish,
    KeyGrouping,
    OfflineGreedy,
    PartialKeyGrouping,
    ShuffleGrouping,
    TableGrouping,
    WChoices,
)
from anabranch.spark import balance, interpreter

pytestmark = pytest.mark.spark
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    schema = "key string, v int, m map<string,int>, s struct<m:map<string,int>,f:int>, a array<struct<m:map<int,int>>>"
    return spark.createDataFrame([("a", 1, {}, ({}, 1), [])], schema)


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().withColumn("key", F.col("value") % 3)


@pytest.fixture(autouse=True)
def nothing_started(spark):
    yield
    assert spark.streams.active == []


def caseless() -> Column:
    return F.collate("key", "UTF8_LCASE")


@pytest.mark.parametrize("entry", [lambda df: balance(df, "key"), chain])
@pytest.mark.parametrize(("given", "kind"), [([1, 2], "list"), (pd.DataFrame({"key": [1]}), "pandas.DataFrame")])
def test_what_is_no_dataframe(entry, given, kind):
    with pytest.raises(InputError, match=rf"df must be a DataFrame of Spark, got {kind}; make one with spark\.create"):
        entry(given)


@pytest.mark.parametrize("entry", [lambda df: balance(df, "key"), chain])
def test_a_dataframe_of_a_stopped_session(spark, df, monkeypatch, entry):
    # What SparkSession.stop() leaves behind.
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    with pytest.raises(InputError, match="the session of the DataFrame is stopped; read the data again in a session"):
        entry(df)


@pytest.mark.parametrize("entry", [lambda df: balance(df, "key"), chain])
def test_a_session_whose_workers_run_another_python(spark, df, monkeypatch, entry):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
    monkeypatch.setattr(interpreter, "missing_from", lambda *asked: "numba")
    with pytest.raises(ConfigError, match="where PYSPARK_PYTHON is not set, and it has no numba"):
        entry(df)


@pytest.mark.parametrize("name", ["applyInArrow", "applyInPandas"])
def test_functions_that_want_one_key_at_a_time_are_told_of_another(df, name):
    with pytest.raises(AttributeError, match=rf"Balanced has no {name}, because .* once per key; use .per_worker"):
        getattr(balance(df, "key", Fish(), 2), name)


@pytest.mark.parametrize("name", ["agg", "show", "writeStream", "count"])
def test_what_balance_gives_is_not_a_dataframe_yet(df, name):
    balanced = balance(df, "key", Fish(), 2)
    assert not hasattr(balanced, name)
    with pytest.raises(
        AttributeError, match=rf"Balanced has no {name}; .*\.aggregate.*\.per_worker.*\.routed"
    ) as raised:
        getattr(balanced, name)
    assert isinstance(raised.value, AnabranchError)


def test_what_balance_gives_can_be_copied_and_has_no_hidden_names(df):
    balanced = balance(df, "key", Fish(), 2)
    assert copy(balanced) == balanced
    with pytest.raises(AttributeError, match="object has no attribute '_repr_html_'"):
        _ = balanced._repr_html_


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        ("word", InputError, r"^key word is not a column; there are key, v, m, s, a$"),
        (3, ConfigError, r"^key must name columns, such as 'user' or \['user', 'country'\], got 3$"),
        (None, ConfigError, "key must name columns.*got None"),
        (["key", 3], ConfigError, "key must name columns.*got 3"),
        (["key", "word"], InputError, "key word is not a column"),
        (lambda: F.col("word"), InputError, "is not a column; there are key, v, m, s, a"),
        ("lower(key)", InputError, r"key lower\(key\) is an expression, and text.*write F\.expr\('lower\(key\)'\)"),
        ("lower(word)", InputError, r"key lower\(word\) is not a column; there are key, v, m, s, a"),
        ("m", ConfigError, "key m is a map, which Spark cannot group by; use a field of it"),
        ("s", ConfigError, r"key s\.m is a map"),
        ("a", ConfigError, r"key a\[\]\.m is a map"),
        (lambda: F.parse_json("key").alias("j"), ConfigError, "key j is a variant, which Spark cannot group by"),
        ([], ConfigError, "key must name at least one column, got none"),
        (lambda: F.upper("key").alias("v"), ConfigError, r"has the name of a column, v; give it another with \.alias"),
        (["key", "key"], ConfigError, "key columns must differ, got key, key"),
        (["key", "KEY"], ConfigError, "key columns must differ, got key, KEY"),
        (lambda: F.upper("key").alias("V"), ConfigError, r"has the name of a column, v; give it another with \.alias"),
        (
            lambda: F.expr("INTERVAL '1-2' YEAR TO MONTH").alias("i"),
            ConfigError,
            "key i is an interval year to month, which Spark cannot hand to Python; cast it to string",
        ),
        (lambda: F.array(F.make_interval(F.lit(1))).alias("i"), ConfigError, r"key i\[\] is an interval, which Spark"),
        (lambda: caseless().alias("c"), ConfigError, "key c has the collation UTF8_LCASE.*cast it to STRING COLLATE"),
        (lambda: F.struct(caseless().alias("f")).alias("c"), ConfigError, r"key c\.f has the collation UTF8_LCASE"),
        (lambda: F.array(caseless()).alias("c"), ConfigError, r"key c\[\] has the collation UTF8_LCASE"),
    ],
)
def test_keys_that_cannot_be_grouped_by(df, key, error, message):
    # A Column can be made only where there is a session.
    key = key() if callable(key) else key
    with pytest.raises(error, match=message):
        balance(df, key, PartialKeyGrouping(), 2)


@pytest.mark.parametrize("key", ["word", "lower(word)"])
def test_a_name_that_is_not_there_is_not_a_page_in_the_log(df, key):
    pages = logging.StreamHandler(StringIO())
    logs = list(map(PySparkLogger.getLogger, ("DataFrameQueryContextLogger", "SQLQueryContextLogger")))
    for log in logs:
        log.addHandler(pages)
    try:
        with pytest.raises(InputError):
            balance(df, key)
    finally:
        for log in logs:
            log.removeHandler(pages)
    assert pages.stream.getvalue() == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_workers": 0}, "n_workers must be a whole number, at least 1, got 0"),
        ({"n_workers": "8"}, "n_workers must be a whole number, at least 1, got '8'"),
        ({"grouping": Fish}, r"grouping must be one such as groupings.Fish\(\) or its name, got <class"),
        ({"grouping": "trout"}, "trout"),
        ({"edge": "bridge"}, "edge must be one of adaptive, planned, local, got 'bridge'"),
        ({"regime": "nomad"}, "regime must be one of batch, resident, got 'nomad'"),
        ({"flush_every": 0}, "flush_every must be at least 1 batch, got 0"),
        ({"flush_every": 2}, 'flush_every is for regime="resident"; the batch regime flushes every batch'),
        ({"edge": "adaptive", "row_id": "key"}, "row_id is for the planned edge; the adaptive edge repeats itself"),
        ({"seed": 2**63}, "seed must fit 64 bits with a sign, as Spark's numbers do, got 9223372036854775808"),
        ({"seed": -(2**63) - 1}, "seed must fit 64 bits with a sign"),
        (
            {"edge": "planned"},
            'partial-key chooses tuple by tuple and cannot be written as a table.*use edge="adaptive"',
        ),
        ({"regime": "resident"}, "a batch DataFrame has none"),
        ({"regime": "resident", "edge": "local"}, "the local edge has no workers for states to live on"),
        (
            {"edge": "adaptive", "grouping": OfflineGreedy()},
            'needs all counts beforehand; use edge="planned"',
        ),
    ],
    ids=str,
)
def test_settings_outside_their_rules(df, given, message):
    given = {"grouping": PartialKeyGrouping(), "n_workers": 2} | given
    with pytest.raises(ConfigError, match=message):
        balance(df, "key", **given)


def test_emulated_work_takes_time(df):
    with pytest.raises(ConfigError, match="work_us must not be negative, got -1"):
        replace(balance(df, "key", Fish(), 2).settings, work_us=-1.0)


@pytest.mark.parametrize("seed", [-(2**63), -7, 2**63 - 1])
def test_seeds_of_64_bits(df, seed):
    found = balance(df, "key", WChoices(), 2, edge="planned", seed=seed).aggregate(n=Count())
    assert [tuple(row) for row in found.collect()] == [("a", 1)]


def test_rows_cannot_be_dealt_out_by_a_column_that_is_not_there(df):
    with pytest.raises(InputError, match="row_id names column offset, which is not there; there are key"):
        balance(df, "key", WChoices(), 2, edge="planned", row_id=["key", "offset"])


def test_a_planned_stream_without_a_ledger_would_be_key_grouping_in_disguise(stream):
    with pytest.raises(ConfigError, match=r"needs a ledger to learn from.*key grouping in disguise; pass ledger"):
        balance(stream, "key", WChoices(), 2, edge="planned")
    for honest in (KeyGrouping(), ShuffleGrouping(), TableGrouping()):
        balance(stream, "key", honest, 2, edge="planned")


def test_a_stream_has_no_counts_beforehand(stream, tmp_path):
    with pytest.raises(ConfigError, match="needs all counts beforehand, which a stream does not have"):
        balance(stream, "key", OfflineGreedy(), 2, edge="planned", ledger=str(tmp_path / "ledger"))
    assert not (tmp_path / "ledger").exists()


def test_a_ledger_that_cannot_be_written(df, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"file cannot be written.*name a folder that tasks can write"):
        balance(df, "key", Fish(), 2, ledger=str(tmp_path / "file"))


def test_a_ledger_of_another_query(df, tmp_path):
    ledger = str(tmp_path / "ledger")
    balance(df, "key", Fish(), 2, ledger=ledger)
    with pytest.raises(ConfigError, match="belongs to a query with grouping 'fish', this one has 'partial-key'"):
        balance(df, "key", PartialKeyGrouping(), 2, ledger=ledger)
    with pytest.raises(ConfigError, match="belongs to a query with n_workers 2, this one has 3; keep the old settings"):
        balance(df, "key", Fish(), 3, ledger=ledger)


@pytest.mark.parametrize("name", ["enabled", "enableFullRetryOnMismatch"])
def test_checksums_must_be_on(spark, df, name):
    name = f"spark.sql.shuffle.orderIndependentChecksum.{name}"
    try:
        spark.conf.set(name, "false")
        with pytest.raises(ConfigError, match=f'{name} must be true.*spark.conf.set\\("{name}", "true"\\)'):
            balance(df, "key", Fish(), 2)
    finally:
        # Not unset: before Spark 4.2 the default is false.
        spark.conf.set(name, "true")
    balance(df, "key", Fish(), 2)


@pytest.mark.parametrize(("version", "admitted"), [("3.5.6", False), ("4.0.1", False), ("4.1.0", True)])
def test_spark_must_be_new_enough(spark, df, monkeypatch, version, admitted):
    monkeypatch.setattr(type(spark), "version", property(lambda self: version))
    if admitted:
        balance(df, "key", Fish(), 2)
        return
    with pytest.raises(ConfigError, match=f"Spark must be 4.1 or newer, got {version}; repartitionById is missing"):
        balance(df, "key", Fish(), 2)


def test_states_on_slots_need_rocksdb(spark, stream):
    assert "HDFSBacked" in str(spark.conf.get(PROVIDER))
    message = f'{PROVIDER} must be RocksDB.*spark.conf.set\\("{PROVIDER}"'
    with pytest.raises(ConfigError, match=message):
        balance(stream, "key", Fish(), 2, regime="resident").aggregate(n=Count())
    with pytest.raises(ConfigError, match=message):
        balance(stream, "key", Fish(), 2).aggregate(few=CollectN("value", 2))


def test_aggregates_that_cannot_be_computed(df):
    balanced = balance(df, "key", Fish(), 2)
    with pytest.raises(ConfigError, match=r"needs at least one aggregate, such as count=Count\(\)"):
        balanced.aggregate()
    with pytest.raises(InputError, match="total reads column price, which is not there; there are key, v, m, s, a"):
        balanced.aggregate(total=Sum("price"))
    with pytest.raises(
        ConfigError, match="key is a key column, and to Spark key is the same; give the aggregate another"
    ):
        balanced.aggregate(key=Count())
    with pytest.raises(ConfigError, match=r"n must be an aggregate such as aggregates\.Count\(\), got 'sum'"):
        balanced.aggregate(n="sum")
    with pytest.raises(ConfigError, match=r"n must be an aggregate.*got <class"):
        balanced.aggregate(n=Count)
    with pytest.raises(ConfigError, match="Sum needs a column of numbers, 'key' is string; cast it first"):
        balanced.aggregate(n=Sum("key"))


@pytest.mark.parametrize("one", [Min("c"), Max("c"), TopK("c", 2), CollectN("c", 2), DistinctCount("c")], ids=repr)
def test_strings_that_spark_does_not_compare_by_their_bytes(df, one):
    balanced = balance(df.withColumn("c", caseless()), "v", Fish(), 2)
    with pytest.raises(ConfigError, match=r"column c of found has the collation UTF8_LCASE.*cast it to STRING"):
        balanced.aggregate(found=one)


def test_strings_that_are_only_counted_may_have_any_collation(df):
    found = balance(df.withColumn("c", caseless()), "v", Fish(), 2).aggregate(n=Count("c"))
    assert [tuple(row) for row in found.collect()] == [(1, 1)]


def test_an_aggregate_without_a_name(df):
    with pytest.raises(ConfigError, match=r"an aggregate needs a name for its column, such as n=Count\("):
        balance(df, "key", Fish(), 2).aggregate(Count())


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        (lambda: F.sum("v"), 'sum_v=aggregates.Sum("v")'),
        (lambda: F.avg("v").alias("mean"), 'mean=aggregates.Mean("v")'),
        (lambda: F.count("*"), "n=aggregates.Count()"),
        (lambda: F.max(F.col("v") + 1), "n=aggregates.Count()"),
        (lambda: "sum", "n=aggregates.Count()"),
    ],
)
def test_an_aggregate_of_spark(df, given, instead):
    given, (name, _, ours) = given(), instead.partition("=")
    balanced = balance(df, "key", Fish(), 2)
    message = f"aggregate takes aggregates of anabranch with a name each, such as {re.escape(instead)}, got "
    with pytest.raises(ConfigError, match=message):
        balanced.aggregate(given)
    with pytest.raises(ConfigError, match=f"{name} must be an aggregate such as {re.escape(ours)}, got "):
        balanced.aggregate(**{name: given})


@dataclass(frozen=True)
class Longest(Aggregate):
    """Lengths of JSON lists: an aggregate of a user's own, which knows no nulls."""

    wrong: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("text",)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("n", pa.int64(), "max"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        lengths = pa.array([len(json.loads(text)) for text in columns[0].to_pylist()], pa.int64())
        return (lengths if self.wrong else groups.max(lengths),)

    def result_type(self, types: Types) -> pa.DataType:
        return pa.int64()


def test_an_aggregate_of_ones_own_gets_real_rows_only_and_is_named_where_it_is_wrong(spark):
    texts = spark.createDataFrame([("a", "[1, 2]"), ("a", "[1]")], "key string, text string").coalesce(1)
    balanced = balance(texts, "key", KeyGrouping(), 2)
    assert [tuple(row) for row in balanced.aggregate(most=Longest()).collect()] == [("a", 2)]
    message = r"InputError: aggregate most \(Longest of text\): add must return n with one entry per group, 1 here,"
    with pytest.raises(PythonException, match=message):
        balanced.aggregate(most=Longest(wrong=True)).collect()


def test_names_that_differ_only_in_case_are_one_name_to_spark(df):
    balanced = balance(df, "key", Fish(), 2)
    with pytest.raises(ConfigError, match="n is an aggregate, and to Spark N is the same; give the aggregate another"):
        balanced.aggregate(n=Count(), N=Count())
    with pytest.raises(ConfigError, match="key is a key column, and to Spark KEY is the same"):
        balanced.aggregate(KEY=Count())


def test_names_that_differ_only_in_case_are_two_where_the_session_says_so(spark, df):
    try:
        spark.conf.set("spark.sql.caseSensitive", "true")
        balanced = balance(df, [F.upper("key").alias("V"), "key"], Fish(), 2)
        found = balanced.aggregate(KEY=Max("v"), n=Count(), N=Max("V"))
        assert [(found.columns, *map(tuple, found.collect()))] == [
            (["V", "key", "KEY", "n", "N"], ("A", "a", 1, 1, "A"))
        ]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_key_may_be_named_in_another_case(df):
    found = balance(df, "KEY", Fish(), 2).aggregate(n=Count())
    assert (found.columns, *map(tuple, found.collect())) == (["KEY", "n"], ("a", 1))


def test_a_key_named_like_a_state_is_told_apart(spark):
    df = spark.createDataFrame([("a", 1), ("a", 2)], "n__count string, v int")
    found = balance(df, "n__count", Fish(), 2).aggregate(n=Count())
    assert [tuple(row) for row in found.collect()] == [("a", 2)]


def same(table: pa.Table) -> pa.Table:
    return table


def test_functions_that_cannot_be_merged(df, stream):
    balanced = balance(df, "key", Fish(), 2)
    with pytest.raises(ConfigError, match=r"must see every key whole.*merge=.*or pass whole_keys=True"):
        balanced.per_worker(same, "key string, v int")
    with pytest.raises(ConfigError, match="merge is for split keys, whole_keys=True for whole ones; pass one of them"):
        balanced.per_worker(same, "key string, v int", {"v": "sum"}, whole_keys=True)
    with pytest.raises(ConfigError, match="schema must hold the key columns; key is missing"):
        balanced.per_worker(same, "v int", {"v": "sum"})
    with pytest.raises(ConfigError, match="merge must name a function for each of v, got w"):
        balanced.per_worker(same, "key string, v int", {"w": "sum"})
    with pytest.raises(ConfigError, match="merge must name a function for each of v, got nothing"):
        balanced.per_worker(same, "key string, v int", {})
    for function in ("avg", "count", "median", "add_up"):
        with pytest.raises(
            ConfigError, match=f"merge of v: {function} of the parts of a split key is not {function} of"
        ):
            balanced.per_worker(same, "key string, v int", {"v": function})
    with pytest.raises(ConfigError, match="schema must be that of a table, got 'int'"):
        balance(df, "key", n_workers=2).per_worker(same, "int", whole_keys=True)
    with pytest.raises(ConfigError, match=r"placed by what the first batch teaches; pass ledger=…"):
        balance(stream, "key", n_workers=2).per_worker(same, "key bigint", whole_keys=True)
    with pytest.raises(ConfigError, match="keeps no states, so there are none to stay resident; use the batch regime"):
        balance(stream, "key", Fish(), 2, regime="resident").per_worker(same, "key bigint", {})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("key string, most int", "the function same must return the columns key, most, each once, got key, v, m, s, a"),
        (
            "key string, v string",
            "the function same must return v as string, got int32; cast the column or change the schema",
        ),
    ],
)
def test_a_function_that_returns_something_else_than_it_said(df, schema, message):
    """Text would be merged as text: the largest of 9 and 10 is 9."""
    name = schema.split()[2]
    found = balance(df, "key", Fish(), 2, edge="adaptive").per_worker(same, schema, {name: "max"})
    with pytest.raises(PythonException, match=message):
        found.collect()


def test_names_that_spark_cannot_hand_to_python(spark):
    df = spark.createDataFrame([("a", 1)], "`k.k` string, `v``s` int")
    with pytest.raises(ConfigError, match=r"column k\.k has a dot or a backtick in its name; rename it first"):
        balance(df, "k.k", Fish(), 2).per_worker(same, "key string", {})
    with pytest.raises(ConfigError, match="column v`s has a dot or a backtick"):
        balance(df.withColumnRenamed("k.k", "key"), "key", Fish(), 2).per_worker(same, "key string", {})


def test_rows_that_cannot_be_routed(spark, df):
    with pytest.raises(ConfigError, match="the local edge sends rows nowhere; use the adaptive or the planned edge"):
        balance(df, "key", Fish(), 2, edge="local").routed()
    with pytest.raises(ConfigError, match="has a column named worker already; rename it first"):
        balance(df.withColumn("worker", F.lit(1)), "key", Fish(), 2).routed()
    with pytest.raises(ConfigError, match="has a column named worker already; rename it first"):
        balance(df.withColumn("Worker", F.lit(1)), "key", Fish(), 2).routed()
