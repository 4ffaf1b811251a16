"""Routes on Spark are those of the simulator's routers, and a batch that runs again repeats them."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch import groupings
from anabranch.aggregates import Count
from anabranch.groupings import (
    DistributionAwareKeyGrouping,
    DynamicKeyGrouping,
    Fish,
    KeyGrouping,
    Report,
    ShuffleGrouping,
    Spillway,
    TableGrouping,
    WChoices,
)
from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.simulate.edge import Edge
from anabranch.simulate.source import Tuples
from anabranch.spark import Ledger, balance
from anabranch.spark.edges.planned import home_of
from anabranch.spark.settings import QuerySettings

from .running import rows_of, run, stream_of, write_files

pytestmark = pytest.mark.spark

ADAPTIVE = [groupings.named(name)() for name in groupings.names() if not groupings.named(name).needs_counts]
PLANNED = [WChoices(), DistributionAwareKeyGrouping(), KeyGrouping(), ShuffleGrouping()]
# Source of each partition, of 1024: bits reversed, which spreads any number of them.
SOURCES = [0, 512, 256, 768]


def name_of(grouping: object) -> str:
    return getattr(grouping, "name", str(grouping))


def skewed(seed: int, rows: int) -> pa.Table:
    ranks = np.minimum(np.random.default_rng(seed).zipf(1.3, rows), 500)
    return pa.table({"key": [f"k{rank}" for rank in ranks], "row": range(rows)})


def numbered(df: DataFrame) -> DataFrame:
    """Rows that know their partition and their place in it."""
    return df.withColumn("source", F.spark_partition_id()).withColumn("row", F.monotonically_increasing_id())


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    """Four partitions in a fixed order, each in several Arrow batches."""
    return numbered(spark.createDataFrame(skewed(0, 4000)).repartition(4).cache())


@pytest.fixture
def small_arrow_batches(spark):
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "300")
    yield
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(before))


def routes_of(routed: DataFrame) -> dict[int, tuple[np.ndarray, list[int]]]:
    """Key hashes and workers of each source, in the source's order."""
    table = (
        routed.select("source", "row", "key", "worker")
        .toArrow()
        .sort_by([("source", "ascending"), ("row", "ascending")])
    )
    found = {}
    for source in sorted(set(table["source"].to_pylist())):
        mine = table.filter(pa.compute.equal(table["source"], source))
        found[source] = hash_keys(mine["key"]), mine["worker"].to_pylist()
    return found


@pytest.mark.parametrize("grouping", ADAPTIVE, ids=name_of)
def test_every_source_routes_as_its_router_does(df, small_arrow_batches, grouping):
    routes = routes_of(balance(df, "key", grouping, 5, edge="adaptive", seed=3).routed())
    assert sorted(routes) == [0, 1, 2, 3]
    for partition, (keys, workers) in routes.items():
        router = grouping.build(5, SOURCES[partition], 1024, seed=3)
        router.begin_window()
        assert workers == router.route(keys).tolist()


@pytest.mark.parametrize("edge", ["adaptive", "planned"])
def test_a_table_is_followed_on_both_edges(df, edge):
    known = hash_keys([f"k{rank}" for rank in range(1, 40)])
    grouping = TableGrouping(known, np.arange(len(known)) % 5)
    router = grouping.build(5, seed=3)
    for keys, workers in routes_of(balance(df, "key", grouping, 5, edge=edge, seed=3).routed()).values():
        assert workers == router.route(keys).tolist()


@pytest.mark.parametrize("grouping", ADAPTIVE, ids=name_of)
def test_one_source_routes_as_the_simulators_edge_does(spark, grouping):
    df = numbered(spark.createDataFrame(skewed(1, 1000)).coalesce(1))
    ((keys, workers),) = routes_of(balance(df, "key", grouping, 5, edge="adaptive").routed()).values()
    tuples = Tuples(0, keys, np.zeros(len(keys)), None)
    edge = Edge(grouping, 1, 5, seed=0)
    if grouping.name == "spillway":
        # It asks how many sources there are, and a task without a plan says many.
        edge.routers[0].n_sources = 1024
    assert workers == edge.route(tuples).tolist()
    if grouping.name != "key":
        assert len(set(workers)) > 1


