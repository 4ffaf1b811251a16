"""JSON values as texts by name: cut out or as variants where that is sure to be right, by from_json where it is not.

Spark's from_json sets up a decoder for every value, which takes it three times as long as a variant; to get a text out
of a variant takes as long as to parse it. from_json is the judge all the same: what is read otherwise comes to the same
text, and what would not goes through from_json.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_FLAT, _FORM, _OTHERS, _VARIANT, _FIELDS, _QUICK, _DOUBTFUL, _PLAIN, _WRAPPED = (
    f"__anabranch_{name}"
    for name in ("flat", "form_", "others", "variant", "fields", "quick_", "doubtful", "plain", "wrapped")
)
_CORRUPT, _END = "__anabranch_corrupt", "__anabranch_end"
# How a name stands in an object: not at all, before a text that has one of these between, or otherwise.
_BETWEEN = {1: ':"', 2: ': "'}
_ABSENT, _OTHERWISE = 0, 3


def read(rows: DataFrame, value: str, names: Sequence[str]) -> DataFrame:
    """`rows` with what `text` and `unreadable` need, from the binary column `value`."""
    schema = ", ".join(f"`{name}` string" for name in names)
    doubtful = F.col(_DOUBTFUL)
    plain = F.from_json(doubtful, f"{schema}, {_CORRUPT} string", {"columnNameOfCorruptRecord": _CORRUPT})
    # As a part of an object that must be whole.
    whole = F.concat(F.lit('{"record":'), doubtful, F.lit(f',"{_END}":true}}'))
    wrapped = F.from_json(whole, f"record struct<{schema}>, {_END} string")
    return _quickly(rows, F.col(value).cast("string"), names, schema).select(
        "*",
        F.when(F.col(_FLAT), plain).alias(_PLAIN),
        F.when(~F.col(_FLAT) & _is_list(doubtful), wrapped).alias(_WRAPPED),
    )


def text(name: str) -> Column:
    """What a value has under this name, null where that is nothing."""
    return F.coalesce(F.col(_WRAPPED)["record"][name], F.col(_PLAIN)[name], _quick(name))


def unreadable(names: Sequence[str]) -> Column:
    """The reason why a value is no JSON object, or null."""
    plain, wrapped, flat = F.col(_PLAIN), F.col(_WRAPPED), F.col(_FLAT)
    sound = F.when(flat, plain.isNotNull() & plain[_CORRUPT].isNull()).otherwise(wrapped[_END].isNotNull())
    return F.when(_nothing(names) & ~sound, "not JSON").when(
        _nothing(names) & ~flat & wrapped["record"].isNull(), "JSON, but not an object"
    )


def _is_list(text: Column) -> Column:
    """Whether it is the inside of a list, be it by the strict parser or by from_json.

    What is that, and may also follow ``"name":`` in an object, is one value: more of an object has colons behind its
    names, more of a list has none.
    """
    as_list = F.concat(F.lit("["), text, F.lit("]"))
    return F.try_parse_json(as_list).isNotNull() | F.from_json(as_list, "array<string>").isNotNull()


def _quickly(rows: DataFrame, text: Column, names: Sequence[str], schema: str) -> DataFrame:
    """`rows` with what is found without from_json, as a column a name: Spark copies a struct whenever it copies a row.

    One step after the other, so that Spark computes nothing twice; it compiles them into one.
    """
    # No parser minds what stands behind an object: behind a flat one nothing does.
    flat = F.octet_length(F.substring_index(text, "}", 1)) + 1 == F.octet_length(text)
    forms = [_form(text, name).alias(_FORM + name) for name in names]
    others = reduce(or_, (_has_form(name, _OTHERWISE) for name in names))
    # Variants are exact about fractions, and write them in a way of their own.
    sure = F.col(_FLAT) & ~(F.col(_OTHERS) & text.contains("."))
    fields = F.when(F.col(_OTHERS), F.try_variant_get(_VARIANT, "$", f"struct<{schema}>"))
    steps = rows.select("*", flat.alias(_FLAT), *forms).select("*", others.alias(_OTHERS))
    steps = steps.select("*", F.try_parse_json(F.when(sure, text)).alias(_VARIANT)).select("*", fields.alias(_FIELDS))
    found = (_found(text, name).alias(_QUICK + name) for name in names)
    # A column of its own, so that values need not be copied on.
    return steps.select("*", *found).select(
        *rows.columns, _FLAT, *map(_quick, names), F.when(_unsure(names), text).alias(_DOUBTFUL)
    )


def _form(text: Column, name: str) -> Column:
    """How the name stands in a flat object, if it is one: no parser minds what stands behind a text either.

    Where nothing is escaped, every quote begins or ends a text: a name between quotes is a text, and one with a colon
    behind it is a name.
    """
    if not re.fullmatch(r"\w+", name):
        return F.lit(_OTHERWISE)
    form = F.when(~text.startswith("{") | text.contains("\\"), _OTHERWISE).when(~text.contains(f'"{name}"'), _ABSENT)
    for number, between in _BETWEEN.items():
        form = form.when(text.contains(f'"{name}"{between}'), number)
    return form.otherwise(_OTHERWISE)


def _found(text: Column, name: str) -> Column:
    """What a value that is JSON has under this name."""
    found = F.when(F.col(_VARIANT).isNull(), None)
    for number, between in _BETWEEN.items():
        behind = F.substring_index(text, f'"{name}"{between}', -1)
        found = found.when(_has_form(name, number), F.substring_index(behind, '"', 1))
    return found.when(_has_form(name, _OTHERWISE), F.col(_FIELDS)[name])


def _has_form(name: str, form: int) -> Column:
    return F.col(f"`{_FORM}{name}`") == form


def _quick(name: str) -> Column:
    return F.col(f"`{_QUICK}{name}`")


def _nothing(names: Sequence[str]) -> Column:
    return F.coalesce(*map(_quick, names)).isNull()


def _unsure(names: Sequence[str]) -> Column:
    """Whether nothing was found quickly, or what from_json may write otherwise.

    These are numbers beyond the range of a double or with more digits than a decimal holds, and lists, which may hold
    such.
    """
    special = F.lit(False)
    for name in names:
        found = _quick(name)
        large = (found.contains("E") & found.rlike(r"^-?[0-9.]+E[0-9]+$")) | found.isin("Infinity", "-Infinity")
        special = special | F.coalesce(large | found.startswith("["), F.lit(False))
    return _nothing(names) | (F.col(_OTHERS) & special)
