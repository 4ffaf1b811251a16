"""Blobs of states have the same types whatever the session's settings, and those of another query are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from anabranch.aggregates import Count, TopK
from anabranch.errors import ConfigError
from anabranch.spark.resident import Slots, decode, encode, hashes_of
from anabranch.spark.worker import Bound, Summary

ZONED, UTC = pa.timestamp("us", "Asia/Kathmandu"), pa.timestamp("us", "UTC")


class Map(dict[Any, Any]):
    """A map of a slot's state."""

    getValue, updateValue, containsKey = dict.get, dict.__setitem__, dict.__contains__


class Held(Slots):
    """A slot to which Spark brings no rows."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
        return iter(())


def slots(value: pa.DataType, **aggregates: Any) -> Slots:
    bounds = [Bound(name, one, one.state({"v": value})) for name, one in aggregates.items()]
    return Held(Summary(("k",), tuple(bounds)))


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (ZONED, UTC),
        (pa.timestamp("us"), pa.timestamp("us")),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.list_(pa.struct([("a", ZONED), ("b", pa.large_string())])), pa.list_(pa.struct({"a": UTC, "b": "string"}))),
        (pa.map_(pa.large_string(), ZONED), pa.map_(pa.string(), UTC)),
    ],
)
def test_blobs_have_the_same_types_whatever_the_settings(kind: pa.DataType, stored: pa.DataType) -> None:
    table = pa.table({"x": pa.nulls(2, kind)}, pa.schema([pa.field("x", kind)]))
    assert decode(encode(table)).schema == pa.schema([("x", stored)])


def test_the_slot_of_a_key_does_not_depend_on_the_time_zone() -> None:
    keys = [pa.array([[0], [3_600_000_000]], pa.list_(zone)) for zone in (ZONED, UTC)]
    first, second = (hashes_of(pa.table({"k": key}), ("k",)).tolist() for key in keys)
    assert first == second


def test_states_of_other_aggregates_or_types_are_refused() -> None:
    table = pa.table({"k": [1, 2], "v": ["a", "b"]})
    old = slots(pa.string(), top=TopK("v", 1), n=Count())
    old.buckets = Map()
    [*_] = old.update(old.summary.add(table))

    fewer = slots(pa.string(), top=TopK("v", 1))
    reordered = slots(pa.string(), n=Count(), top=TopK("v", 1))
    numbers = slots(pa.int64(), top=TopK("v", 1), n=Count())
    fewer.buckets = reordered.buckets = numbers.buckets = old.buckets
    with pytest.raises(ConfigError, match=r"hold k, top.heaviest, n.count, and the query now has k, top.heaviest; go"):
        [*_] = fewer.update(fewer.summary.add(table))
    with pytest.raises(ConfigError, match=r"top.heaviest has list<.*int64.* and list<.*string"):
        [*_] = numbers.update(numbers.summary.add(pa.table({"k": [1, 2], "v": [3, 4]})))
    found = [row for part in reordered.update(reordered.summary.add(table)) for row in part.to_pylist()]
    assert sorted((row["k"], row["__anabranch_n__count"]) for row in found) == [(1, 2), (2, 2)]
