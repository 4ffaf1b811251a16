from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Groups
from anabranch.aggregates.encoding.halves import DecimalHalves, IntegerHalves

LARGEST = 10**38 - 1
edge_integers = st.sampled_from([2**63 - 1, -(2**63), 2**62, -(2**62), 2**32, -1, 0, 1])
edge_decimals = st.sampled_from([LARGEST, -LARGEST, 10**9, -(10**9), 10**9 - 1, -1, 0, 1])
integers = st.one_of(edge_integers, st.integers(-(2**63), 2**63 - 1))
unscaled = st.one_of(edge_decimals, st.integers(-LARGEST, LARGEST))


def decimals(values: Sequence[int]) -> pa.Array:
    exact = Context(prec=38)
    return pa.array([exact.scaleb(Decimal(value), -5) for value in values], pa.decimal128(38, 5))


KINDS = pytest.mark.parametrize(
    ("halves", "array", "values", "base"),
    [(IntegerHalves(), pa.array, integers, 2**32), (DecimalHalves(), decimals, unscaled, 10**9)],
    ids=["integers", "decimals"],
)


@KINDS
@given(data=st.data())
def test_no_sum_overflows_and_no_split_shows(halves, array, values, base, data) -> None:
    n = data.draw(st.integers(1, 50))
    numbers = data.draw(st.lists(values, min_size=n, max_size=n))
    cut = data.draw(st.integers(1, n))
    parts = [part for part in (numbers[:cut], numbers[cut:]) if part]
    states = [halves.sum(Groups(np.zeros(len(part), np.int64), 1), array(part)) for part in parts]
    together = Groups(np.zeros(len(parts), np.int64), 1)
    columns = [pa.concat_arrays(column) for column in zip(*states, strict=True)]
    low, high = halves.merge(together, *columns)
    assert int(low[0].as_py()) + int(high[0].as_py()) * base == sum(numbers)
    assert 0 <= low[0].as_py() < base
    assert [low, high] == list(halves.sum(Groups(np.zeros(n, np.int64), 1), array(numbers)))
    # Spark adds up each column by itself.
    alone = [sum(Fraction(value) for value in column.to_pylist()) for column in columns]
    assert alone[0] + alone[1] * base == sum(numbers)


@KINDS
def test_columns_have_the_types_of_states(halves, array, values, base) -> None:
    groups = Groups(np.array([0, 0, 2]), 3)
    for states in (halves.sum(groups, array([1, 2, 3])), halves.merge(groups, *halves.sum(groups, array([1, 2, 3])))):
        assert [state.type for state in states] == [column.type for column in halves.columns()]
        assert states[0].to_pylist() == [3, None, 3]


@pytest.mark.parametrize("name", ["it's", "a\\b", "{x}", "a\nb"])
def test_a_column_of_any_name_stays_one_literal(name) -> None:
    sql = IntegerHalves().sql(name).format(ansi="TRUE", sum_low="low", sum_high="high")
    literal = sql[sql.index("raise_error(") + 12 : sql.index(") ELSE")]
    shown = literal[1:-1].replace("\\'", "'").replace("\\\\", "\\")
    assert shown.startswith("the sum of " + name.replace("\n", "\\n") + " must fit in 64 bits")
