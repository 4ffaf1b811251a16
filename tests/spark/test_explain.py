from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from anabranch.spark import balance

pytestmark = pytest.mark.spark


def explained(capsys, df, **settings) -> dict[str, str]:
    balance(df, "key", n_workers=3, **settings).explain()
    lines = capsys.readouterr().out.splitlines()
    return {line.split()[0]: line.partition(" ")[2].strip() for line in lines}


def test_a_batch_dataframe_has_neither_checkpoint_nor_state_store(spark, capsys):
    found = explained(capsys, spark.range(3).withColumnRenamed("id", "key"))
    assert found["edge"].startswith("planned: native expressions")
    assert found["grouping"].startswith("spillway: ")
    assert found["learned"] == "from an exact count of this DataFrame, made first"
    assert found["merged"] == "partial states by groupBy(key)"
    assert not any(word in " ".join(found.values()) for word in ("checkpoint", "state store", "batch"))


def test_a_stream_is_merged_in_the_state_store_and_started_again_from_its_checkpoint(spark, capsys, tmp_path):
    stream = spark.readStream.format("rate").load().withColumn("key", F.col("value") % 3)
    found = explained(capsys, stream, grouping="fish")
    assert found["grouping"].startswith("fish: ")
    assert "to 3 workers" in found["shuffled"]
    assert "Spark's own state store" in found["merged"]
    assert found["learned"].startswith("by each router anew in every batch; pass ledger=")
    assert "restart it from its checkpoint" in found["retry"]
    assert "resident" not in found["merged"]
    kept = explained(capsys, stream, regime="resident", flush_every=5, ledger=str(tmp_path / "ledger"))
    assert kept["merged"] == "states stay on their worker; by key, every 5 batches"
    assert str(tmp_path / "ledger") in kept["learned"]


def test_the_local_edge_knows_no_grouping(spark, capsys):
    found = explained(capsys, spark.range(3).withColumnRenamed("id", "key"), edge="local", grouping="fish")
    assert found["edge"].startswith("local: rows stay where they are, whatever the grouping")
    assert not {"grouping", "shuffled", "learned"} & set(found)
