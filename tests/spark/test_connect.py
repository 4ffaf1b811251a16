"""The batch regime over Spark Connect, whose session cannot live in a process that has a classic one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from .running import write_files

pytestmark = pytest.mark.spark

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession, functions as F
from anabranch.aggregates import Count, Sum
from anabranch.groupings import Fish, PartialKeyGrouping, WChoices
from anabranch.spark import Ledger, balance

folder, work = sys.argv[1:]
builder = SparkSession.builder.remote("local[2]")
for name, value in {"ui.enabled": "false", "ui.showConsoleProgress": "false", "sql.shuffle.partitions": "2"}.items():
    builder = builder.config("spark." + name, value)
spark = builder.getOrCreate()
for name in ("enabled", "enableFullRetryOnMismatch"):
    # True by default since 4.2.
    spark.conf.set("spark.sql.shuffle.orderIndependentChecksum." + name, "true")
df = spark.read.parquet(folder)
stream = spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 1).parquet(folder)


def last_rows(out, name):
    writer = out.writeStream.outputMode("update").format("memory").queryName(name)
    query = writer.option("checkpointLocation", f"{work}/{name}").trigger(availableNow=True).start()
    query.awaitTermination()
    # Counts only grow, so the last row of a key is its largest.
    largest = spark.table(name).groupBy("key").agg(F.max("n").alias("n"), F.max("s").alias("s"))
    return sorted(map(list, largest.collect())), str(query.id)


found = {"session": type(spark).__module__}
found["default"] = balance(df, "key", n_workers=3).settings.edge
found["plain"] = sorted(map(list, df.groupBy("key").agg(F.count("*"), F.sum("v")).collect()))
for name, grouping, edge in [("fish", Fish(), "adaptive"), ("partial-key", PartialKeyGrouping(), "local"),
                             ("w-choices", WChoices(), "planned")]:
    out = balance(df, "key", grouping, 3, edge=edge).aggregate(n=Count(), s=Sum("v"))
    found["batch " + name] = sorted(map(list, out.collect()))
    ledger = f"{work}/ledger-{name}"
    out = balance(stream, "key", grouping, 3, edge=edge, ledger=ledger).aggregate(n=Count(), s=Sum("v"))
    found["stream " + name], query = last_rows(out, name.replace("-", "_"))
    found["plans " + name] = [batch for batch in Ledger(ledger).batches(query) if Ledger(ledger).plan(query, batch)]
print(json.dumps(found))
spark.stop()
"""


def test_balanced_queries_run_over_spark_connect(spark, tmp_path: Path):
    for module in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        pytest.importorskip(module, reason="Spark Connect needs grpcio, grpcio-status and zstandard")
    tables = [pa.table({"key": [f"k{min(i % 9, 3)}" for i in range(n)], "v": [0.25] * n}) for n in (90, 70)]
    folder = write_files(tmp_path / "files", tables)
    command = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["session"].startswith("pyspark.sql.connect")
    # What is upstream cannot be seen, so it must not run twice.
    assert found["default"] == "adaptive"
    assert len(found["plain"]) == 4
    for name in ("fish", "partial-key", "w-choices"):
        assert found[f"batch {name}"] == found[f"stream {name}"] == found["plain"]
        assert found[f"plans {name}"] == ([] if name == "partial-key" else [0, 1])
