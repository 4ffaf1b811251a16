"""JSON values as texts by name: as variants where that is sure to be right, by from_json where it is not.

Spark's from_json sets up a decoder for every value, which takes it three times as long as a variant. It is the judge
all the same: what is read as a variant comes to the same text, and what would not goes through from_json.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_FLAT, _QUICK = "__anabranch_flat", "__anabranch_quick_"
_PLAIN, _WRAPPED = "__anabranch_plain", "__anabranch_wrapped"
_CORRUPT, _END = "__anabranch_corrupt", "__anabranch_end"


def read(rows: DataFrame, value: str, names: Sequence[str]) -> DataFrame:
    """`rows` with what `text` and `unreadable` need, from the binary column `value`."""
    text, schema = F.col(value).cast("string"), ", ".join(f"`{name}` string" for name in names)
    # No parser minds what stands behind an object: behind a flat one nothing does.
    flat = F.octet_length(F.substring_index(text, "}", 1)) + 1 == F.octet_length(text)
    # Variants are exact about fractions, and write them in a way of their own.
    simple = F.when(flat & ~text.contains("."), text)
    quick = F.try_variant_get(F.try_parse_json(simple), "$", f"struct<{schema}>")
    first = rows.select("*", flat.alias(_FLAT), quick.alias(_QUICK))
    # As columns of their own: Spark copies a struct whenever it copies the row.
    first = first.select(*rows.columns, _FLAT, *(F.col(_QUICK)[name].alias(_QUICK + name) for name in names))
    plain = F.from_json(text, f"{schema}, {_CORRUPT} string", {"columnNameOfCorruptRecord": _CORRUPT})
    # As a part of an object that must be whole.
    whole = F.concat(F.lit('{"record":'), text, F.lit(f',"{_END}":true}}'))
    wrapped = F.from_json(whole, f"record struct<{schema}>, {_END} string")
    unsure = _unsure(names)
    return first.select(
        "*",
        F.when(unsure & F.col(_FLAT), plain).alias(_PLAIN),
        F.when(unsure & ~F.col(_FLAT), wrapped).alias(_WRAPPED),
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


def _quick(name: str) -> Column:
    return F.col(f"`{_QUICK}{name}`")


def _nothing(names: Sequence[str]) -> Column:
    return F.coalesce(*map(_quick, names)).isNull()


def _unsure(names: Sequence[str]) -> Column:
    """Whether nothing was found as a variant, or what from_json may write otherwise.

    These are numbers beyond the range of a double or with more digits than a decimal holds, and lists, which may hold
    such.
    """
    unsure = _nothing(names)
    for name in names:
        found = _quick(name)
        large = (found.contains("E") & found.rlike(r"^-?[0-9.]+E[0-9]+$")) | found.isin("Infinity", "-Infinity")
        unsure = unsure | F.coalesce(large | found.startswith("["), F.lit(False))
    return unsure
