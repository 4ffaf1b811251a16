"""What tests on Spark may use."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER = "spark.sql.streaming.stateStore.providerClass"

# Programs of their own, which import each other; --doctest-modules would import them here.
collect_ignore = ["drivers"]
# Every test of this folder imports PySpark, with or without a session.
collect_ignore_glob = [] if find_spec("pyspark") else ["*.py"]


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[None]:
    """States in RocksDB, without which `transformWithState` does not run."""
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    yield
    spark.conf.set(PROVIDER, str(before))
