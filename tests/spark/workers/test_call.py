"""Aggregates of a user's own: called with care, and named where they are wrong; without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anabranch.aggregates import Aggregate, Groups, StateColumn, Types
from anabranch.errors import InputError
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates

TYPES = {"key": pa.string(), "payload": pa.string()}
ROWS = pa.table({"key": ["a", "b", "a"], "payload": ['{"n": 1}', '{"n": 5}', '{"n": 3}']})
WHOSE = r"^aggregate best \(Best of payload\): "


@dataclass(frozen=True)
class Best(Aggregate):
    """The largest n of JSON: what a user may write, who expects no nulls."""

    added: Callable[[list[int]], Any] = lambda best: (pa.array(best),)
    shown: Callable[[pa.Array], Any] = lambda best: best

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("payload",)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("n", pa.int64(), "max"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        best = [0] * groups.n
        for code, text in zip(groups.codes.tolist(), columns[0].to_pylist(), strict=True):
            best[code] = max(best[code], json.loads(text)["n"])
        return self.added(best)

    def result(self, *states: pa.Array) -> pa.Array:
        return self.shown(states[0])

    def result_type(self, types: Types) -> pa.DataType:
        return pa.int64()


class Unfinished(Best):
    """Its state has two columns, so its result is not simply the state."""

    result = Aggregate.result

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (*super().state(types), StateColumn("m", pa.int64(), "max"))

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return super().add(groups, *columns) * 2


def bound(aggregate: Aggregate) -> BoundAggregate:
    return BoundAggregate("best", aggregate, aggregate.state(TYPES))


def partial_states(aggregate: Aggregate) -> PartialStates:
    return PartialStates(("key",), (bound(aggregate),))


def test_an_aggregate_that_expects_values_is_tried_on_no_rows():
    made = partial_states(Best())
    made.warm_up(TYPES)
    assert made.add(ROWS)["__anabranch_best__n"].to_pylist() == [3, 5]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            lambda best: (np.array(best),),
            r"add must return n as a pyarrow.Array, got numpy.ndarray; make one by pyarrow",
        ),
        (lambda best: (pa.array([7, *best]),), "add must return n with one entry per group, 2 here, got 3$"),
        (
            lambda best: pa.array(best),
            "add must return a tuple with an array for each state column, n, got pyarrow.Int64Array$",
        ),
        (lambda best: (pa.array(best),) * 2, "add must return a tuple with an array for each state column, n, got 2$"),
        (
            lambda best: (pa.array([each + 0.5 for each in best]),),
            "add must return n as int64, got double: Float value",
        ),
        (lambda best: 1 // 0, "add raised ZeroDivisionError: integer division or modulo by zero$"),
        (lambda best: [][0], "add raised IndexError: list index out of range$"),
    ],
)
def test_what_add_does_wrong_on_a_worker_names_the_aggregate(returned, message):
    with pytest.raises(InputError, match=WHOSE + message) as raised:
        partial_states(Best(returned)).add(ROWS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "returned", [lambda best: (pa.chunked_array([best]),), lambda best: [pa.array(best, pa.int8())]]
)
def test_a_state_may_come_in_chunks_in_a_list_and_of_a_smaller_type(returned):
    states = partial_states(Best(returned)).add(ROWS)["__anabranch_best__n"]
    assert (states.type, states.to_pylist()) == (pa.int64(), [3, 5])


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (
            Best(lambda best: (pa.array([max(best)]),)),
            r"add raised ValueError: max\(\).*; it is tried on no rows before",
        ),
        (Best(lambda best: (np.array(best),)), "add must return n as a pyarrow.Array, got numpy.ndarray"),
        (Best(shown=lambda best: best.to_numpy()), "result must return best as a pyarrow.Array, got numpy.ndarray"),
        (Best(shown=lambda best: best.mean), "result raised AttributeError: .* has no attribute 'mean'"),
        (Unfinished(), "result raised NotImplementedError: Unfinished must define result or native_result"),
    ],
)
def test_a_mistake_that_shows_without_rows_is_found_on_the_driver(aggregate, message):
    with pytest.raises(InputError, match=WHOSE.replace("Best", type(aggregate).__name__) + message):
        partial_states(aggregate).warm_up(TYPES)


def test_what_result_does_wrong_with_rows_names_the_aggregate():
    states = [pa.array([3, 5])]
    with pytest.raises(InputError, match=WHOSE + "result must return best with one entry per group, 2 here, got 1$"):
        bound(Best(shown=lambda best: best.slice(1))).result(states, pa.int64())


def test_what_merge_does_wrong_names_the_aggregate():
    class Merging(Best):
        def merge(self, groups, *states):
            return states

    partials = pa.concat_tables([partial_states(Best()).add(ROWS)] * 2)
    with pytest.raises(InputError, match=r"best .*: merge must return n with one entry per group, 2 here, got 4$"):
        partial_states(Merging()).merge(partials)
