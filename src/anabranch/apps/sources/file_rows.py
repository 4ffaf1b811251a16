"""Rows of files as an application's columns, or the reason why one is malformed, in Spark's own expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
)

from anabranch.apps.app import App, Field
from anabranch.apps.balancing import row_columns
from anabranch.apps.misfits import is_not, misfits

# Every bigint, and fractions: a double would round large numbers.
_NUMBER = "decimal(38, 18)"
# What could not be taken apart, as it stands in its file.
CORRUPT = "__anabranch_corrupt"
REASON = "__anabranch_reason"
_EXTRA = "__anabranch_extra"


@dataclass(frozen=True)
class FileRows:
    """How the rows of files are written.

    Guarantees
    ----------
    Every row is either good, or malformed with a reason. None is dropped, and none stops a query (unless an expression
    of the user's does).

    Parameters
    ----------
    format
        One of `file_source.FORMATS`.
    schema
        Columns of the files. In CSV and JSON they are read as texts: what a type was found to be depends on the files
        that happened to be there. Only columns that an expression of the user's names have a type.
    separator
        Of CSV.
    """

    format: str
    schema: StructType
    separator: str = ","

    @property
    def names(self) -> list[str]:
        """Columns of the files."""
        return [name for name in self.schema.names if name != CORRUPT]

    def parse(self, rows: DataFrame, app: App, columns: Mapping[str, str]) -> DataFrame:
        """One column a field of the application, of its type; columns of ours; and REASON: null if a row is good.

        A null in a field other than the key is allowed: an empty cell is a null.
        """
        chosen = app.chosen(self.names, columns)
        with app.reading(self.names):
            read = [F.expr(text).alias(field.name) for field, text in chosen.items()]
            found = rows.select(*read, *row_columns(rows), self._unreadable(chosen).alias(REASON))
            values = {field: F.col(field.name) for field in chosen}
            typed = {f: self._typed(f, chosen[f], found.schema[f.name].dataType) for f in chosen}
            names = {field: self._called(field, text) for field, text in chosen.items()}
            reasons = misfits(values, typed, [field for field in chosen if field.key], names)
            fields = [value.alias(field.name) for field, value in typed.items()]
            return found.select(*fields, *row_columns(rows), F.coalesce(REASON, *reasons).alias(REASON))

    def text(self) -> Column:
        """A row as it stands in its file where that is known, or else as a JSON object of its columns."""
        if self.format == "text":
            return F.col("value")
        whole = F.to_json(F.struct(*(F.col(f"`{name}`") for name in self.names)))
        return whole if self.format == "parquet" else F.coalesce(CORRUPT, whole)

    def _is_column(self, text: str) -> bool:
        return text.strip("`") in self.names

    def _called(self, field: Field, text: str) -> str:
        """A field, and the column that it is in where that has another name."""
        column = text.strip("`")
        return field.name if column == field.name else f"{field.name} (column {column})"

    def _typed(self, field: Field, text: str, given: DataType) -> Column:
        value = F.col(field.name)
        # What an expression of the user's makes of a fraction is the user's choice.
        if field.type != "bigint" or not self._is_column(text):
            return value.cast(field.type) if field.type == "string" else value.try_cast(field.type)
        if isinstance(given, StringType):
            return F.coalesce(value.try_cast("bigint"), _whole(value.try_cast(_NUMBER)))
        if isinstance(given, DoubleType | FloatType):
            # Spark casts the double 2^63, which is one too large, to the largest bigint.
            return F.when(value < 2.0**63, _whole(value))
        return _whole(value) if isinstance(given, DecimalType) else value.try_cast("bigint")

    def _unreadable(self, chosen: Mapping[Field, str]) -> Column:
        """The reason why a row could not be taken apart, or why a column that an expression needs could not be read."""
        if self.format not in ("csv", "json"):
            return F.lit(None).cast("string")
        faults = self._no_csv(chosen) if self.format == "csv" else self._no_json()
        return F.when(F.col(CORRUPT).isNotNull(), F.coalesce(*faults))

    def _no_json(self) -> list[Column]:
        line = F.col(CORRUPT)
        variant = F.try_parse_json(line)
        other = F.when(~F.schema_of_variant(variant).startswith("OBJECT"), "JSON, but not an object")
        texts = F.from_json(line, _as_texts(self._with_types))
        return [F.when(variant.isNull(), "not JSON"), other, *self._mistyped(texts), F.lit("not JSON")]

    def _no_csv(self, chosen: Mapping[Field, str]) -> list[Column]:
        # One column more than there should be, to see whether there are.
        wide = _as_texts([*self.names, _EXTRA])
        texts = F.from_csv(F.col(CORRUPT), F.lit(wide), {"sep": self.separator})
        more = F.when(texts[_EXTRA].isNotNull(), f"more columns than {','.join(self.names)}")
        # A line that is too short is good as long as it has what is needed.
        short = [F.when(F.expr(text).isNull(), f"no field {self._called(f, text)}") for f, text in chosen.items()]
        return [more, *self._mistyped(texts), *short]

    def _mistyped(self, texts: Column) -> list[Column]:
        """Columns with a type whose text is not of it."""
        kinds = {name: self.schema[name].dataType.simpleString() for name in self._with_types}
        missing = {name: texts[name].isNotNull() & F.col(f"`{name}`").isNull() for name in kinds}
        return [F.when(missing[name], is_not(name, kind, texts[name])) for name, kind in kinds.items()]

    @property
    def _with_types(self) -> list[str]:
        return [name for name in self.names if not isinstance(self.schema[name].dataType, StringType)]


def in_expressions(names: Sequence[str], columns: Mapping[str, str]) -> set[str]:
    """Columns that an expression of the user's may name."""
    expressions = [text for text in columns.values() if text.strip("`") not in names]
    return {name for name in names if any(_names(text, name) for text in expressions)}


def as_texts(found: StructType, but: set[str]) -> StructType:
    """The same columns, all of them texts but these; and CORRUPT."""
    kept = [f if f.name in but else StructField(f.name, StringType()) for f in found if f.name != CORRUPT]
    return StructType([*kept, StructField(CORRUPT, StringType())])


def _names(expression: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", expression, re.IGNORECASE) is not None


def _whole(number: Column) -> Column:
    """A number as a whole one, null where it has a fraction."""
    return F.when(number % 1 == 0, number.try_cast("bigint"))


def _as_texts(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}` string" for name in names)
