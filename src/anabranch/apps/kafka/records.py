"""Values of records as an application's columns, or the reason why one is malformed, in Spark's own expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch.apps.app import App, Field
from anabranch.apps.balancing import ROW, row_columns
from anabranch.apps.kafka import json_values
from anabranch.apps.misfits import misfits
from anabranch.apps.run.cause import why_not_read
from anabranch.errors import ConfigError, InputError

FORMATS = ("json", "text", "csv")
REASON = "__anabranch_reason"
_PARSED, _EXTRA, _NO_TEXT = "__anabranch_parsed", "__anabranch_extra", "__anabranch_no_text"


@dataclass(frozen=True)
class Records:
    """How values are written: JSON objects, plain text, or CSV without a header.

    Guarantees
    ----------
    Every record is either good, with every field of its type, or malformed, with a reason. No record is dropped, and
    none stops a query (unless an expression of the user's does).

    Parameters
    ----------
    format
        One of FORMATS. Text is one column, ``value``.
    columns
        csv: the columns in order; json: names to read besides those of the application's fields.
    """

    format: str = "json"
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ConfigError(f"format of records must be one of {', '.join(FORMATS)}, got {self.format!r}")
        if self.format == "text" and self.columns:
            raise ConfigError(f"text has one column, value, got columns {', '.join(self.columns)}; leave them out")
        if len({name.lower() for name in self.columns}) < len(self.columns) or "" in self.columns:
            raise ConfigError(f"columns must have names that differ, got {','.join(self.columns)!r}")

    def parse(self, records: DataFrame, app: App, columns: Mapping[str, str]) -> DataFrame:
        """One column a field of the application, of its type; those of `records`; and REASON: null if a record is good.

        Parameters
        ----------
        records
            With a binary column ``value``. Its columns get the prefix ROW, because fields may have the same names.
        columns
            For a field's name, a SQL expression over the record's columns, which are strings; see `App.read`.
        """
        app.check_names(columns)
        names = self._names(app, columns)
        texts = {f: text for f in app.fields if (text := _text(f, names, columns)) is not None}
        _check(app, names, texts)
        try:
            flat = self._flat(records, names)
            typed = {f: text.try_cast(f.type) for f, text in texts.items()}
            reason = F.coalesce(F.col(REASON), *misfits(texts, typed, [f for f in texts if not f.optional]))
            fields = [value.alias(f.name) for f, value in typed.items()]
            return flat.select(*fields, *row_columns(flat), reason.alias(REASON))
        except AnalysisException as error:
            why = why_not_read(error, names)
            raise InputError(f"{app.name} cannot read its columns: {why}; see --column and columns=") from None

    def _flat(self, records: DataFrame, names: Sequence[str]) -> DataFrame:
        """The record's columns as texts, those of `records`, and in REASON whether the value could be read."""
        kept = records.select(*(F.col(name).alias(ROW + name) for name in records.columns))
        rows, value = row_columns(kept), F.col(ROW + "value")
        no_text = F.when(value.isNull(), "no value").when(~F.is_valid_utf8(value.cast("string")), "not UTF-8")
        kept = kept.select("*", no_text.alias(_NO_TEXT))
        if self.format == "json":
            parsed = json_values.read(kept, ROW + "value", names)
            texts = [json_values.text(name).alias(name) for name in names]
        else:
            parsed = kept.select("*", self._parsed(names).alias(_PARSED))
            texts = [F.col(_PARSED)[name].alias(name) for name in names]
        reason = F.coalesce(_NO_TEXT, self._unreadable(names))
        return parsed.select(*rows, *texts, reason.alias(REASON))

    def _names(self, app: App, columns: Mapping[str, str]) -> list[str]:
        """Names of the record's columns."""
        if self.format == "text":
            return ["value"]
        if self.format == "csv":
            return list(self.columns) or [f.name for f in app.fields]
        known = [name for f in app.fields for name in (f.name, *f.aliases)]
        plain = [text for text in columns.values() if re.fullmatch(r"[A-Za-z_]\w*", text)]
        return list(dict.fromkeys([*known, *self.columns, *plain]))

    def _parsed(self, names: Sequence[str]) -> Column:
        value = F.col(ROW + "value").cast("string")
        if self.format == "text":
            return F.struct(value.alias("value"))
        # One column more than there should be, to see whether there are.
        schema = ", ".join(f"`{name}` string" for name in (*names, _EXTRA))
        return F.from_csv(F.rtrim(value, F.lit("\r\n")), F.lit(schema), {"escape": '"'})

    def _unreadable(self, names: Sequence[str]) -> Column:
        """The reason why a text is not of this format, or null."""
        if self.format == "csv":
            return F.when(F.col(_PARSED)[_EXTRA].isNotNull(), f"more columns than {','.join(names)}")
        if self.format == "json":
            return json_values.unreadable()
        return F.lit(None)


def _text(field: Field, names: Sequence[str], columns: Mapping[str, str]) -> Column | None:
    """A field as the record spells it; None where no column of the record can hold it."""
    if field.name in columns:
        return F.expr(columns[field.name])
    found = [F.col(name) for name in (field.name, *field.aliases) if name in names]
    return F.coalesce(*found) if found else None


def _check(app: App, names: Sequence[str], texts: Mapping[Field, Column]) -> None:
    """Refuse a source whose records could never be good."""
    missing = [f.name for f in app.fields if f not in texts and (not f.optional or not texts)]
    if missing:
        raise InputError(
            f"{app.name} needs a field {missing[0]}, and the records have {', '.join(names)}; "
            f"say which it is with --column {missing[0]}=COLUMN"
        )
