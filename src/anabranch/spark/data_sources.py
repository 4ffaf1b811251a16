"""Our Python data sources, read in any of several sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource

_registered: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def load(
    spark: SparkSession, source: type[DataSource], options: Mapping[str, str], *, streaming: bool = False
) -> DataFrame:
    """Rows of a data source, which the session learns on first use."""
    with _active(spark):
        known = _registered.setdefault(spark, set())
        if source.name() not in known:
            spark.dataSource.register(source)
            known.add(source.name())
        reader = spark.readStream if streaming else spark.read
        return reader.format(source.name()).options(**options).load()


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of the thread.

    Each session has data sources of its own, but Spark looks for them in the active one: with two sessions it refuses
    to register a format that only the other one has, and does not find one that only this one has.
    """
    # Spark Connect has none; its server runs every request in the session that sends it.
    own: Any = getattr(spark, "_jsparkSession", None)
    if own is None:
        yield
        return
    sessions: Any = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    before = sessions.getActiveSession()
    sessions.setActiveSession(own)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
