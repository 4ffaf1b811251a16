"""What tests on Spark may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

PROVIDER = "spark.sql.streaming.stateStore.providerClass"

# Programs of their own, which import each other; --doctest-modules would import them here.
collect_ignore = ["drivers"]


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[None]:
    """States in RocksDB, without which `transformWithState` does not run."""
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    yield
    spark.conf.set(PROVIDER, str(before))
