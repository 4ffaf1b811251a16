"""The examples in the documents that need Spark run as they are written."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.groupings import Report

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[1]


def blocks(document: str) -> list[str]:
    """Fenced Python that is no doctest."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    return [block for block in found if ">>>" not in block]


@pytest.mark.parametrize("document", ["README.md", "docs/spark.md"])
def test_the_first_example_counts_every_trade(document, spark, tmp_path):
    (tmp_path / "trades").mkdir()
    trades = {"symbol": ["NABIL", "NTC", "NABIL"], "price": [500.0, 890.0, 512.0], "qty": [10, 5, 30]}
    pq.write_table(pa.table(trades), tmp_path / "trades" / "one.parquet")
    names: dict[str, object] = {}
    # The JVM's working directory is where the tests were started, and its console is not ours to read.
    block = re.sub(r'"(trades|state/)', rf'"{tmp_path}/\1', blocks(document)[0])
    block = block.replace('format("console")', 'format("memory").queryName("example")')
    assert "query.awaitTermination()" in block
    exec(block.replace("query.awaitTermination()", "query.processAllAvailable()"), names)
    names["query"].stop()
    assert sorted(map(tuple, spark.table("example").collect())) == [("NABIL", 509.0, 2), ("NTC", 890.0, 1)]


def test_the_other_examples_of_the_guide_run(spark, tmp_path, capsys):
    trades = spark.createDataFrame([], "symbol string, price double, time timestamp")
    query = SimpleNamespace(lastProgress={"id": "a", "batchId": 0, "durationMs": {}})
    names: dict[str, object] = {"trades": trades, "query": query}
    from anabranch.spark import Ledger

    ledger = Ledger(str(tmp_path / "ledger"))
    ledger.claim({})
    ledger.write_report("a", 0, "worker-000000", Report(tuples=3, worker_tuples=np.array([3])))
    _, *others = blocks("docs/spark.md")
    assert len(others) == 2
    for block in others:
        exec("from anabranch.spark import balance\n" + block.replace("state/", f"{tmp_path}/"), names)
    assert "BatchMetrics(batch=0" in capsys.readouterr().out
