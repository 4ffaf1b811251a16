"""What every aggregate promises: neither order nor splits show in its state, and its result is the textbook's."""

from __future__ import annotations

import math
import pickle
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import (
    ALL,
    Aggregate,
    CollectN,
    Count,
    DistinctCount,
    Groups,
    Max,
    Mean,
    Min,
    Quantiles,
    Sum,
    TopK,
    Variance,
    WeightedMean,
    merge_states,
)
from anabranch.errors import ConfigError

Row = tuple[Any, ...]


def rank(value: Any) -> tuple[bool, Any]:
    """Spark's order, in which NaN is the largest."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def total(values: list[float]) -> float:
    special = [v for v in values if not math.isfinite(v)]
    return sum(special) if special else math.fsum(values)


def mean(values: list[float]) -> float:
    special = [v for v in values if not math.isfinite(v)]
    return sum(special) if special else float(sum(map(Fraction, values)) / len(values))


def variance(values: list[float], divisor: int) -> float | None:
    if divisor < 1:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    middle = sum(map(Fraction, values)) / len(values)
    return float(sum((Fraction(v) - middle) ** 2 for v in values) / divisor)


def weighted_mean(pairs: list[tuple[float, float]]) -> float | None:
    weights = sum(Fraction(w) for _, w in pairs)
    return float(sum(Fraction(v) * Fraction(w) for v, w in pairs) / weights) if weights else None


def heaviest(values: list[Any], k: int) -> list[dict[str, Any]]:
    ordered = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"value": value, "count": count} for value, count in ordered[:k]]


@dataclass(frozen=True)
class Case:
    """An aggregate, the types and values of its columns, and what its result should be for values that are not null."""

    aggregate: Aggregate
    type: pa.DataType
    values: st.SearchStrategy[Any]
    expected: Callable[[list[Any]], Any] | None
    nothing: Any = None

    @property
    def types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys(self.aggregate.inputs, self.type)


# Where squares and products are exact as well.
magnitudes = st.floats(2.0**-44, 2.0**63, exclude_max=True)
exact = st.one_of(st.sampled_from([0.0, -0.0, 0.1, 1e16]), magnitudes, magnitudes.map(lambda x: -x))
doubles = st.one_of(exact, st.sampled_from([math.nan, math.inf, -math.inf]))
# What has no place in the limbs, and what is nearly or indeed beyond doubles.
extremes = st.sampled_from(
    [sys.float_info.max, 1e308, 2.0**1023, 2.0**970, 2.0**969, 1.4e39, 2.0**128, 1.0, 1e-30, 1e-300, 5e-324, 0.0]
)
wide = st.one_of(extremes, extremes.map(lambda x: -x), st.floats(), st.sampled_from([math.nan, math.inf, -math.inf]))
integers = st.integers(-(2**40), 2**40)
text = st.one_of(
    st.sampled_from(["", "a", "ä", "नेपाल"]), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)

CASES = [
    Case(Count(), pa.int64(), integers, None),
    Case(Count("x"), pa.string(), text, len, 0),
    Case(Sum("x"), pa.int64(), integers, sum),
    Case(Sum("x"), pa.decimal128(38, 2), st.decimals(-(10**36) + 1, 10**36 - 1, places=2), None),
    Case(Sum("x"), pa.float64(), doubles, total),
    Case(Mean("x"), pa.int32(), st.integers(-(2**31), 2**31 - 1), lambda v: sum(v) / len(v)),
    Case(Mean("x"), pa.float64(), doubles, mean),
    Case(WeightedMean("x", "y"), pa.float64(), exact, weighted_mean),
    Case(
        WeightedMean("x", "y"),
        pa.decimal128(20, 4),
        st.decimals(-(10**9), 10**9, places=4),
        lambda pairs: weighted_mean([(float(value), float(weight)) for value, weight in pairs]),
    ),
    Case(Variance("x"), pa.float64(), doubles, lambda v: variance(v, len(v) - 1)),
    Case(Variance("x", population=True), pa.float64(), doubles, lambda v: variance(v, len(v))),
    Case(Sum("x"), pa.float64(), wide, None),
    Case(Mean("x"), pa.float64(), wide, None),
    Case(WeightedMean("x", "y"), pa.float64(), wide, None),
    Case(Variance("x"), pa.float64(), wide, None),
    Case(Min("x"), pa.float64(), doubles, lambda v: min(v, key=rank) + 0.0),
    Case(Min("x"), pa.string(), text, lambda v: min(v, key=str.encode)),
    Case(Max("x"), pa.float64(), doubles, lambda v: max(v, key=rank) + 0.0),
    Case(Max("x"), pa.bool_(), st.booleans(), max),
    Case(CollectN("x", 3), pa.float64(), doubles, lambda v: [x + 0.0 for x in sorted(v, key=rank)[:3]], []),
    Case(TopK("x", 2), pa.string(), text, lambda v: heaviest(v, 2), []),
    Case(DistinctCount("x", lg_k=5), pa.string(), text, None),
    Case(DistinctCount("x"), pa.int64(), integers, None),
    Case(Quantiles("x"), pa.float64(), doubles, None),
]
IDS = [f"{case.aggregate!r} of {case.type}" for case in CASES]
every_case = pytest.mark.parametrize("case", CASES, ids=IDS)


def rows_of(case: Case) -> st.SearchStrategy[list[Row]]:
    columns = [st.one_of(st.none(), case.values) for _ in case.aggregate.inputs]
    return st.lists(st.tuples(st.sampled_from(["k", "", None, "é"]), *columns), max_size=30)


def state_of(case: Case, rows: list[Row]) -> tuple[pa.Table, tuple[pa.Array, ...]]:
    columns = list(zip(*rows, strict=True)) or [()] * (1 + len(case.aggregate.inputs))
    groups, keys = Groups.of(pa.table({"key": pa.array(columns[0], pa.string())}), ["key"])
    return keys, case.aggregate.add(groups, *(pa.array(column, case.type) for column in columns[1:]))


def merged(case: Case, parts: list[list[Row]]) -> tuple[pa.Table, tuple[pa.Array, ...]]:
    states = [state_of(case, part) for part in parts]
    groups, keys = Groups.of(pa.concat_tables(keys for keys, _ in states), ["key"])
    whole = tuple(pa.concat_arrays(column) for column in zip(*(state for _, state in states), strict=True))
    return keys, merge_states(case.aggregate, case.aggregate.state(case.types), groups, whole)


def by_key(keys: pa.Table, columns: tuple[pa.Array, ...]) -> dict[str | None, str]:
    """Printed, because NaN is not equal to itself."""
    entries = zip(*(column.to_pylist() for column in columns), strict=True)
    return dict(zip(keys["key"].to_pylist(), map(repr, entries), strict=True))


def result_of(case: Case, states: tuple[pa.Array, ...]) -> pa.Array:
    if not case.aggregate.native_result(case.types):
        return case.aggregate.result(*states)
    return states[0] if len(states) == 1 else whole(*states)


def whole(low: pa.Array, high: pa.Array) -> pa.Array:
    """What Spark makes of two halves; of decimals the text of their unscaled integers, which may be too long."""
    decimal = pa.types.is_decimal(high.type)
    pairs = zip(low.to_pylist(), high.to_pylist(), strict=True)
    sums = [None if h is None else rest + int(h) * (10**9 if decimal else 2**32) for rest, h in pairs]
    return pa.array([repr(one) for one in sums]) if decimal else pa.array(sums, pa.int64())


@pytest.mark.parametrize("case", [one for one in CASES if isinstance(one.aggregate, DistinctCount | Quantiles)])
def test_who_asks_in_python_for_what_only_spark_computes_is_told(case: Case) -> None:
    name = type(case.aggregate).__name__
    with pytest.raises(NotImplementedError, match=f"only Spark computes the result of {name}.*native_result"):
        case.aggregate.result(pa.array([b""]))


def test_every_aggregate_has_a_case() -> None:
    assert {type(case.aggregate) for case in CASES} == set(ALL)


@every_case
@given(data=st.data())
def test_neither_order_nor_splits_show_in_a_state(case: Case, data: st.DataObject) -> None:
    rows = data.draw(rows_of(case))
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    expected = by_key(*state_of(case, rows))
    assert by_key(*state_of(case, shuffled)) == expected
    assert by_key(*merged(case, parts)) == expected


@every_case
@given(data=st.data())
def test_every_row_may_be_a_partial_state_of_its_own(case: Case, data: st.DataObject) -> None:
    rows = data.draw(rows_of(case).filter(len))
    assert by_key(*merged(case, [[row] for row in rows])) == by_key(*state_of(case, rows))


@pytest.mark.parametrize("case", [case for case in CASES if case.aggregate.state(case.types)[0].merge == "sum"])
@given(data=st.data())
def test_plain_merges_of_the_columns_give_the_same_result(case: Case, data: st.DataObject) -> None:
    rows = data.draw(rows_of(case).filter(len))
    half = len(rows) // 2
    states = [state_of(case, part) for part in (rows[:half], rows[half:])]
    groups, keys = Groups.of(pa.concat_tables(keys for keys, _ in states), ["key"])
    columns = [pa.concat_arrays(column) for column in zip(*(state for _, state in states), strict=True)]
    merges = [column.merge for column in case.aggregate.state(case.types)]
    alone = tuple(getattr(groups, str(merge))(column) for merge, column in zip(merges, columns, strict=True))
    expected_keys, expected = state_of(case, rows)
    results = by_key(keys, (result_of(case, alone),))
    assert results == by_key(expected_keys, (result_of(case, expected),))


@pytest.mark.parametrize("case", [case for case in CASES if case.expected])
@given(data=st.data())
def test_results_are_the_textbooks(case: Case, data: st.DataObject) -> None:
    rows = data.draw(rows_of(case))
    keys, states = state_of(case, rows)
    values: defaultdict[str | None, list[Any]] = defaultdict(list)
    for key, *entry in rows:
        values[key] += [entry[0] if len(entry) == 1 else tuple(entry)] if None not in entry else []
    assert case.expected
    expected = {key: case.expected(values[key]) if values[key] else case.nothing for key in {row[0] for row in rows}}
    found = result_of(case, states)
    # −0.0 and 0.0 are the same sum.
    assert by_key(keys, (found,)) == {key: repr((value,)).replace("(-0.0,", "(0.0,") for key, value in expected.items()}


@every_case
def test_types_are_the_declared_ones(case: Case) -> None:
    for rows in ([], [("k", *[None] * len(case.aggregate.inputs))]):
        _, states = state_of(case, rows)
        columns = case.aggregate.state(case.types)
        assert [state.type for state in states] == [column.type for column in columns]
        assert len({column.name for column in columns}) == len(columns)
        if not case.aggregate.native_result(case.types):
            assert case.aggregate.result(*states).type == case.aggregate.result_type(case.types)


@every_case
def test_aggregates_are_frozen_and_picklable(case: Case) -> None:
    assert pickle.loads(pickle.dumps(case.aggregate)) == case.aggregate
    with pytest.raises(FrozenInstanceError):
        setattr(case.aggregate, next(iter(vars(case.aggregate))), "y")


@pytest.mark.parametrize("case", [case for case in CASES if not isinstance(case.aggregate, Count)])
def test_a_type_that_cannot_be_aggregated_is_a_config_error(case: Case) -> None:
    with pytest.raises(ConfigError, match=r"'x' is map<"):
        case.aggregate.state(dict.fromkeys(case.aggregate.inputs, pa.map_(pa.string(), pa.int64())))


@pytest.mark.parametrize(
    "make",
    [
        lambda: CollectN("x", 0),
        lambda: TopK("x", 0),
        lambda: TopK("x", 5, capacity=4),
        lambda: DistinctCount("x", lg_k=3),
        lambda: DistinctCount("x", lg_k=22),
        lambda: Quantiles("x", ()),
        lambda: Quantiles("x", (0.5, 1.1)),
        lambda: Quantiles("x", k=7),
    ],
)
def test_a_parameter_outside_its_rule_is_a_config_error(make: Callable[[], Aggregate]) -> None:
    with pytest.raises(ConfigError, match=r"must be .* got .*; "):
        make()


@every_case
@given(data=st.data())
def test_slices_of_arrays_are_read_where_they_start(case: Case, data: st.DataObject) -> None:
    values = data.draw(st.lists(case.values, min_size=3, max_size=3))
    groups, n = Groups(np.array([0, 1, 0]), 2), len(case.aggregate.inputs)
    whole = case.aggregate.add(groups, *[pa.array(values, case.type)] * n)
    sliced = case.aggregate.add(groups, *[pa.array([None, *values, None], case.type)[1:4]] * n)
    assert repr([state.to_pylist() for state in sliced]) == repr([state.to_pylist() for state in whole])
