"""What is upstream of a DataFrame, as far as reading it twice would run it twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from anabranch.spark.columns.keys import event_time

# Leaves of a plan that are Spark's own, or were computed before.
_NATIVE = {
    "CTERelationRef",
    "CommandResult",
    "HiveTableRelation",
    "InMemoryRelation",
    "LocalRelation",
    "LogicalRelation",
    "OneRowRelation",
    "Range",
}
_FUNCTIONS = "your functions upstream"


def run_again(df: DataFrame) -> str | None:
    """What of the user's a second pass over the DataFrame would run again; None where there is nothing.

    That is Python, functions of the user's own, and steps that need not give the same rows twice. What is cached does
    not run again.
    """
    try:
        # A plan of its own: that of `df` would remember what is cached now, and not notice what is cached later.
        query = df.select("*")._jdf.queryExecution().withCachedData()
        patterns = df.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
        if any(query.containsPattern(one) for one in (patterns.PYTHON_UDF(), patterns.SCALA_UDF())):
            return _FUNCTIONS
        if not query.deterministic():
            return "the steps upstream that are not deterministic"
        return next((found for node in _nodes(query) if (found := _in(node))), None)
    except Exception:  # Spark Connect has no plans, and a platform may show few of their classes
        return "all that is upstream, which cannot be seen here,"


def has_watermark(df: DataFrame) -> bool:
    """Whether a watermark was set anywhere upstream, also on a column that is no longer there."""
    try:
        pattern = df.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.EVENT_TIME_WATERMARK()  # type: ignore[union-attr]
        return bool(df._jdf.queryExecution().analyzed().containsPattern(pattern))
    except Exception:  # as above; columns still tell of themselves
        return event_time(df.schema, df.columns)


def _nodes(plan: Any) -> Iterator[Any]:
    """The nodes of a plan and of the subqueries in it."""
    yield plan
    for inner in (plan.children(), plan.subqueries()):
        for i in range(inner.size()):
            yield from _nodes(inner.apply(i))


def _in(node: Any) -> str | None:
    """What a node runs that a plan as a whole does not tell."""
    if _class(node) == "Generate" and "Python" in _class(node.generator()):
        return _FUNCTIONS
    return None if node.children().size() or _class(node) in _NATIVE else _from(node)


def _from(node: Any) -> str | None:
    """Where rows come from, unless Spark reads them natively or has them."""
    if _class(node) == "LogicalRDD":
        rdd = node.rdd()
        kept = rdd.isCheckpointed() or rdd.getStorageLevel().useMemory() or rdd.getStorageLevel().useDisk()
        return None if kept else "the RDD or Python list upstream"
    if "V2" in _class(node) and ".python." not in node.table().getClass().getName():
        return None
    return "the data source upstream"


def _class(item: Any) -> str:
    return str(item.getClass().getSimpleName())
