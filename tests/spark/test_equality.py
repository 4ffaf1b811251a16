"""Whatever the grouping, the edge and the regime: the answer is a plain `groupBy`'s, the same bits in every run."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch import aggregates, groupings
from anabranch.groupings import Fish, Grouping, KeyGrouping, PartialKeyGrouping, ShuffleGrouping, WChoices
from anabranch.spark import balance

from .running import Rows, rows_of, run, stream_of, write_files
from .summaries import FEW, NATIVE, OPAQUE, aggregates_of, assert_plain, assert_rows, plain, trades

pytestmark = pytest.mark.spark

ALL = (*NATIVE, *OPAQUE)
GROUPINGS = [groupings.named(name)() for name in groupings.names()]
ON_EDGES = [
    *((one, "adaptive") for one in GROUPINGS if not one.needs_counts),
    *((one, "planned") for one in GROUPINGS if one.has_table()),
    (KeyGrouping(), "local"),
]
ON_STREAMS = [(one, edge) for one, edge in ON_EDGES if not one.needs_counts]


def named(value: object) -> str:
    return value.name if isinstance(value, Grouping) else str(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Four files, one of them without rows."""
    tables = [trades(1, 300), trades(2, 200), trades(3, 0), trades(4, 250)]
    return write_files(tmp_path_factory.mktemp("equality") / "files", tables)


@pytest.fixture(scope="module")
def df(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder))


@pytest.fixture(scope="module")
def answer(spark: SparkSession, df: DataFrame) -> Rows:
    """The answer to all cases, once found equal to plain Spark's."""
    found = balance(df, "key", PartialKeyGrouping(), 4).aggregate(**aggregates_of(ALL))
    return assert_plain(found, df, ["key"], ALL)


def only(rows: Rows, cases) -> Rows:
    """The columns of some cases."""
    at = [ALL.index(case) for case in cases]
    return {key: tuple(row[i] for i in at) for key, row in rows.items()}


def test_every_aggregate_has_a_case():
    assert {type(case.aggregate) for case in ALL} == set(aggregates.ALL)


@pytest.mark.parametrize(("grouping", "edge"), ON_EDGES, ids=named)
def test_a_batch_dataframe_has_the_same_bits_on_every_edge(df, answer, grouping, edge):
    found = balance(df, "key", grouping, 3, edge=edge).aggregate(**aggregates_of(FEW))
    assert rows_of(found.toArrow(), 1) == only(answer, FEW)


@pytest.mark.parametrize("edge", ["planned", "local"])
def test_every_aggregate_has_the_same_bits_on_the_other_edges(df, answer, edge):
    found = balance(df, "key", WChoices(), 5, edge=edge).aggregate(**aggregates_of(ALL))
    assert rows_of(found.toArrow(), 1) == answer


@pytest.mark.parametrize(("grouping", "edge"), ON_STREAMS, ids=named)
def test_a_stream_with_a_ledger_has_the_same_bits(spark, folder, answer, tmp_path, grouping, edge):
    stream = stream_of(spark, folder, files=2)
    balanced = balance(stream, "key", grouping, 3, edge=edge, ledger=str(tmp_path / "ledger"))
    done = run(balanced.aggregate(**aggregates_of(FEW)), tmp_path / "checkpoint")
    assert len(done.tables) == 2
    assert done.last(1) == only(answer, FEW)


@pytest.mark.parametrize(
    ("grouping", "edge"),
    [(Fish(), "adaptive"), (ShuffleGrouping(), "planned"), (KeyGrouping(), "local")],
    ids=named,
)
def test_a_stream_without_a_ledger_has_the_same_bits(spark, folder, answer, tmp_path, grouping, edge):
    balanced = balance(stream_of(spark, folder), "key", grouping, 5, edge=edge)
    done = run(balanced.aggregate(**aggregates_of(NATIVE)), tmp_path / "checkpoint")
    assert done.last(1) == only(answer, NATIVE)


