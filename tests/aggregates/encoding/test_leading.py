from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates.encoding.leading import FINEST, LeadingBits

LEADING = LeadingBits("sum")
HUGE = sys.float_info.max
States = Sequence[np.ndarray]
finite = st.one_of(
    st.sampled_from([HUGE, -HUGE, 2.0**970, 2.0**969, -(2.0**969), 5e-324, -5e-324, 1e-310, 2.0**-128]),
    st.floats(allow_nan=False, allow_infinity=False),
)


def state(values: list[float]) -> States:
    return LEADING.sum(np.zeros(len(values), np.int64), np.array(values, np.float64), 1)


def stacked(parts: list[States]) -> list[np.ndarray]:
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def merged(parts: list[States]) -> States:
    return LEADING.merge(np.zeros(len(parts), np.int64), stacked(parts), 1)


def merged_by_column(parts: list[States]) -> States:
    """As Spark does it: the columns know nothing of each other."""
    top, *digits = stacked(parts)
    running = [np.cumsum(column)[-1:] for column in digits]
    return [top.max(keepdims=True), *running]


def drawn(data: st.DataObject, values: st.SearchStrategy[float], most: int = 60) -> list[float]:
    """Lists of all lengths alike."""
    n = data.draw(st.integers(1, most))
    return data.draw(st.lists(values, min_size=n, max_size=n))


def exact(states: States) -> Fraction:
    return Fraction(LEADING.integers(states)[0]) * Fraction(2) ** FINEST


@given(finite)
def test_one_value_is_held_exactly(value: float) -> None:
    assert exact(state([value])) == Fraction(value)


@given(st.data())
def test_each_value_is_off_by_less_than_53_bits_of_the_largest(data: st.DataObject) -> None:
    values = drawn(data, finite)
    error = abs(exact(state(values)) - sum(map(Fraction, values)))
    assert error <= len(values) * Fraction(2) ** -52 * max(abs(Fraction(value)) for value in values)


@pytest.mark.parametrize("merge", [merged, merged_by_column])
@given(data=st.data())
def test_neither_order_nor_splits_show(merge: Callable[[list[States]], States], data: st.DataObject) -> None:
    values = drawn(data, st.one_of(finite, st.just(math.inf)) if data.draw(st.booleans()) else finite)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=8)))
    parts = [values[start:end] for start, end in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    whole, found = state(values), merge([state(part) for part in data.draw(st.permutations(parts))])
    assert LEADING.special(found) == LEADING.special(whole)
    if not LEADING.special(whole)[0]:
        assert exact(found) == exact(whole)
    if merge is merged:
        assert [column.tobytes() for column in found] == [column.tobytes() for column in whole]


def test_low_bins_that_columns_still_hold_are_rounded_off() -> None:
    """Two parts of 2^20 tuples each, of which the higher one cancels: only its grid must remain."""
    low, high = [3.0e-30 / 7] * 2**20, [1e30, -1e30]
    assert exact(merged_by_column([state(low), state(high)])) == exact(state([*low, *high])) == 0


@pytest.mark.parametrize(
    ("values", "special"),
    [
        ([math.inf, HUGE, HUGE], math.inf),
        ([-math.inf, HUGE, HUGE], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([-math.nan, 1.0], math.nan),
        ([HUGE, HUGE], 0.0),
    ],
)
def test_infinities_and_nan_are_kept_apart_from_sums(values: list[float], special: float) -> None:
    for states in (state(values), merged([state([value]) for value in values])):
        assert repr(LEADING.special(states)) == repr(np.array([special]))


def test_nothing_is_nothing() -> None:
    assert not LEADING.holds(state([])).any() and exact(merged([state([])] * 3)) == 0


def test_a_state_has_the_columns_that_checkpoints_hold() -> None:
    columns = [(column.name, column.type, column.merge) for column in LEADING.columns()]
    sums = [(f"sum_lead_{j}", pa.float64(), "sum") for j in range(3)]
    assert columns == [("sum_top", pa.int64(), "max"), *sums]
    assert LEADING.width == len(columns) == len(state([1.0])) == len(state([]))
