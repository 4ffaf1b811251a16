"""States on slots are found again after a restart, whatever the session's settings are by then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.aggregates import Aggregate, CollectN, Count, TopK
from anabranch.groupings import PartialKeyGrouping
from anabranch.spark import balance

from .running import run, stream_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("rocksdb")]

PARTITIONS = "spark.sql.shuffle.partitions"
ZONE, LARGE = "spark.sql.session.timeZone", "spark.sql.execution.arrow.useLargeVarTypes"
KEYS = [f"key {i % 40}" for i in range(400)]


@pytest.fixture
def partitions(spark) -> Iterator[None]:
    before = spark.conf.get(PARTITIONS)
    yield
    spark.conf.set(PARTITIONS, before)


@pytest.fixture
def settings(spark) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in (ZONE, LARGE)}
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def add_file(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"key": KEYS, "v": KEYS}), folder / f"{number:03d}.parquet")


@pytest.mark.parametrize("regime", ["batch", "resident"])
def test_another_number_of_partitions_loses_no_state(spark, partitions, tmp_path, regime):
    folder = tmp_path / "files"
    for number, n_partitions in enumerate((2, 3, 1)):
        spark.conf.set(PARTITIONS, str(n_partitions))
        add_file(folder, number)
        balanced = balance(stream_of(spark, folder), "key", PartialKeyGrouping(), 3, regime=regime)
        done = run(balanced.aggregate(n=Count(), top=TopK("v", 1)), tmp_path / "checkpoint")
        rows = {row["key"]: row for table in done.tables for row in table.to_pylist()}
        assert {row["n"] for row in rows.values()} == {10 * (number + 1)}
        assert len(rows) == 40


def test_another_number_of_workers_is_refused_while_states_are_resident(spark, tmp_path):
    folder = tmp_path / "files"
    add_file(folder, 0)

    def start(n_workers: int) -> dict[str, int]:
        balanced = balance(
            stream_of(spark, folder), "key", PartialKeyGrouping(), n_workers, regime="resident", flush_every=2
        )
        done = run(balanced.aggregate(n=Count()), tmp_path / "checkpoint")
        return {row["key"]: row["n"] for table in done.tables for row in table.to_pylist()}

    assert start(4) == {}
    add_file(folder, 1)
    with pytest.raises(Exception, match="lie on 4 workers, and the query now has 2; go on with n_workers=4"):
        start(2)
    assert start(4) == dict.fromkeys(KEYS, 20)


@pytest.mark.parametrize("regime", ["batch", "resident"])
def test_another_time_zone_and_large_types_find_the_states(spark, settings, tmp_path, regime):
    folder = tmp_path / "files"
    folder.mkdir()
    times = pa.array(np.arange(6) // 3 * 3_600_000_000, pa.timestamp("us", "UTC"))
    rows = pa.table({"key": times, "t": times, "v": ["a", "b", "b"] * 2, "blob": [b"x", b"y", b"y"] * 2})
    for number, (zone, large) in enumerate([("UTC", "false"), ("Asia/Kathmandu", "true"), ("Europe/Zurich", "false")]):
        spark.conf.set(ZONE, zone)
        spark.conf.set(LARGE, large)
        pq.write_table(rows, folder / f"{number}.parquet")
        balanced = balance(stream_of(spark, folder), "key", PartialKeyGrouping(), 2, regime=regime, flush_every=1)
        aggregated = balanced.aggregate(t=TopK("t", 1), v=TopK("v", 1), blob=CollectN("blob", 1))
        done = run(aggregated, tmp_path / "checkpoint")
        found = {row["key"].timestamp(): row for table in done.tables for row in table.to_pylist()}
        assert sorted(found) == [0, 3600]
        for key, row in found.items():
            assert [(each["value"].timestamp(), each["count"]) for each in row["t"]] == [(key, 3 * (number + 1))]
            assert row["v"] == [{"value": "b", "count": 2 * (number + 1)}] and row["blob"] == [b"x"]


def test_other_aggregates_are_refused(spark, tmp_path):
    folder = tmp_path / "files"
    add_file(folder, 0)

    def start(**aggregates: Aggregate) -> None:
        balanced = balance(stream_of(spark, folder), "key", PartialKeyGrouping(), 2)
        run(balanced.aggregate(**aggregates), tmp_path / "checkpoint")

    start(top=TopK("v", 1))
    add_file(folder, 1)
    with pytest.raises(Exception, match=r"hold key, top.heaviest, and the query now has key, top.heaviest, n.count"):
        start(top=TopK("v", 1), n=Count())