@pytest.mark.parametrize(("grouping", "edge"), [(one, edge) for one, edge in ON_STREAMS if edge != "local"], ids=named)
def test_states_that_stay_on_workers_have_the_same_bits(spark, rocksdb, folder, answer, tmp_path, grouping, edge):
    stream = stream_of(spark, folder, files=2)
    ledger = str(tmp_path / "ledger")
    balanced = balance(stream, "key", grouping, 3, edge=edge, ledger=ledger, regime="resident", flush_every=2)
    done = run(balanced.aggregate(**aggregates_of(FEW)), tmp_path / "checkpoint")
    # Spark ends with a batch without rows, in which nothing is left to hand on.
    assert [table.num_rows for table in done.tables] == [0, len(answer), 0]
    assert done.last(1) == only(answer, FEW)


@pytest.mark.parametrize(("regime", "flush_every"), [("batch", 1), ("resident", 2)])
def test_aggregates_that_only_python_merges_have_the_same_bits_on_a_stream(
    spark, rocksdb, folder, answer, tmp_path, regime, flush_every
):
    """Four micro-batches, so that what was handed on at the first flush must not come again at the second."""
    balanced = balance(stream_of(spark, folder), "key", WChoices(), 3, regime=regime, flush_every=flush_every)
    done = run(balanced.aggregate(**aggregates_of(ALL)), tmp_path / "checkpoint")
    rows = [table.num_rows > 0 for table in done.tables]
    assert rows == {"batch": [True, True, False, True], "resident": [False, True, False, True, False]}[regime]
    assert done.last(1) == answer


def test_complete_mode_gives_all_keys_in_every_batch(spark, folder, answer, tmp_path):
    balanced = balance(stream_of(spark, folder), "key", PartialKeyGrouping(), 3)
    done = run(balanced.aggregate(**aggregates_of(FEW)), tmp_path / "checkpoint", "complete")
    assert rows_of(done.tables[-1], 1) == only(answer, FEW)


@pytest.mark.parametrize("edge", ["adaptive", "planned"])
@pytest.mark.parametrize(
    "keys", [["same"] * 300, list(range(300)), [None] * 50, []], ids=["one key", "all keys differ", "null", "no rows"]
)
def test_streams_at_the_extremes(spark, keys, edge):
    kind = pa.string() if "same" in keys else pa.int64()
    table = pa.table({"key": pa.array(keys, kind), "x": pa.array([0.1] * len(keys), pa.float64())})
    table = table.append_column("q", pa.array(range(len(keys)), pa.int32()))
    cases = [case for case in FEW if case.name != "high_odd"]
    df = spark.createDataFrame(table).repartition(3)
    found = balance(df, "key", WChoices(), 4, edge=edge).aggregate(**aggregates_of(cases))
    assert_plain(found, df, ["key"], cases)


START = dt.datetime(2026, 1, 1)
KEYS = {
    "int": pa.array([1, -7, None, 2**31 - 1], pa.int32()),
    "bigint": pa.array([1, -(2**63), None, 2**63 - 1], pa.int64()),
    "tinyint": pa.array([1, -128, None, 127], pa.int8()),
    "string": pa.array(["", "नेपाल", None, "a" * 100], pa.string()),
    "double": pa.array([0.5, float("nan"), None, float("inf")], pa.float64()),
    "float": pa.array([0.5, float("nan"), None, -1.25], pa.float32()),
    "date": pa.array([START.date(), dt.date(1950, 1, 1), None, dt.date(2100, 1, 1)], pa.date32()),
    "timestamp": pa.array([START, START + dt.timedelta(microseconds=1), None, START], pa.timestamp("us", "UTC")),
    "wall": pa.array([START, START + dt.timedelta(microseconds=1), None, START], pa.timestamp("us")),
    "decimal": pa.array([Decimal("1.50"), Decimal("-0.01"), None, Decimal("9.99")], pa.decimal128(10, 2)),
    "wide": pa.array([Decimal(10**29), Decimal("-0.01"), None, Decimal("9.99")], pa.decimal128(38, 2)),
    "binary": pa.array([b"", b"\x00\xff", None, b"ab"], pa.binary()),
    "boolean": pa.array([True, False, None, True], pa.bool_()),
    "array": pa.array([[1, None], [], None, [1]], pa.list_(pa.int64())),
    "struct": pa.array(
        [{"a": 1, "b": "x"}, {"a": None, "b": None}, None, {"a": 1, "b": None}],
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
    ),
}


