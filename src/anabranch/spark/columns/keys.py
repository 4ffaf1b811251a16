"""Key columns: found, checked, and given back what a Python step makes Spark forget about them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from anabranch.errors import ConfigError, InputError

# Names of the types of year-month and calendar intervals.
_MONTHS = ("yearmonthinterval", "interval")
_QUERY_LOGS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
Key = str | Column | Sequence[str | Column]


def with_keys(df: DataFrame, key: Key) -> tuple[DataFrame, tuple[str, ...]]:
    """The DataFrame with every key as a column of its own, and their names.

    A key may be an expression, such as an event-time window: it becomes a column first.
    """
    names = []
    for one in each_key(key):
        named = isinstance(one, str) and one in df.columns
        column = quoted(str(one)) if named else F.col(one) if isinstance(one, str) else one
        field = _field(df, one, column)
        if not named:
            _refuse_to_hide(df, field.name, column)
            df = df.withColumn(field.name, column)
        check_key(field.name, field.dataType)
        if field.metadata.get("spark.sessionWindow"):
            raise ConfigError(
                f"key {field.name} is a session window, whose end depends on the rows of all workers; "
                "use tumbling or sliding windows, or plain Spark"
            )
        names.append(field.name)
    if len(set(map(folding(df.sparkSession), names))) != len(names):
        raise ConfigError(f"key columns must differ, got {', '.join(names)}")
    return df, tuple(names)


def each_key(key: Key) -> list[str | Column]:
    """The key columns as they are given, one by one."""
    given = [key] if isinstance(key, str | Column) or not isinstance(key, Iterable) else list(key)
    if not given:
        raise ConfigError("key must name at least one column, got none")
    for one in given:
        if not isinstance(one, str | Column):
            raise ConfigError(f"key must name columns, such as 'user' or ['user', 'country'], got {one!r}")
    return given


def _field(df: DataFrame, given: str | Column, column: Column) -> StructField:
    """Name and type of a key column."""
    with _unlogged():
        try:
            return df.select(column).schema[0]
        except PySparkException as error:
            _refuse_expression(df, given)
            known = isinstance(given, str) and (error.getCondition() or "").startswith("UNRESOLVED_COLUMN")
            why = "" if known else f" ({_first(error)})"
            raise InputError(f"key {given} is not a column; there are {', '.join(df.columns)}{why}") from None


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep PySpark from logging a page for a name that Spark cannot find, because the error says it in one line."""
    levels = {log: log.level for log in map(PySparkLogger.getLogger, _QUERY_LOGS)}
    for log in levels:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)


def _refuse_expression(df: DataFrame, text: str | Column) -> None:
    """Say how an expression is written, where the text that names no column is one."""
    if isinstance(text, Column):
        return
    with suppress(PySparkException):
        _ = df.select(F.expr(text)).schema
        raise InputError(f"key {text} is an expression, and text must name a column; write F.expr({text!r})")


def restore_metadata(df: DataFrame, schema: StructType, names: Sequence[str]) -> DataFrame:
    """Put back the metadata of the key columns: watermark and window are marked there, and Python steps lose it."""
    for name in names:
        metadata = schema[name].metadata
        if metadata:
            df = df.withMetadata(name, metadata)
    return df


def grouped(df: DataFrame, schema: StructType, names: Sequence[str]) -> GroupedData:
    """The rows by their keys, which have their metadata again."""
    return restore_metadata(df, schema, names).groupBy(*map(quoted, names))


def check_names(names: Sequence[str]) -> None:
    """Refuse columns that Spark cannot hand to Python: `mapInArrow` looks them up without quotes."""
    for name in names:
        if "." in name or "`" in name:
            raise ConfigError(f"column {name} has a dot or a backtick in its name; rename it first")


def event_time(schema: StructType, names: Sequence[str]) -> bool:
    """Whether a key carries a watermark."""
    return any("spark.watermarkDelayMs" in schema[name].metadata for name in names)


def quoted(name: str) -> Column:
    """The column of exactly this name, dots and all."""
    return F.col(quote(name))


def quote(name: str) -> str:
    """The name as SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def folding(spark: SparkSession) -> Callable[[str], str]:
    """What makes names of columns equal that are one name to the session."""
    return str if str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true" else str.lower


def _refuse_to_hide(df: DataFrame, name: str, column: Column) -> None:
    """A key that is computed must not take the place of a column that an aggregate may read."""
    fold = folding(df.sparkSession)
    hidden = [other for other in df.columns if fold(other) == fold(name)]
    if hidden and str(column) not in (f"Column<'{name}'>", f"Column<'`{name}`'>"):
        raise ConfigError(f"key {column} has the name of a column, {hidden[0]}; give it another with .alias(…)")


def check_key(name: str, kind: DataType) -> None:
    """Refuse a key of a type that Spark cannot group by or hand to Python, or that Python would group otherwise."""
    if isinstance(kind, MapType) or kind.typeName() == "variant":
        raise ConfigError(f"key {name} is a {kind.typeName()}, which Spark cannot group by; use a field of it")
    if kind.typeName() in _MONTHS:
        raise ConfigError(
            f"key {name} is an {kind.simpleString()}, which Spark cannot hand to Python; cast it to string"
        )
    check_collation(f"key {name}", kind)
    if isinstance(kind, StructType):
        for field in kind.fields:
            check_key(f"{name}.{field.name}", field.dataType)
    if isinstance(kind, ArrayType):
        check_key(f"{name}[]", kind.elementType)


def check_collation(what: str, kind: DataType) -> None:
    """Refuse strings that are not compared by their bytes, as Python compares them."""
    if isinstance(kind, StringType) and kind.collation != "UTF8_BINARY":
        raise ConfigError(
            f"{what} has the collation {kind.collation}, and workers compare strings by their bytes; cast it to STRING "
            "COLLATE UTF8_BINARY, or take its collation_key(…)"
        )


def _first(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
