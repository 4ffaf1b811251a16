"""Blobs of states have the same types whatever the session's settings, and do not depend on the order of rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from anabranch.aggregates import Count, TopK
from anabranch.groupings import PartialKeyGrouping
from anabranch.spark.merging.resident import Keep, Slots, _Ship, decode, encode, hashes_of, split
from anabranch.spark.settings import Settings
from anabranch.spark.workers.worker import Bound, Summary

ZONED, UTC = pa.timestamp("us", "Asia/Kathmandu"), pa.timestamp("us", "UTC")


class Map(dict[Any, Any]):
    """A map of a slot's state."""

    getValue, updateValue, containsKey = dict.get, dict.__setitem__, dict.__contains__

    def values(self) -> Any:
        return list(super().values())


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


def test_states_of_aggregates_in_another_order_are_found() -> None:
    table = pa.table({"k": [1, 2], "v": ["a", "b"]})
    old = slots(pa.string(), top=TopK("v", 1), n=Count())
    old.buckets = Map()
    [*_] = old.update(old.summary.add(table))

    reordered = slots(pa.string(), n=Count(), top=TopK("v", 1))
    reordered.buckets = old.buckets
    found = [row for part in reordered.update(reordered.summary.add(table)) for row in part.to_pylist()]
    assert sorted((row["k"], row["__anabranch_n__count"]) for row in found) == [(1, 2), (2, 2)]


class Handle:
    """What Spark offers a slot: a map, a value and timers."""

    def __init__(self) -> None:
        self.timers: list[int] = []
        self.buckets = Map()

    def getMapState(self, *_: str) -> Map:
        return self.buckets

    def getValueState(self, *_: str) -> Any:
        return SimpleNamespace(get=lambda: (2,))

    def listTimers(self) -> list[int]:
        return self.timers

    def registerTimer(self, due: int) -> None:
        self.timers.append(due)

    def deleteTimer(self, due: int) -> None:
        self.timers.remove(due)


def test_a_worker_hands_on_what_it_holds_in_a_batch_without_rows_for_it() -> None:
    summary = Summary(("k",), (Bound("n", Count(), Count().state({})),))
    keep = Keep(summary, [7], Settings(PartialKeyGrouping(), 2, "adaptive", regime="resident", flush_every=10))
    keep.init(handle := Handle())  # type: ignore[arg-type]
    blob = encode(summary.add(pa.table({"k": ["a", "b", "a"]})))

    def batch(number: int, *blobs: bytes | None) -> list[Any]:
        """What the batch gives: its rows, then, where Spark finds one due, the timer."""
        time = SimpleNamespace(getCurrentWatermarkInMs=lambda: 100 * number)
        due = handle.timers[:]
        given = [*keep.handleInputRows((0,), iter([Row(batch=number, blob=one) for one in blobs]), time)]
        if due and handle.timers == due:
            handle.timers.clear()
            given += keep.handleExpiredTimer((0,), time, None)
        return [decode(row["blob"])["__anabranch_n__count"].to_pylist() for row in given]

    assert [batch(0, blob), batch(1, blob), batch(2, blob)] == [[], [], []]
    assert len(handle.timers) == 1
    (found,) = batch(3, None)
    assert sorted(found) == [3, 6]
    assert [batch(4, None), handle.timers, handle.buckets] == [[], [], {}]


@given(n=st.integers(1, 200), seed=st.integers(0, 1000))
def test_the_blobs_for_the_aggregator_do_not_depend_on_the_order_of_rows(n: int, seed: int) -> None:
    """Or Spark would take a task that runs again for another, because rows arrive in any order."""
    rows = pa.table({"k": [f"key {i}" for i in range(n)], "v": range(n)})
    permuted = rows.take(np.random.default_rng(seed).permutation(n))
    assert split(permuted, ("k",), [7, 8, 9]) == split(rows, ("k",), [7, 8, 9])


@pytest.mark.parametrize("to_aggregator", [False, True])
@given(n=st.integers(1, 200), seed=st.integers(0, 1000))
def test_nor_does_what_a_worker_ships(to_aggregator: bool, n: int, seed: int) -> None:
    summary = Summary(("k",), (Bound("n", Count(), Count().state({})),))
    settings = Settings(PartialKeyGrouping(), 1, "adaptive", regime="resident")
    ship = _Ship(summary, settings, [7], split=to_aggregator)
    rows = pa.table({"k": [f"key {i // 2}" for i in range(n)]})
    permuted = rows.take(np.random.default_rng(seed).permutation(n))
    assert [*ship(iter(permuted.to_batches()))] == [*ship(iter(rows.to_batches()))]