def typed(n: int) -> pa.Table:
    """A column of each type, whose four values come with different frequencies."""
    at = pa.array([min(i % 10, 3) for i in range(n)])
    columns = {name: values.take(at) for name, values in KEYS.items()}
    return pa.table({**columns, "x": [0.1 * i for i in range(n)], "q": pa.array(range(n), pa.int32())})


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_every_type(spark, key):
    cases = [case for case in ALL if case.name in ("n", "sum_q", "few")]
    df = spark.createDataFrame(typed(60)).repartition(2)
    found = balance(df, key, PartialKeyGrouping(), 3).aggregate(**aggregates_of(cases))
    assert len(assert_plain(found, df, [key], cases)) == len(set(map(repr, KEYS[key].to_pylist())))


@pytest.mark.parametrize("regime", ["batch", "resident"])
def test_keys_of_every_type_at_once_on_a_stream(spark, rocksdb, tmp_path, regime):
    """Several key columns, of all types; on slots, where Python hashes them."""
    cases = [case for case in ALL if case.name in ("n", "sum_q", "few")]
    folder = write_files(tmp_path / "files", [typed(40), typed(30)])
    balanced = balance(stream_of(spark, folder), list(KEYS), PartialKeyGrouping(), 3, regime=regime)
    done = run(balanced.aggregate(**aggregates_of(cases)), tmp_path / "checkpoint")
    wanted = plain(spark.read.parquet(str(folder)), list(KEYS), cases)
    assert done.last(len(KEYS)) == rows_of(wanted.toArrow(), len(KEYS))


@pytest.mark.parametrize("cases", [FEW[:2], OPAQUE[:1]], ids=["merged by Spark", "merged in Python"])
@pytest.mark.parametrize("wrap", ["key", "struct(key, 'a' AS b)", "array(key, 1)", "array(struct(array(key) AS a))"])
def test_zeros_are_one_key_and_so_are_nans(spark, cases, wrap):
    table = pa.table({"key": [0.0, -0.0, float("nan"), -float("nan")] * 3, "x": [0.25] * 12})
    df = spark.createDataFrame(table.append_column("q", pa.array(range(12), pa.int32()))).repartition(2)
    df = df.withColumn("key", F.expr(wrap))
    found = balance(df, "key", ShuffleGrouping(), 2).aggregate(**aggregates_of(cases))
    assert len(assert_plain(found, df, ["key"], cases)) == 2


def test_a_key_may_be_a_field_or_an_expression_and_names_may_have_spaces(spark):
    df = spark.createDataFrame([("a", (1,)), ("b", (1,)), ("A", (2,))], "`the key` string, s struct<f:int>")
    for key, wanted in [
        ("the key", {"a": 1, "b": 1, "A": 1}),
        ("s.f", {1: 2, 2: 1}),
        (F.lower("the key").alias("low"), {"a": 2, "b": 1}),
    ]:
        found = balance(df, key, PartialKeyGrouping(), 2).aggregate(n=aggregates.Count())
        assert dict(map(tuple, found.collect())) == wanted


@pytest.mark.parametrize("edge", ["adaptive", "planned"])
def test_rows_are_routed_whatever_their_key_is_called(spark, edge):
    df = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "`k.k` string, `v``s` int")
    found = balance(df, ["k.k", "v`s"], WChoices(), 2, edge=edge).routed()
    assert sorted(tuple(row)[:2] for row in found.collect()) == [("a", 1), ("a", 3), ("b", 2)]


def counted(table: pa.Table) -> pa.Table:
    """A user's function, as the documentation shows one."""
    grouped = table.group_by("key").aggregate([("q", "sum"), ("t", "max"), ([], "count_all")])
    return grouped.rename_columns(["key", "total", "last", "n"])


COUNTED = "key string, total bigint, last timestamp, n bigint"
MERGED = {"total": "sum", "last": "max", "n": "sum"}