@pytest.mark.parametrize("grouping", [Fish(), WChoices(), DynamicKeyGrouping()], ids=name_of)
def test_the_second_batch_of_a_stream_starts_from_the_plan_in_the_ledger(spark, tmp_path, grouping):
    folder = write_files(tmp_path / "files", [skewed(0, 800), skewed(1, 700)])
    ledger = Ledger(str(tmp_path / "ledger"))
    balanced = balance(stream_of(spark, folder), "key", grouping, 4, ledger=ledger.uri)
    done = run(balanced.routed(), tmp_path / "checkpoint", "append")
    plan = ledger.plan(done.query, 1)
    assert plan is not None
    assert plan.sources == 1
    table = done.tables[1].sort_by("row")
    router = grouping.build(4, 0, 1024 if grouping.keeps_router else 1)
    router.follow(plan)
    if grouping.keeps_router:
        router.restore(ledger.reports(done.query, 0, "edge")["edge-000000"].sketch)
    router.begin_window()
    keys = hash_keys(table["key"])
    wanted = router.route(keys, plan.now, plan.step_s if grouping.keeps_router else 0.0).tolist()
    assert table["worker"].to_pylist() == wanted
    if not grouping.keeps_router:
        # What was learned shows: a router that knows nothing yet chooses otherwise.
        assert wanted != grouping.build(4, 0, 1).route(keys, plan.now).tolist()


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("n_workers", [1, 3, 128])
def test_home_is_the_first_candidate(spark, seed, n_workers):
    hashes = np.random.default_rng(seed).integers(0, 2**64, 2000, dtype=np.uint64)
    hashes[:4] = [0, 2**63, 2**64 - 1, 2**32 - 1]
    df = spark.createDataFrame(pa.table({"h": hashes.view(np.int64)}))
    settings = QuerySettings(KeyGrouping(), n_workers, "planned", seed=seed, keys=("h",))
    found = df.select(home_of(F.col("h"), settings).alias("home")).toArrow()["home"]
    assert found.to_pylist() == MultiplyShift().first(hashes, n_workers, seed).tolist()


@pytest.mark.parametrize("seed", [0, 7])
def test_key_grouping_routes_alike_on_both_edges(df, seed):
    adaptive, planned = (
        routes_of(balance(df, "key", KeyGrouping(), 5, edge=edge, seed=seed).routed())
        for edge in ("adaptive", "planned")
    )
    assert {source: workers for source, (_, workers) in adaptive.items()} == {
        source: workers for source, (_, workers) in planned.items()
    }


@pytest.mark.parametrize(
    ("grouping", "edge"), [(Fish(), "adaptive"), *((one, "planned") for one in PLANNED)], ids=name_of
)
def test_partition_i_holds_the_rows_of_worker_i_and_they_are_those_that_it_reports(df, tmp_path, grouping, edge):
    ledger = str(tmp_path / "ledger")
    balanced = balance(df, "key", grouping, 5, edge=edge, ledger=ledger)
    found = balanced.routed().withColumn("partition", F.spark_partition_id()).toArrow()
    assert found["partition"].to_pylist() == found["worker"].to_pylist()
    balanced.aggregate(n=Count()).toArrow()
    reports = Ledger(ledger).reports("batch", 0, "worker")
    assert len(reports) == 5
    received = Counter(found["worker"].to_pylist())
    assert sum(report.worker_tuples for report in reports.values()).tolist() == [received[i] for i in range(5)]


def test_the_plan_of_a_batch_dataframe_spreads_its_hot_keys_and_no_others(df):
    found = balance(df, "key", WChoices(), 5, edge="planned").routed().toArrow()
    workers: dict[str, set[int]] = {}
    for key, worker in zip(found["key"].to_pylist(), found["worker"].to_pylist(), strict=True):
        workers.setdefault(key, set()).add(worker)
    counts = Counter(found["key"].to_pylist())
    hot = {key for key, n in counts.items() if n >= WChoices().threshold(5) * len(found)}
    assert hot == {key for key, on in workers.items() if len(on) > 1}
    assert all(len(workers[key]) == 5 for key in hot)


