from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from anabranch.aggregates import TopK
from anabranch.groupings import Spillway
from anabranch.spark import balance
from anabranch.spark.explain import describe
from anabranch.spark.settings import QuerySettings

pytestmark = pytest.mark.spark


def explained(capsys, df, *, whole_keys=False, **settings) -> dict[str, str]:
    balance(df, "key", n_workers=3, **settings).explain(whole_keys=whole_keys)
    lines = capsys.readouterr().out.splitlines()
    return {line.split()[0]: line.partition(" ")[2].strip() for line in lines}


def test_a_batch_dataframe_has_neither_checkpoint_nor_state_store(spark, capsys):
    found = explained(capsys, spark.range(3).withColumnRenamed("id", "key"))
    assert found["edge"].startswith("planned: native expressions")
    assert found["grouping"].startswith("spillway: ")
    assert found["learned"] == "from an exact count of this DataFrame, made first, which reads it once more"
    assert found["worker"] == "one partial state per key, by Arrow tables"
    assert found["merged"] == "partial states by groupBy(key)"
    assert not any(word in " ".join(found.values()) for word in ("checkpoint", "state store", "batch"))


def test_a_stream_is_merged_in_the_state_store_and_started_again_from_its_checkpoint(spark, capsys, tmp_path):
    stream = spark.readStream.format("rate").load().withColumn("key", F.col("value") % 3)
    found = explained(capsys, stream, grouping="fish")
    assert found["grouping"].startswith("fish: ")
    assert "to 3 workers" in found["shuffled"]
    assert found["worker"] == "one partial state per key and batch, by Arrow tables"
    assert "Spark's own state store" in found["merged"]
    assert found["learned"].startswith("by each router anew in every batch; pass ledger=")
    assert "restart it from its checkpoint" in found["retry"]
    assert "resident" not in found["merged"]
    kept = explained(capsys, stream, regime="resident", flush_every=5, ledger=str(tmp_path / "ledger"))
    assert kept["merged"] == "states stay on their worker; by key, every 5 batches"
    assert str(tmp_path / "ledger") in kept["learned"]


@pytest.mark.parametrize("grouping", ["key", "shuffle", "partial-key", "consistent", "table", "static-two-choices"])
def test_groupings_that_do_not_count_keys_learn_nothing(spark, capsys, grouping):
    found = explained(capsys, spark.range(3).withColumnRenamed("id", "key"), grouping=grouping)
    assert found["learned"] == "nothing: this grouping does not look at how often keys occur"


def test_modes_that_spark_refuses_are_told_before(spark, rocksdb, capsys):
    stream = spark.readStream.format("rate").load().withColumn("key", F.col("value") % 3)
    told = explained(capsys, stream)["output"]
    assert told.startswith("answers of aggregate in update mode; in complete mode too where Spark merges all of them")
    assert "for TopK, CollectN and states that name no merge: take update mode there, or an event-time window" in told
    assert "Spark Connect" not in told
    top = balance(stream, "key", n_workers=3).aggregate(top=TopK("value", 2))
    with pytest.raises(AnalysisException, match="not supported for no streaming aggregations"):
        top.writeStream.outputMode("complete").format("noop").start()
    assert explained(capsys, stream, regime="resident")["output"] == "answers of aggregate in update mode only"
    timed = stream.withWatermark("timestamp", "1 minute").withColumn("key", F.window("timestamp", "1 minute"))
    assert explained(capsys, timed)["output"].startswith("answers of aggregate in append, update or complete mode")


def test_the_local_edge_knows_no_grouping(spark, capsys):
    found = explained(capsys, spark.range(3).withColumnRenamed("id", "key"), edge="local", grouping="fish")
    assert found["edge"].startswith("local: rows stay where they are, whatever the grouping")
    assert not {"grouping", "shuffled", "learned"} & set(found)


def test_the_adaptive_edge_says_why_it_was_chosen_for_a_batch_dataframe(spark, capsys):
    df = spark.range(3).withColumn("key", F.rand())
    found = explained(capsys, df)
    assert found["edge"].startswith("adaptive: ")
    again = "the steps upstream that are not deterministic"
    assert found["edge"].endswith(f"chosen because the count for the planned edge would run {again} a second time")
    assert "chosen because" not in explained(capsys, df, edge="adaptive")["edge"]


def test_whole_keys_are_explained_as_they_run(spark, capsys, tmp_path):
    df = spark.range(3).withColumnRenamed("id", "key")
    assert "explain(whole_keys=True)" in explained(capsys, df)["whole"]
    found = explained(capsys, df, whole_keys=True)
    assert found["edge"].startswith("planned: ")
    assert found["grouping"].startswith("offline-greedy: ")
    assert found["merged"] == "nothing: no key is split"
    assert found["worker"] == "your function, over all rows of a worker at once"
    stream = spark.readStream.format("rate").load().withColumn("key", F.col("value") % 3)
    found = explained(capsys, stream, ledger=str(tmp_path / "ledger"), whole_keys=True)
    assert found["grouping"].startswith("distribution-aware: ")
    assert "restart it from its checkpoint" in found["retry"]


@pytest.mark.parametrize("settings", [{"grouping": "fish"}, {"edge": "local"}, {"grouping": "key"}])
def test_whole_keys_that_cannot_be_had_or_need_nothing_else_are_not_told_of(spark, capsys, settings):
    assert "whole" not in explained(capsys, spark.range(3).withColumnRenamed("id", "key"), **settings)


def test_over_spark_connect_it_says_that_nothing_stops_append_mode():
    schema = StructType([StructField("key", StringType())])
    stream = SimpleNamespace(isStreaming=True, schema=schema, sparkSession=object())
    text = describe(stream, QuerySettings(Spillway(), 2, "adaptive", keys=("key",)))  # type: ignore[arg-type]
    assert "over Spark Connect nothing refuses append mode" in text