@pytest.mark.parametrize("whole_keys", [False, True], ids=["merged", "whole keys"])
def test_a_function_over_arrow_tables_equals_a_group_by(df, whole_keys):
    if whole_keys:
        found = balance(df, "key", n_workers=4).per_worker(counted, COUNTED, whole_keys=True)
    else:
        found = balance(df, "key", PartialKeyGrouping(), 4).per_worker(counted, COUNTED, MERGED)
    wanted = df.groupBy("key").agg(F.sum("q").alias("total"), F.max("t").alias("last"), F.count("*").alias("n"))
    assert rows_of(found.toArrow(), 1) == rows_of(wanted.toArrow(), 1)


LAYOUTS = {
    "large": (pa.large_string(), pa.large_binary()),
    "view": (pa.string_view(), pa.binary_view()),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int32(), pa.binary())),
}


@pytest.mark.parametrize(("text", "blob"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_function_may_return_strings_and_binaries_in_any_layout(spark, text, blob):
    df = spark.createDataFrame([("a", b"x"), ("a", b"y"), (None, b"z")], "key string, b binary")

    def laid_out(table: pa.Table) -> pa.Table:
        for at, (name, kind) in enumerate([("key", text), ("b", blob)]):
            column = table[name].dictionary_encode() if pa.types.is_dictionary(kind) else table[name].cast(kind)
            table = table.set_column(at, name, column)
        return table

    found = balance(df, "key", PartialKeyGrouping(), 2).per_worker(laid_out, df.schema, {"b": "max"})
    assert {key: bytes(b) for key, b in found.collect()} == {"a": b"y", None: b"z"}


def test_a_function_over_arrow_tables_equals_a_group_by_on_a_stream(spark, folder, df, tmp_path):
    balanced = balance(stream_of(spark, folder), "key", WChoices(), 3, edge="planned", ledger=str(tmp_path / "ledger"))
    done = run(balanced.per_worker(counted, COUNTED, MERGED), tmp_path / "checkpoint")
    wanted = df.groupBy("key").agg(F.sum("q").alias("total"), F.max("t").alias("last"), F.count("*").alias("n"))
    assert done.last(1) == rows_of(wanted.toArrow(), 1)


def test_whole_keys_on_a_stream_see_all_rows_of_a_batch_at_once(spark, folder, tmp_path):
    balanced = balance(stream_of(spark, folder), "key", n_workers=3, ledger=str(tmp_path / "ledger"))
    done = run(balanced.per_worker(counted, COUNTED, whole_keys=True), tmp_path / "checkpoint", "append")
    for table, path in zip(done.tables, sorted(folder.glob("*.parquet")), strict=True):
        wanted = spark.read.parquet(str(path)).groupBy("key").agg(F.sum("q"), F.max("t"), F.count("*"))
        assert rows_of(table, 1) == rows_of(wanted.toArrow(), 1)


quarters = st.one_of(st.none(), st.integers(-(10**6), 10**6).map(lambda i: i / 4))
tuples = st.tuples(
    st.one_of(st.none(), st.text(max_size=3), st.just("hot")), quarters, st.one_of(st.none(), st.integers(-99, 99))
)
GENERATED = tuple(case for case in ALL if case.name in ("n", "n_q", "sum_q", "sum_v", "mean_q"))


@settings(max_examples=5, derandomize=True, deadline=None)
@given(
    rows=st.lists(tuples, max_size=60),
    on=st.sampled_from(ON_EDGES),
    n_workers=st.integers(1, 5),
    n_sources=st.integers(1, 4),
    seed=st.integers(0, 9),
)
def test_any_rows_give_a_plain_answer(spark, rows, on, n_workers, n_sources, seed):
    df = spark.createDataFrame(rows, "key string, v double, q int").repartition(n_sources)
    balanced = balance(df, "key", on[0], n_workers, edge=on[1], seed=seed)
    found = balanced.aggregate(**aggregates_of(GENERATED))
    assert_rows(rows_of(found.toArrow(), 1), rows_of(plain(df, ["key"], GENERATED).toArrow(), 1), GENERATED)
