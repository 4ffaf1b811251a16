"""Queries that a fixture holds half-way: their streams, and what they should have found in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from anabranch.aggregates import Count, Sum, TopK
from anabranch.chain import Reconfiguration, chain
from anabranch.groupings import DynamicKeyGrouping, Spillway
from anabranch.spark import balance

from .running import stream_of

# Two micro-batches are in the fixture, one comes after it.
N_BEFORE, N_BATCHES = 2, 3
# They stand in the fixture for the folders of the stream's files and of the checkpoint.
FILES, CHECKPOINT = "/the/folder/of/files", "/the/checkpoint"
Query = Callable[[SparkSession, Path, str], DataFrame]


def rows_of_batch(number: int) -> pa.Table:
    """Rows of a micro-batch: skewed keys, and tags that mostly go with one of them."""
    rng = np.random.default_rng(number)
    key = np.minimum(rng.zipf(1.6, 600), 30)
    tag = np.where(rng.random(600) < 0.8, key * 3, rng.integers(0, 90, 600))
    return pa.table({"key": pa.array([f"key {i}" for i in key]), "tag": tag, "v": rng.integers(0, 100, 600)})


def renamed(checkpoint: Path, folders: Mapping[str, str]) -> None:
    """Make a checkpoint name other folders: Spark writes whole paths into it."""
    logs = [*checkpoint.glob("sources/0/[0-9]*"), *checkpoint.glob("state/*/_metadata/**/[0-9]*")]
    for log in (path for path in logs if path.is_file()):
        text = log.read_text(encoding="utf-8")
        for old, new in folders.items():
            text = text.replace(old, new)
        log.write_text(text, encoding="utf-8")


def batch_regime(spark: SparkSession, folder: Path, ledger: str) -> DataFrame:
    """States merged by Spark; the plan holds the flows of split keys."""
    return balance(stream_of(spark, folder), "key", Spillway(), 4, ledger=ledger).aggregate(n=Count(), s=Sum("v"))


def kept_router(spark: SparkSession, folder: Path, ledger: str) -> DataFrame:
    """A router that goes on from batch to batch; states merged in Python."""
    balanced = balance(stream_of(spark, folder), "key", DynamicKeyGrouping(), 4, ledger=ledger)
    return balanced.aggregate(n=Count(), s=Sum("v"), top=TopK("tag", 100))


def resident_regime(spark: SparkSession, folder: Path, ledger: str) -> DataFrame:
    """States that stay on workers between batches."""
    balanced = balance(stream_of(spark, folder), "key", Spillway(), 4, ledger=ledger, regime="resident", flush_every=5)
    return balanced.aggregate(n=Count(), s=Sum("v"))


def operators(spark: SparkSession, folder: Path, ledger: str) -> DataFrame:
    """A chain whose tables change after every batch, with a stateful step between two operators."""
    begun = chain(stream_of(spark, folder), 2, ledger=ledger, reconfiguration=Reconfiguration(every=1, n_servers=2))
    stepped = begun.then("key", n=Count(), s=Sum("v")).map_with_state(
        "tag", seen_before, "key string, tag long, v long, seen long", state="seen long"
    )
    return stepped.then("seen", n=Count()).answers()


def seen_before(states: pa.Table, tuples: pa.Table) -> tuple[pa.Table, pa.Table]:
    """How many tuples of its tag came before each tuple."""
    known = dict(zip(states["tag"].to_pylist(), states["seen"].to_pylist(), strict=True))
    seen = []
    for tag in tuples["tag"].to_pylist():
        seen.append(known.get(tag) or 0)
        known[tag] = seen[-1] + 1
    return pa.table({"tag": list(known), "seen": list(known.values())}), tuples.append_column("seen", pa.array(seen))


QUERIES: dict[str, Query] = {query.__name__: query for query in (batch_regime, kept_router, resident_regime, operators)}
