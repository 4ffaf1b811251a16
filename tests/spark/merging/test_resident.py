"""States on slots: what is found again, what is handed on, and what workers ship."""

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
from anabranch.spark.merging.blobs import decode, encode
from anabranch.spark.merging.resident import Keep
from anabranch.spark.merging.slots import Ship, Slots
from anabranch.spark.settings import QuerySettings
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates


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
    bounds = [BoundAggregate(name, one, one.state({"v": value})) for name, one in aggregates.items()]
    return Held(PartialStates(("k",), tuple(bounds)))


def test_states_of_aggregates_in_another_order_are_found() -> None:
    table = pa.table({"k": [1, 2], "v": ["a", "b"]})
    old = slots(pa.string(), top=TopK("v", 1), n=Count())
    old.buckets = Map()
    [*_] = old.update(old.partial_states.add(table))

    reordered = slots(pa.string(), n=Count(), top=TopK("v", 1))
    reordered.buckets = old.buckets
    found = [row for part in reordered.update(reordered.partial_states.add(table)) for row in part.to_pylist()]
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
    partial_states = PartialStates(("k",), (BoundAggregate("n", Count(), Count().state({})),))
    keep = Keep(
        partial_states, [7], QuerySettings(PartialKeyGrouping(), 2, "adaptive", regime="resident", flush_every=10)
    )
    keep.init(handle := Handle())  # type: ignore[arg-type]
    blob = encode(partial_states.add(pa.table({"k": ["a", "b", "a"]})))

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


@pytest.mark.parametrize("to_aggregator", [False, True])
@given(n=st.integers(1, 200), seed=st.integers(0, 1000))
def test_what_a_worker_ships_does_not_depend_on_the_order_of_rows(to_aggregator: bool, n: int, seed: int) -> None:
    partial_states = PartialStates(("k",), (BoundAggregate("n", Count(), Count().state({})),))
    settings = QuerySettings(PartialKeyGrouping(), 1, "adaptive", regime="resident")
    ship = Ship(partial_states, settings, [7], split=to_aggregator)
    rows = pa.table({"k": [f"key {i // 2}" for i in range(n)]})
    permuted = rows.take(np.random.default_rng(seed).permutation(n))
    assert [*ship(iter(permuted.to_batches()))] == [*ship(iter(rows.to_batches()))]
