"""Numbers for the rows of a stream, without which a batch that is replayed could not be dealt out as before."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame


def row_number(df: DataFrame) -> Column | None:
    """Number the rows of each task from 0 in their order; None where the session keeps its JVM to itself.

    Spark has no function for it: `monotonically_increasing_id` is refused in streams, and random numbers get a new seed
    in every run of a batch. But its expressions may call a method of an object: here of a counter, which travels with
    the task, so that every attempt at a task begins with a counter of its own at 0.
    """
    try:
        return _counting(df.sparkSession._jvm)
    except (
        Exception
    ):  # Spark Connect has no JVM, and a platform may allow few of its classes; each has errors of its own
        return None


def _counting(jvm: Any) -> Column:
    from pyspark.sql.classic.column import Column as ClassicColumn

    catalyst, types = jvm.org.apache.spark.sql.catalyst.expressions, jvm.org.apache.spark.sql.types
    long, integer = types.DataType.fromJson('"long"'), types.DataType.fromJson('"integer"')

    def one(item: Any) -> Any:
        items = jvm.java.util.ArrayList()
        items.add(item)
        return jvm.org.apache.spark.api.python.PythonUtils.toSeq(items)

    # An array, because py4j turns a lone AtomicLong into a number.
    counter = jvm.java.util.concurrent.atomic.AtomicLongArray(1)
    literal = catalyst.Literal(counter, types.ObjectType(counter.getClass()))
    first = one(catalyst.Literal(0, integer))
    propagate_null, nullable, deterministic = True, False, False
    call = catalyst.objects.Invoke(
        literal, "getAndIncrement", long, first, one(integer), propagate_null, nullable, deterministic
    )
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(call))