def test_whole_keys_are_on_one_worker_each_and_none_has_much_more_than_the_heaviest_key(df):
    def where(table: pa.Table) -> pa.Table:
        from pyspark import TaskContext

        worker = TaskContext.get().partitionId()  # type: ignore[union-attr]
        grouped = table.group_by("key").aggregate([([], "count_all")])
        return pa.table({"key": grouped["key"], "worker": [worker] * len(grouped), "n": grouped["count_all"]})

    balanced = balance(df, "key", n_workers=4)
    found = balanced.per_worker(where, "key string, worker int, n bigint", whole_keys=True).toArrow().to_pylist()
    assert len({row["key"] for row in found}) == len(found)
    loads = Counter[int]()
    for row in found:
        loads[row["worker"]] += row["n"]
    heaviest = max(row["n"] for row in found)
    assert max(loads.values()) <= max(heaviest, sum(loads.values()) / 4 * 1.05)


def forget_the_last_commit(checkpoint: Path) -> int:
    """As if the driver had died after the batch and before its commit."""
    commits = sorted(
        (path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
    )
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink(missing_ok=True)
    return int(commits[-1].name)


@pytest.mark.parametrize(
    ("grouping", "edge", "row_id"),
    [
        (Fish(), "adaptive", ()),
        (DistributionAwareKeyGrouping(), "planned", ()),
        (WChoices(), "planned", ()),
        (Spillway(), "planned", ()),
        (ShuffleGrouping(), "planned", ()),
        (WChoices(), "planned", "row"),
        (Spillway(), "planned", ["row", "key"]),
    ],
    ids=name_of,
)
def test_a_batch_that_runs_again_routes_as_the_first_time(spark, tmp_path, grouping, edge, row_id):
    folder = write_files(tmp_path / "files", [skewed(0, 800), skewed(1, 700)])
    ledger = Ledger(str(tmp_path / "ledger"))

    def start():
        balanced = balance(stream_of(spark, folder), "key", grouping, 4, edge=edge, ledger=ledger.uri, row_id=row_id)
        return run(balanced.routed(), tmp_path / "checkpoint", "append")

    second = (folder / "001.parquet").rename(tmp_path / "second")
    query = start().query
    if isinstance(grouping, WChoices | Spillway):
        wait_for_reports(ledger, query, 0)
    second.rename(folder / "001.parquet")
    first = start()
    assert forget_the_last_commit(tmp_path / "checkpoint") == 1
    again = start()
    assert again.query == first.query == query
    (before, after) = (table.sort_by("row") for table in (*first.tables, *again.tables))
    assert after == before
    if not isinstance(grouping, DistributionAwareKeyGrouping):
        # Rows of the hottest key are spread: there is something to repeat.
        hottest = before.filter(pa.compute.equal(before["key"], "k1"))
        assert len(set(hottest["worker"].to_pylist())) > 1


def test_rows_dealt_out_by_columns_are_spread_evenly_and_their_columns_need_not_be_read(df):
    routed = balance(df, "key", ShuffleGrouping(), 5, edge="planned", row_id=["source", "row"]).routed()
    loads = Counter(routed.toArrow()["worker"].to_pylist())
    # Five standard deviations of 800.
    assert max(abs(n - 800) for n in loads.values()) < 5 * 26
    counted = balance(df, "key", WChoices(), 5, edge="planned", row_id="row").aggregate(n=Count())
    assert counted.columns == ["key", "n"]
    assert sorted(map(tuple, counted.collect())) == sorted(map(tuple, df.groupBy("key").count().collect()))


@pytest.mark.parametrize("regime", ["batch", "resident"])
def test_a_batch_that_runs_again_gives_the_same_rows(spark, rocksdb, tmp_path, regime):
    folder = write_files(tmp_path / "files", [skewed(0, 800), skewed(1, 700)])
    ledger = str(tmp_path / "ledger")

    def start():
        balanced = balance(stream_of(spark, folder), "key", Fish(), 4, ledger=ledger, regime=regime)
        return run(balanced.aggregate(n=Count()), tmp_path / "checkpoint")

    first = start()
    reported = Ledger(ledger).reports(first.query, 1, "worker")
    forget_the_last_commit(tmp_path / "checkpoint")
    again = start()
    assert rows_of(again.tables[0], 1) == rows_of(first.tables[1], 1)
    reports = Ledger(ledger).reports(first.query, 1, "worker")
    assert {name: one.worker_tuples.tolist() for name, one in reports.items()} == {
        name: one.worker_tuples.tolist() for name, one in reported.items()
    }


def wait_for_reports(ledger: Ledger, query: str, batch: int) -> dict[str, Report]:
    """Listeners hear of a batch some time after it."""
    for _ in range(300):
        if reports := ledger.reports(query, batch):
            return reports
        time.sleep(0.1)
    raise AssertionError("the listener has reported nothing")


def test_a_planned_stream_without_workers_learns_through_the_listener(spark, tmp_path):
    folder = write_files(tmp_path / "files", [skewed(0, 800), skewed(1, 700)])
    ledger = Ledger(str(tmp_path / "ledger"))
    balanced = balance(stream_of(spark, folder), "key", WChoices(), 4, edge="planned", ledger=ledger.uri)
    done = run(balanced.routed(), tmp_path / "checkpoint", "append")
    reports = wait_for_reports(ledger, done.query, 0)
    assert list(reports) == ["observed-0"]
    assert reports["observed-0"].tuples == 800
    counts = Counter(skewed(0, 800)["key"].to_pylist())
    hashes = hash_keys(list(counts)).tolist()
    wanted = dict(zip(hashes, counts.values(), strict=True))
    observed = dict(
        zip(reports["observed-0"].hot_keys.tolist(), reports["observed-0"].hot_counts.tolist(), strict=True)
    )
    assert observed == wanted


def test_a_planned_stream_follows_a_table_that_was_given_from_its_first_batch_on(spark, tmp_path):
    folder = write_files(tmp_path / "files", [skewed(0, 300)])
    known = hash_keys([f"k{rank}" for rank in range(1, 40)])
    grouping = TableGrouping(known, np.arange(len(known)) % 4)
    done = run(balance(stream_of(spark, folder), "key", grouping, 4, edge="planned").routed(), tmp_path / "c", "append")
    (table,) = done.tables
    assert table["worker"].to_pylist() == grouping.build(4).route(hash_keys(table["key"])).tolist()


def test_a_table_that_was_given_is_planned_without_a_count(spark, monkeypatch):
    monkeypatch.setattr("anabranch.spark.edges.planned.plan_from_counts", None)
    df = spark.createDataFrame(skewed(0, 300)).withColumn("key", F.concat("key", F.rand().cast("string").substr(9, 0)))
    grouping = TableGrouping(hash_keys(["k1", "k1", "k2"]), [0, 3, 2])
    balanced = balance(df, "key", grouping, 4)
    assert balanced.settings.edge == "planned"
    found = balanced.routed().toArrow()
    workers = {key: {row["worker"] for row in found.to_pylist() if row["key"] == key} for key in ("k1", "k2")}
    assert workers == {"k1": {0, 3}, "k2": {2}}


def test_a_planned_stream_spreads_in_the_second_batch_what_was_hot_in_the_first(spark, tmp_path):
    folder = write_files(tmp_path / "files", [skewed(0, 800), skewed(1, 700)])
    ledger = Ledger(str(tmp_path / "ledger"))
    balanced = balance(stream_of(spark, folder), "key", WChoices(), 4, edge="planned", ledger=ledger.uri)
    done = run(balanced.aggregate(n=Count()), tmp_path / "checkpoint")
    plan = ledger.plan(done.query, 1)
    assert plan is not None
    assert plan.table is not None
    counts = Counter(skewed(0, 800)["key"].to_pylist())
    hot = [key for key, n in counts.items() if n >= WChoices().threshold(4) * 800]
    assert set(plan.table.keys.tolist()) == set(hash_keys(hot).tolist())
    received = sum(report.worker_tuples for report in ledger.reports(done.query, 1, "worker").values())
    home = MultiplyShift().first(hash_keys(skewed(1, 700)["key"]), 4, 0)
    assert received.sum() == 700
    assert received.max() < np.bincount(home).max()
