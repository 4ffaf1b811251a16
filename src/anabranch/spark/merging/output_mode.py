"""Append mode would write running totals again in every batch: a query that tries is ended when it starts.

Spark refuses append mode for its own aggregations only, and not for states that live on slots. The output mode is known
when a query starts, and to the listeners of its session only.
"""

from __future__ import annotations

import logging
from typing import Any

from pyspark.sql import DataFrame, SparkSession

REFUSED = (
    "append mode, Spark's default, would write running totals again in every batch, as if they were new; "
    'use .outputMode("update"), or an event-time window as part of the key'
)
_MARK = "__anabranch_running_totals"
log = logging.getLogger(__name__)


def running_totals(df: DataFrame) -> DataFrame:
    """Mark rows that take the place of earlier ones.

    The mark is a name for a part of the plan. It costs nothing: Spark forgets it when it optimises.
    """
    return df.alias(_MARK)


def sees_modes(spark: SparkSession) -> bool:
    """Whether the output mode of a query can be seen here; a client of Spark Connect is not told."""
    return hasattr(spark, "_jsparkSession")


def end_appending(spark: SparkSession, event: Any) -> None:
    """End a query that starts and would append marked rows.

    A listener of the session calls this in the query's own thread, before the query reads anything.
    """
    query = spark.streams.get(str(event.id)) if sees_modes(spark) else None
    execution: Any = None if query is None else query._jsq.streamingQuery()
    if execution is not None and _appends_totals(execution):
        _end(execution, spark._jvm)
        log.error("query %s was not started: %s", event.name or event.id, REFUSED)


def _appends_totals(execution: Any) -> bool:
    """Whether Java's side of a query is in append mode and has marked rows in its plan."""
    if execution.outputMode().toString() != "Append":
        return False
    return f"SubqueryAlias {_MARK}" in execution.analyzedPlan().toString()


def _end(execution: Any, jvm: Any) -> None:
    """Have a query that is starting end as a stopped one does; `awaitTermination` then raises the reason.

    Its `stop` would wait for the thread that this runs in, and interrupt it, upon which Spark drops the listener.
    """
    cause = jvm.java.lang.IllegalStateException(REFUSED)
    nothing = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    reason = jvm.org.apache.spark.sql.streaming.StreamingQueryException(REFUSED, cause, "STREAM_FAILED", nothing)
    getattr(execution, "streamDeathCause_$eq")(reason)
    # Versions of Spark have it in different packages.
    package = execution.state().get().getClass().getPackageName()
    execution.state().set(getattr(getattr(jvm, f"{package}.TERMINATED$"), "MODULE$"))
