r"""JSON objects without objects, lists and escapes within, read by regular expressions.

Spark's ``from_json`` sets up a reader with a buffer of its own for every value, which for a short one takes longer than
all the rest of reading a record (`benchmarks/kafka.py`). Most records of most topics are as simple as this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

# Java matches a repeated group by recursion: one of a few hundred members is far from the end of a thread's stack.
_LONGEST = 2000
_SPACE = r"[ \t\r\n]*+"
_STRING = r'"[^"\\\x00-\x1f]*+"'
_NUMBER = r"-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:[eE][+-]?\d{1,3})?"
_SCALAR = rf"{_STRING}|{_NUMBER}|true|false|null"
_MEMBER = rf"{_STRING}{_SPACE}:{_SPACE}(?:{_SCALAR}){_SPACE}"
_OBJECT = rf"^{_SPACE}\{{{_SPACE}{_MEMBER}(?:,{_SPACE}{_MEMBER})*+\}}{_SPACE}$"


def simple_members(value: Column, names: Sequence[str]) -> Column:
    """A struct of what follows each name in a simple object, as it is written; null where a value is not simple."""
    simple = (F.length(value) <= _LONGEST) & value.rlike(_OBJECT)
    return F.when(simple, F.struct(*(_member(value, name).alias(name) for name in names)))


def _member(value: Column, name: str) -> Column:
    """What follows a name the last time. No string holds a quotation mark, so one on either side makes it a name."""
    quoted = f'"{name}"'
    pattern = rf"(?s)^(?>.*{re.escape(quoted)}{_SPACE}:{_SPACE})({_SCALAR})"
    # Looking for the name first is much faster than a regular expression that does not match.
    return F.when(F.contains(value, F.lit(quoted)), F.regexp_extract(value, pattern, 1))


def plain_members(written: Column, names: Sequence[str]) -> Column:
    """The members as the strings that ``from_json`` makes of them."""
    return F.when(written.isNotNull(), F.struct(*(_plain(written[name]).alias(name) for name in names)))


def _plain(text: Column) -> Column:
    # Like from_json, which takes a fraction for a double.
    fraction = text.try_cast("double").cast("string")
    return (
        F.when(text.startswith('"'), F.btrim(text, F.lit('"')))
        .when(text.isin("", "null"), None)
        .when(text.rlike(r"\d[.eE]"), fraction)
        .otherwise(text)
    )
