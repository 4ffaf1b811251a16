from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anabranch.aggregates import Groups
from anabranch.aggregates.encoding.binned import FixedPoint, quotients

SUMS = FixedPoint("sum")
PRODUCTS = FixedPoint("product", unit=-192, n_limbs=10)
magnitudes = st.floats(2.0**-75, 2.0**128, exclude_max=True)
signed = st.one_of(st.just(0.0), magnitudes, magnitudes.map(lambda x: -x))
anything = st.floats(-1e300, 1e300)


def sums(values: list[float]) -> tuple[pa.Array, ...]:
    return SUMS.sum(Groups(np.zeros(len(values), np.int64), 1), pa.array(values, pa.float64()))


def holds_more(point: FixedPoint, states: tuple[pa.Array, ...]) -> bool:
    """Whether there were values without a place in the limbs."""
    return any(column[0].as_py() != 0 for column in states[point.n_limbs + 1 :])


@given(st.lists(signed, min_size=1, max_size=50))
def test_sums_are_exact_and_rounded_once(values: list[float]) -> None:
    states = sums(values)
    assert not holds_more(SUMS, states)
    assert SUMS.totals(states)[0] == math.fsum(values)
    assert SUMS.exact(states) == (sum(map(Fraction, values)) * 2**128, -128)


@given(st.lists(anything, min_size=1, max_size=20))
def test_values_of_any_size_are_summed_up_to_rounding(values: list[float]) -> None:
    error = 1e-14 * math.fsum(map(abs, values)) + 5e-324
    assert abs(SUMS.totals(sums(values))[0] - math.fsum(values)) <= error


@pytest.mark.parametrize("value", [2.0**128, -(2.0**128), 1e-40, 5e-324, math.inf, -math.inf, 1e308])
def test_a_value_without_a_place_in_the_limbs_is_not_lost(value: float) -> None:
    states = sums([value, 1.0])
    assert holds_more(SUMS, states)
    assert SUMS.totals(states) == [value + 1.0]


@given(st.lists(signed, min_size=1, max_size=20))
def test_the_limbs_of_a_sum_have_one_form(values: list[float]) -> None:
    states = sums(values)
    for limb in states[: SUMS.n_limbs - 1]:
        assert -(2**31) <= limb[0].as_py() < 2**31
    parts = [sums([value]) for value in values]
    merged = SUMS.merge(Groups(np.zeros(len(values), np.int64), 1), map(pa.concat_arrays, zip(*parts, strict=True)))
    assert [limb.to_pylist() for limb in merged] == [limb.to_pylist() for limb in states]


@given(st.lists(st.tuples(signed, signed), min_size=1, max_size=20))
def test_products_are_exact(pairs: list[tuple[float, float]]) -> None:
    assume(all(x * y == 0 or 2.0**-86 <= abs(x * y) < 2.0**127 for x, y in pairs))
    x, y = (pa.array(column) for column in zip(*pairs, strict=True))
    states = PRODUCTS.sum_products(Groups(np.zeros(len(pairs), np.int64), 1), x, y)
    assert not holds_more(PRODUCTS, states)
    assert PRODUCTS.exact(states) == (sum(Fraction(a) * Fraction(b) for a, b in pairs) * 2**192, -192)


@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=10))
def test_products_of_any_size_are_summed_up_to_rounding(pairs: list[tuple[float, float]]) -> None:
    bound = float(min(Fraction(10) ** 308, sum(abs(Fraction(a) * Fraction(b)) for a, b in pairs)))
    assume(bound < 1e307)
    x, y = (pa.array(column) for column in zip(*pairs, strict=True))
    states = PRODUCTS.sum_products(Groups(np.zeros(len(pairs), np.int64), 1), x, y)
    expected = float(sum(Fraction(a) * Fraction(b) for a, b in pairs))
    assert abs(PRODUCTS.totals(states)[0] - expected) <= 1e-14 * bound + 1e-322


@pytest.mark.parametrize(("x", "y"), [(math.inf, 0.0), (math.nan, 0.0), (math.nan, 1.0)])
def test_a_product_that_is_no_number_makes_the_sum_none(x: float, y: float) -> None:
    states = PRODUCTS.sum_products(Groups(np.zeros(1, np.int64), 1), pa.array([x]), pa.array([y]))
    assert np.isnan(PRODUCTS.totals(states)[0])


def test_quotients_beyond_doubles_are_infinite_and_leave_the_others_as_they_are() -> None:
    numerators = np.array([2**1100, -(2**1100), 2**1100, 1], np.object_)
    assert quotients(numerators, np.array([1, 1, 2**90, 4], np.object_), 0).tolist() == [
        math.inf,
        -math.inf,
        2.0**1010,
        0.25,
    ]
