"""JSON values as texts by name: cut out of simple objects, by from_json where an object is not simple.

Spark's from_json sets up a decoder for every value, which takes longer than all else that is done to a short one. It is
the judge all the same: what is cut out is what from_json would give, and all else goes through it.

Few and small expressions: Spark compiles those of a step into one method, and Java leaves a method of over 8000 bytes
to its interpreter, which is several times as slow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_TEXT, _CUT, _NAME, _ALONE, _DOUBTFUL, _FLAT, _PLAIN, _WRAPPED = (
    f"__anabranch_{name}" for name in ("text", "cut", "name", "alone", "doubtful", "flat", "plain", "wrapped")
)
_CORRUPT, _END = "__anabranch_corrupt", "__anabranch_end"
# Quantifiers are possessive: Java then needs no stack for them, however long a value is.
_CHARACTERS = r'[^"\\\x00-\x1F]*+'
# from_json refuses names of over 50,000 characters.
_OTHER_NAME = r'[^"\\\x00-\x1F]{0,1000}+'
_ESCAPE = r"\\(?:[\\/bfnrt]|u[0-9A-Fa-f]{4})"
_NUMBER = r"-?(?:[1-9][0-9]{0,17}+|0)(?:\.[0-9]{1,17}+)?+"
_VALUE = rf'(?:"{_CHARACTERS}(?:{_ESCAPE}{_CHARACTERS})*+"|{_NUMBER}|true|false|null)'


def read(rows: DataFrame, value: str, names: Sequence[str]) -> DataFrame:
    """`rows` with what `text` and `unreadable` need, from the binary column `value`."""
    schema = ", ".join(f"`{name}` string" for name in names)
    doubtful, flat = F.col(_DOUBTFUL), F.col(_FLAT)
    plain = F.from_json(doubtful, f"{schema}, {_CORRUPT} string", {"columnNameOfCorruptRecord": _CORRUPT})
    # As a part of an object that must be whole.
    whole = F.concat(F.lit('{"record":'), doubtful, F.lit(f',"{_END}":true}}'))
    wrapped = F.from_json(whole, f"record struct<{schema}>, {_END} string")
    return _quickly(rows, F.col(value).cast("string"), names).select(
        "*",
        F.when(flat, plain).alias(_PLAIN),
        F.when(~flat & _is_list(doubtful), wrapped).alias(_WRAPPED),
    )


def text(name: str) -> Column:
    """What a value has under this name, null where that is nothing."""
    careful = F.coalesce(F.col(_WRAPPED)["record"][name], F.col(_PLAIN)[name])
    return F.when(F.col(_DOUBTFUL).isNotNull(), careful).when(F.col(_NAME) == name, F.col(_ALONE))


def unreadable() -> Column:
    """The reason why a value is no JSON object, or null."""
    plain, wrapped, flat = F.col(_PLAIN), F.col(_WRAPPED), F.col(_FLAT)
    sound = F.when(flat, plain.isNotNull() & plain[_CORRUPT].isNull()).otherwise(wrapped[_END].isNotNull())
    return (
        F.when(F.col(_DOUBTFUL).isNull(), None)
        .when(~sound, "not JSON")
        .when(~flat & wrapped["record"].isNull(), "JSON, but not an object")
    )


def _is_list(text: Column) -> Column:
    """Whether it is the inside of a list, be it by the strict parser or by from_json.

    What is that, and may also follow ``"name":`` in an object, is one value: more of an object has colons behind its
    names, more of a list has none.
    """
    as_list = F.concat(F.lit("["), text, F.lit("]"))
    return F.try_parse_json(as_list).isNotNull() | F.from_json(as_list, "array<string>").isNotNull()


def _quickly(rows: DataFrame, text: Column, names: Sequence[str]) -> DataFrame:
    """`rows` with name and text of values that have one of the names, or else the value, for from_json.

    One step after the other, so that Spark computes nothing twice; it compiles them into one.
    """
    whole, cut, doubtful = F.col(_TEXT), F.col(_CUT), F.col(_DOUBTFUL)
    steps = rows.select("*", text.alias(_TEXT)).select("*", F.regexp_extract(whole, _simple(names), 1).alias(_CUT))
    steps = steps.select(
        *rows.columns,
        F.substring_index(cut, '"', 1).alias(_NAME),
        F.substring_index(cut, '"', -1).alias(_ALONE),
        F.when(cut == "", whole).alias(_DOUBTFUL),
    )
    # No parser minds what stands behind an object: behind a flat one nothing does.
    flat = F.octet_length(F.substring_index(doubtful, "}", 1)) + 1 == F.octet_length(doubtful)
    return steps.select("*", flat.alias(_FLAT))


def _simple(names: Sequence[str]) -> str:
    """Matches an object without others or lists in it that has one of the names, once, before a text without escapes.

    Captures from the name to the text, without the first and the last quote. Every quote begins or ends a text, so what
    is between quotes is a text, and one with a colon behind it is a name. One with an escape in it could be any name.
    """
    # JSON escapes quotes, backslashes and control characters.
    known = "|".join(re.escape(name) for name in names if not re.search(r'["\\\x00-\x1F]', name)) or "(?!)"
    other = rf'"(?!(?:{known})"){_OTHER_NAME}": ?{_VALUE}'
    return rf'\A\{{(?:{other}, ?)*+"((?:{known})": ?"{_CHARACTERS})"(?:, ?{other})*+\}}\z'
