"""Running totals are not appended."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from anabranch.aggregates import Aggregate, CollectN, Count, TopK
from anabranch.chain import chain
from anabranch.spark import balance
from anabranch.spark.merging.output_mode import REFUSED

from ..running import run, stream_of, write_files

pytestmark = pytest.mark.spark


@pytest.fixture
def stream(spark, tmp_path: Path) -> DataFrame:
    tables = [pa.table({"key": ["a", "b", "a"], "v": [1, 2, 3]})] * 2
    return stream_of(spark, write_files(tmp_path / "files", tables))


def totals(df: DataFrame, aggregate: Aggregate, **settings: object) -> DataFrame:
    return balance(df, "key", n_workers=2, **settings).aggregate(r=aggregate)  # type: ignore[arg-type]


TOTALS = {
    "merged in Python": lambda df: totals(df, TopK("v", 2)),
    "local": lambda df: totals(df, CollectN("v", 2), edge="local"),
    "resident": lambda df: totals(df, Count(), regime="resident", flush_every=2),
    "chain": lambda df: chain(df, 2).then("key", n=Count()).then("v", n=Count()).answers(),
    "with steps behind it": lambda df: totals(df, TopK("v", 2)).where("key = 'a'").selectExpr("upper(key) AS upper"),
}


@pytest.mark.parametrize("build", TOTALS.values(), ids=TOTALS)
@pytest.mark.usefixtures("rocksdb")
def test_totals_that_are_appended_end_the_query_before_its_first_batch(stream, tmp_path, caplog, build):
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(StreamingQueryException) as error:
        run(build(stream), checkpoint, "append")
    assert str(error.value).strip() == REFUSED
    assert [record.getMessage().count("\n") for record in caplog.records if record.levelno == logging.ERROR] == [0]
    assert caplog.records[-1].getMessage().endswith(REFUSED)
    assert not list((checkpoint / "offsets").glob("*"))


@pytest.mark.usefixtures("rocksdb")
def test_the_same_checkpoint_goes_on_in_update_mode(stream, tmp_path):
    with pytest.raises(StreamingQueryException, match=r"use \.outputMode"):
        run(totals(stream, TopK("v", 2)), tmp_path / "checkpoint", "append")
    done = run(totals(stream, TopK("v", 2)), tmp_path / "checkpoint")
    assert sorted(row["key"] for table in done.tables for row in table.to_pylist()) == ["a", "a", "b", "b"]


@pytest.mark.usefixtures("rocksdb")
def test_other_queries_of_the_session_may_append(stream, tmp_path):
    # Has the session guarded.
    totals(stream, TopK("v", 2))
    routed = balance(stream, "key", "key", 2).routed()
    assert sum(table.num_rows for table in run(routed, tmp_path / "checkpoint", "append").tables) == 6
