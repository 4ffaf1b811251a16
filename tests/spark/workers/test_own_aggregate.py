"""What a user's aggregate says of itself wrongly is one line that names it; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from anabranch.aggregates import Aggregate, Groups, StateColumn, Sum, Types
from anabranch.errors import ConfigError, InputError
from anabranch.spark.workers.own_aggregate import inputs_of, native_of, result_type_of, state_of
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates

TYPES = {"key": pa.string(), "v": pa.int64()}
COLUMNS = (StateColumn("n", pa.int64(), "sum"),)


@dataclass(frozen=True)
class Mine(Aggregate):
    """An aggregate whose every method says what the test wants."""

    says: Callable[[], Any]

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.says()

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return self.says()

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        return (groups.count(),)

    def native_result(self, types: Types) -> str | None:
        return self.says()

    def result_type(self, types: Types) -> pa.DataType:
        return self.says()


ASKED: dict[str, Callable[[Aggregate], Any]] = {
    "inputs": lambda one: inputs_of("mine", one),
    "state": lambda one: state_of("mine", one, TYPES),
    "native_result": lambda one: native_of("mine", one, TYPES, COLUMNS),
    "result_type": lambda one: result_type_of("mine", one, TYPES),
}


@pytest.mark.parametrize("method", ASKED)
def test_what_it_raises_names_the_aggregate_unless_it_is_an_error_of_ours(method):
    with pytest.raises(InputError, match=rf"^aggregate mine \(Mine\): {method} raised KeyError: 'zz'$"):
        ASKED[method](Mine(lambda: {}["zz"]))

    def refuse() -> None:
        raise ConfigError("Mine needs numbers")

    with pytest.raises(ConfigError, match=r"^Mine needs numbers$"):
        ASKED[method](Mine(refuse))


@pytest.mark.parametrize(
    ("method", "said", "message"),
    [
        ("inputs", "qty", r"inputs must be a tuple of names, got the text 'qty'; write \('qty',\)$"),
        ("inputs", None, "inputs must be a tuple of names of columns, got None$"),
        ("inputs", (3,), r"inputs must be a tuple of names of columns, got \(3,\)$"),
        ("state", None, "state must return a tuple of StateColumn, at least one, got None$"),
        ("state", (), r"state must return a tuple of StateColumn, at least one, got \(\)$"),
        ("state", COLUMNS[0], "state must return a tuple of StateColumn, at least one, got StateColumn"),
        ("state", ("n",), r"state must return a tuple of StateColumn, at least one, got \('n',\)$"),
        ("state", COLUMNS * 2, "state columns must differ in their names, got n, n$"),
        ("native_result", 5, "native_result must return SQL as text, or None, got int$"),
        ("native_result", "{m}", r"native_result may have n or ansi in braces, got '{m}'; write other braces twice$"),
        ("native_result", "{} + {n}", "native_result may have n or ansi in braces"),
        ("native_result", "{n.m}", "native_result may have n or ansi in braces"),
        ("native_result", "{n", "native_result may have n or ansi in braces"),
        ("result_type", "int64", "result_type must return a pyarrow.DataType, got str$"),
    ],
)
def test_what_it_says_wrongly_names_the_aggregate(method, said, message):
    with pytest.raises(InputError, match=rf"^aggregate mine \(Mine\): {message}"):
        ASKED[method](Mine(lambda: said))


def test_what_is_right_is_taken():
    assert inputs_of("mine", Mine(lambda: ["v"])) == ("v",)
    assert state_of("mine", Mine(lambda: [*COLUMNS]), TYPES) == COLUMNS
    assert native_of("mine", Mine(lambda: "if({ansi}, {n}, '{{')"), TYPES, COLUMNS) == "if({ansi}, {n}, '{{')"
    assert native_of("s", Sum("v"), TYPES, Sum("v").state(TYPES)) == Sum("v").native_result(TYPES)
    assert result_type_of("mine", Mine(pa.int64), TYPES) == pa.int64()


def test_the_result_is_asked_for_before_a_query_starts():
    class Counted(Mine):
        inputs = ("v",)

    partial_states = PartialStates(("key",), (BoundAggregate("mine", Counted(lambda: "{m}"), COLUMNS),))
    with pytest.raises(InputError, match=r"^aggregate mine \(Counted\): native_result may have n or ansi"):
        partial_states.warm_up(TYPES)


@pytest.mark.parametrize("name", ["s.0", "", "a b", "{n}", 3])
def test_the_name_of_a_state_column_is_an_identifier(name):
    with pytest.raises(ConfigError, match="the name of a state column must be an identifier, such as sum_low, got "):
        StateColumn(name, pa.int64())


def test_a_state_column_has_a_type_of_arrow():
    with pytest.raises(ConfigError, match=r"state column n must be a pyarrow.DataType, got 'int64'; write one such as"):
        StateColumn("n", "int64")  # type: ignore[arg-type]
