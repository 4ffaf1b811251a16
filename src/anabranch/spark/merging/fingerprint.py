"""A fingerprint of a query's states, spelled in the types of columns that are always null.

Before its first batch Spark compares the states of a checkpoint with those of the query, but only by number and types
of columns: a count and a sum of integers are both a bigint. The digits of a few decimals tell what the states mean.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from functools import reduce
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from anabranch.aggregates.aggregate import Aggregate, Types
from anabranch.spark.columns.keys import quoted
from anabranch.spark.columns.types import spark_of
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates

Fold = Callable[[str], str]
Digits = tuple[tuple[int, int], ...]
# Part of every fingerprint: another number refuses all checkpoints made before.
_LAYOUT = 1
_MARK = "__anabranch_fingerprint_"
# Precisions and scales. More digits than 18 would take 24 bytes in a row of Spark's, these take 8.
_KINDS = [(precision, scale) for precision in range(1, 19) for scale in range(precision + 1)]
_COLUMNS = 3
_OTHER_VALUES = "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"
_OURS = re.compile(
    r"new value_schema=StructType\(.*"
    rf"(StructField\((max|{_MARK}\d),DecimalType\(\d+,\d+\),true\),?){{{_COLUMNS}}}\)"
)


def of_states(partial_states: PartialStates, types: Types, fold: Fold) -> list[Any]:
    """What states of these keys and aggregates mean, as JSON; `fold` makes names equal that are one to the session."""
    keys = [[fold(key), _type(types[key])] for key in partial_states.keys]
    return [keys, sorted(_described(bound, types, fold) for bound in partial_states.bounds)]


def digits(meaning: Any) -> Digits:
    """Precision and scale of each decimal; all differ, because Spark makes one column of two that are alike."""
    number = int.from_bytes(sha256(json.dumps([_LAYOUT, meaning]).encode()).digest())
    left, found = list(_KINDS), []
    for _ in range(_COLUMNS):
        number, at = divmod(number, len(left))
        found.append(left.pop(at))
    return tuple(found)


def aggregated(
    grouped: GroupedData, merged: Mapping[str, Column], fingerprint: Digits, *, lists: bool = False
) -> DataFrame:
    """The merged columns, from states with the fingerprint; `lists` where the columns are arrays.

    A column that is not selected later would be missing from the states: they would lie otherwise with another select.
    The condition names all of them, and none is looked at, because the first part always holds.
    """
    marks = {f"{_MARK}{i}": F.max(F.lit(None).cast(DecimalType(*kind))) for i, kind in enumerate(fingerprint)}
    out = grouped.agg(*(column.alias(name) for name, column in [*merged.items(), *marks.items()]))
    if not marks:
        return out
    held = [F.size(quoted(name)) if lists else quoted(name) for name in merged]
    always = reduce(Column.__and__, (F.col(name).isNull() for name in marks))
    return out.where(always | (F.hash(*held) == 0)).drop(*marks)


def slot_columns(fingerprint: Digits) -> str:
    """The columns as SQL declares them, each behind a comma."""
    return "".join(f", {_MARK}{i} decimal({p},{s})" for i, (p, s) in enumerate(fingerprint))


def refusal(error: str) -> str | None:
    """Why a checkpoint is refused, in one line, where an error says that its states are others; None where not."""
    if _OTHER_VALUES not in error or not _OURS.search(error):
        return None
    return (
        "the checkpoint holds states of other keys or aggregates (names, kinds, columns, types and sizes count) or of "
        "another version of anabranch; go on with those, or start anew with another checkpoint"
    )


def _described(bound: BoundAggregate, types: Types, fold: Fold) -> list[Any]:
    one = bound.aggregate
    inputs = [[fold(name), _type(types[name])] for name in one.inputs]
    states = [[column.name, _type(column.type), column.merge or ""] for column in bound.columns]
    return [fold(bound.name), type(one).__name__, inputs, _parameters(one, fold), states]


def _parameters(one: Aggregate, fold: Fold) -> list[Any]:
    """Those that change what a state means; columns are compared as the session compares names."""
    if not is_dataclass(one):
        return []
    given = [(field.name, getattr(one, field.name)) for field in fields(one) if field.name not in one.result_only]
    # A value of another sort may not tell whether it equals a name: an array compares each of its entries.
    return [[name, fold(value) if _is_input(value, one) else _plain(value)] for name, value in given]


def _is_input(value: Any, one: Aggregate) -> bool:
    return isinstance(value, str) and value in one.inputs


def _type(kind: pa.DataType) -> str:
    """As Spark writes it, which does not depend on the release of Arrow."""
    return spark_of(kind).simpleString()


def _plain(value: Any) -> Any:
    """A parameter as JSON, the same in every process; of an object that has no value, its type."""
    match value:
        case None | bool() | int() | str():
            return value
        case enum.Enum():
            return value.name
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case float() | complex() | bytes() | Decimal() | date() | time() | timedelta() | range() | pa.DataType():
            return repr(value)
        case tuple() | list():
            return [_plain(one) for one in value]
        case set() | frozenset():
            return _sorted(value)
        case Mapping():
            return _sorted(value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(_plain(getattr(value, field.name)) for field in fields(value))]
    return getattr(value, "__qualname__", type(value).__qualname__)


def _sorted(values: Iterable[Any]) -> list[Any]:
    return sorted((_plain(one) for one in values), key=json.dumps)
