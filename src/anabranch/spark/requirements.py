"""What must hold before a query starts."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import ConfigError, InputError
from anabranch.spark.advice import type_of
from anabranch.spark.interpreter import check_interpreter
from anabranch.spark.spark_session import CHECKSUMS, ROCKSDB

OLDEST = (4, 1)


def check_dataframe(df: object) -> None:
    """Refuse what is not a DataFrame of Spark, or one of a session that has ended or in which answers could change."""
    if not isinstance(df, DataFrame):
        raise InputError(f"df must be a DataFrame of Spark, got {type_of(df)}; make one with spark.createDataFrame(…)")
    if _has_ended(df.sparkSession):
        raise InputError("the session of the DataFrame is stopped; read the data again in a session that runs")
    check_spark(df.sparkSession)
    check_interpreter(df.sparkSession)


def _has_ended(spark: SparkSession) -> bool:
    try:
        return spark.sparkContext._jsc is None
    except Exception:  # Spark Connect has no context, and says so by one of several errors
        return bool(getattr(spark, "is_stopped", False))


def check_spark(spark: SparkSession) -> None:
    """Refuse a Spark on which a retried task could change the answer.

    A task that runs again may send its tuples to other workers than the first time; Spark notices by checksums that do
    not depend on the order of rows, and runs everything after it again.
    """
    version = tuple(int(part) for part in spark.version.split(".")[:2])
    if version < OLDEST:
        raise ConfigError(f"Spark must be 4.1 or newer, got {spark.version}; repartitionById is missing before")
    for name in CHECKSUMS:
        if _setting(spark, name) != "true":
            raise ConfigError(
                f"{name} must be true, or a retried task could change the answer; "
                f'set it with spark.conf.set("{name}", "true"), or let anabranch.spark.session() make the session'
            )
    if _setting(spark, "spark.shuffle.push.enabled") == "true":
        raise ConfigError(
            "spark.shuffle.push.enabled must be false: merged shuffle blocks have no checksum, "
            "so a retried task could change the answer; set it when the session is made"
        )


def check_state_store(spark: SparkSession) -> None:
    """Refuse a state store that cannot hold the states of slots before a query starts, not in its first batch."""
    name = "spark.sql.streaming.stateStore.providerClass"
    if "hdfsbacked" in _setting(spark, name):
        raise ConfigError(
            f"{name} must be RocksDB for states that live on slots, got {spark.conf.get(name)}; "
            f'set it with spark.conf.set("{name}", "{ROCKSDB}"), or let anabranch.spark.session() make the session'
        )
    # Spark 4.1 has no coordinator of state stores in a session that was never asked about its streams.
    _ = spark.streams


def _setting(spark: SparkSession, name: str) -> str:
    """What holds for the session; where it was not set, Spark's own default, which a default given here would hide."""
    try:
        return str(spark.conf.get(name)).lower()
    except PySparkException:
        return "false"
