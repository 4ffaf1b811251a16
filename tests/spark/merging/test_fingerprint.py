"""States carry a fingerprint of what they mean, so that Spark refuses a checkpoint of other aggregates."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DecimalType

from anabranch.aggregates import Aggregate, Count, Max, Min, Quantiles, StateColumn, Sum, TopK, Types, Variance
from anabranch.spark.merging.fingerprint import digits, of_states, refusal, slot_columns
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates

TYPES = {"key": pa.string(), "v": pa.int64(), "w": pa.int64()}


def meaning(types: Types = TYPES, keys: tuple[str, ...] = ("key",), fold: Any = str, **aggregates: Aggregate) -> Any:
    bounds = tuple(BoundAggregate(name, one, one.state(types)) for name, one in aggregates.items())
    return of_states(PartialStates(keys, bounds), types, fold)


def test_the_order_of_writing_does_not_count():
    assert meaning(n=Count(), s=Sum("v")) == meaning(s=Sum("v"), n=Count())


@pytest.mark.parametrize(
    "other",
    [
        {"s": Count()},
        {"s": Max("v")},
        {"t": Sum("v")},
        {"s": Sum("w")},
        {"s": Sum("v"), "n": Count()},
        {"s": Sum("v"), "types": {**TYPES, "v": pa.int32()}},
        {"s": Sum("v"), "types": {**TYPES, "key": pa.binary()}},
        {"s": Sum("v"), "keys": ("w",)},
        {"s": Sum("v"), "keys": ("key", "w")},
    ],
)
def test_name_kind_columns_types_and_keys_count(other):
    assert digits(meaning(**other)) != digits(meaning(s=Sum("v")))


def test_the_order_of_keys_counts_because_spark_looks_at_their_types_only():
    assert meaning(keys=("v", "w"), n=Count()) != meaning(keys=("w", "v"), n=Count())


def test_parameters_count_unless_only_results_look_at_them():
    assert meaning(top=TopK("v", 3)) != meaning(top=TopK("v", 4))
    assert meaning(q=Quantiles("v", (0.5,))) == meaning(q=Quantiles("v", (0.1, 0.9)))
    assert meaning(q=Quantiles("v", k=100)) != meaning(q=Quantiles("v", k=200))
    assert meaning(v=Variance("v")) == meaning(v=Variance("v", population=True))


def test_names_that_are_one_to_the_session_are_one():
    types = {"KEY": pa.string(), "V": pa.int64()}
    assert meaning(types, ("KEY",), str.lower, S=Sum("V")) == meaning(s=Sum("v"), fold=str.lower)
    assert meaning(types, ("KEY",), str, S=Sum("V")) != meaning(s=Sum("v"))


def half(value: float) -> float:
    return value / 2


@dataclass(frozen=True)
class Odd(Aggregate):
    """One of a user's own, with parameters of every sort."""

    parameter: Any

    inputs = ("v",)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("n", pa.int64(), "sum"),)

    def add(self, groups, *columns):
        raise NotImplementedError

    def result_type(self, types: Types) -> pa.DataType:
        return pa.int64()


@pytest.mark.parametrize(
    "parameter", [half, object(), {"b": 1, "a": (2.5, None)}, frozenset("ab"), pa.int64(), Count("v"), Min, b"x"]
)
def test_parameters_of_every_sort_are_written_alike_in_every_process(parameter):
    text = json.dumps(meaning(odd=Odd(parameter)))
    assert " at 0x" not in text
    assert text == json.dumps(meaning(odd=Odd(parameter)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), (2, 1)),
        ({"a": 1}, {"a": 2}),
        (1.5, 2.5),
        (Count("v"), Count()),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
        (np.array(["a", "v"]), np.array(["a", "b"])),
        (Decimal("1.0"), Decimal("1.5")),
        (dt.date(2026, 1, 1), dt.date(2026, 1, 2)),
        (dt.timedelta(minutes=1), dt.timedelta(hours=1)),
        (range(2), range(3)),
    ],
)
def test_values_of_parameters_count(one, other):
    assert meaning(odd=Odd(one)) != meaning(odd=Odd(other))


@given(st.text(), st.text())
def test_digits_are_decimals_that_spark_does_not_make_one_of(one, other):
    kinds = digits(one)
    assert len(set(kinds)) == len(kinds) == 3
    assert all(0 <= scale <= precision <= DecimalType(18).precision for precision, scale in kinds)
    assert (kinds == digits(other)) == (one == other)


def test_digits_are_the_same_in_every_release():
    """Or every checkpoint would be refused."""
    assert digits(meaning(n=Count())) == ((14, 5), (18, 4), (2, 0))
    assert slot_columns(((7, 3), (8, 0))) == (
        ", __anabranch_fingerprint_0 decimal(7,3), __anabranch_fingerprint_1 decimal(8,0)"
    )


OTHERS = (
    "[STREAM_FAILED] Query terminated with exception: [STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema "
    "does not match existing state value schema.\nPlease check number and type of fields.\n"
    "Existing value_schema=StructType(StructField(sum,LongType,true)) and "
    "new value_schema=StructType(StructField(sum,LongType,true){marks}).\nIf you want to force running"
)
NATIVE = "".join(f",StructField(max,DecimalType({p},{s}),true)" for p, s in ((7, 3), (8, 2), (1, 1)))
SLOTS = "".join(f",StructField(__anabranch_fingerprint_{i},DecimalType(7,{i}),true)" for i in range(3))


@pytest.mark.parametrize("marks", [NATIVE, SLOTS])
def test_a_refusal_is_told_in_one_line(marks):
    line = refusal(OTHERS.format(marks=marks))
    assert line is not None and "\n" not in line and "another checkpoint" in line


@pytest.mark.parametrize("text", [OTHERS.format(marks=""), NATIVE, "no luck"])
def test_what_is_no_refusal_of_ours_is_left_alone(text):
    assert refusal(text) is None
