"""Sums, means and variances of doubles near the end of their range: the same however the tuples are split."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Aggregate, Groups, Mean, Sum, Variance, WeightedMean, merge_states

MAX = sys.float_info.max
TYPES = {"x": pa.float64(), "w": pa.float64()}
Row = tuple[float, ...]
edge = st.sampled_from(
    [MAX, math.nextafter(MAX, 0), 1e308, 2.0**1023, 2.0**970, 2.0**969, 2.0**971, 1e300, 1.0, 1e-300]
)
numbers = st.one_of(edge, edge.map(lambda x: -x))


def state(aggregate: Aggregate, rows: list[Row]) -> tuple[pa.Array, ...]:
    columns = zip(*rows, strict=True)
    return aggregate.add(Groups(np.zeros(len(rows), np.int64), 1), *(pa.array(column) for column in columns))


def result(aggregate: Aggregate, parts: list[list[Row]]) -> float | None:
    columns = tuple(map(pa.concat_arrays, zip(*(state(aggregate, part) for part in parts), strict=True)))
    groups = Groups(np.zeros(len(parts), np.int64), 1)
    found: float | None = aggregate.result(*merge_states(aggregate, aggregate.state(TYPES), groups, columns))[0].as_py()
    return found


def splits(rows: list[Row]) -> Iterator[list[list[Row]]]:
    """Every order, whole, in two parts, and row by row."""
    for one in map(list, permutations(rows)):
        yield [one]
        yield [[row] for row in one]
        yield from ([one[:cut], one[cut:]] for cut in range(1, len(one)))


@pytest.mark.parametrize(
    ("aggregate", "rows", "expected"),
    [
        (Sum("x"), [(1e308,), (1e308,), (-1e308,), (-1e308,)], 0.0),
        (Sum("x"), [(MAX,), (MAX,), (-MAX,)], MAX),
        (Sum("x"), [(MAX,), (2.0**969,), (2.0**969,)], math.inf),
        (Sum("x"), [(MAX,), (2.0**969,)], MAX),
        (Sum("x"), [(MAX,), (2.0**970,), (-(2.0**968),)], MAX),
        (Sum("x"), [(1e308,), (1e308,), (-math.inf,)], -math.inf),
        (Sum("x"), [(1e308,), (math.inf,), (-math.inf,)], math.nan),
        (Sum("x"), [(2.0**128,), (-(2.0**128),), (1.0,)], 1.0),
        (Mean("x"), [(1e308,), (1e308,), (-1e308,), (-1e308,)], 0.0),
        (Mean("x"), [(MAX,), (MAX,), (MAX,)], MAX),
        (Mean("x"), [(1e308,), (1e308,), (-math.inf,)], -math.inf),
        (WeightedMean("x", "w"), [(1e300, 1e8), (1e300, 1e8), (-1e300, 1e8), (-1e300, 1e8)], 0.0),
        (WeightedMean("x", "w"), [(0.5, 1e308), (1.5, 1e308), (1.0, 1e308)], 1.0),
        (WeightedMean("x", "w"), [(1e300, 1e300), (1.0, 1.0), (-1.0, 1.0)], math.inf),
        (WeightedMean("x", "w"), [(1e300, 1e300), (-1e300, 1e300)], math.nan),
        (WeightedMean("x", "w"), [(1e300, -1e300), (1.0, 1.0)], math.inf),
        (WeightedMean("x", "w"), [(1.0, 1e308), (1.0, -1e308)], None),
        (Variance("x"), [(1e153,), (1e153,), (-1e153,), (-1e153,)], 4e306 / 3),
        (Variance("x"), [(1e200,), (1.0,), (1.0,)], math.inf),
        (Variance("x"), [(1e308,), (1e308,), (1e308,)], math.inf),
        (Variance("x"), [(math.inf,), (1e308,), (1e308,)], math.nan),
    ],
    ids=repr,
)
def test_a_partial_sum_never_decides(aggregate: Aggregate, rows: list[Row], expected: float | None) -> None:
    found = {repr(result(aggregate, parts)) for parts in splits(rows)}
    assert len(found) == 1
    value = result(aggregate, [rows])
    assert value == expected if expected is None else value == pytest.approx(expected, rel=1e-15, abs=0, nan_ok=True)


@given(st.data())
def test_a_sum_and_a_mean_are_those_of_exact_arithmetic(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 40))
    values = data.draw(st.lists(numbers, min_size=n, max_size=n))
    total = sum(map(Fraction, values))
    error = n * Fraction(2) ** -52 * Fraction(max(map(abs, values)))
    for aggregate, wanted, off in ((Sum("x"), total, error), (Mean("x"), total / n, error / n)):
        found = result(aggregate, [[(value,)] for value in values])
        assert found is not None and rounded(wanted - off) <= found <= rounded(wanted + off)


def rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
