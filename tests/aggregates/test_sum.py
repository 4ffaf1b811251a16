from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Groups, Sum, merge_states
from anabranch.aggregates.encoding.sums import nearest_doubles
from anabranch.errors import InputError

TYPES = {"x": pa.decimal128(12, 2)}


def test_merged_sums_of_decimals_keep_the_type_of_the_state() -> None:
    total, groups = Sum("x"), Groups(np.zeros(2, np.int64), 1)
    states = total.add(groups, pa.array([Decimal("1.50"), Decimal("-0.25")], TYPES["x"]))
    assert states[0].type == total.result_type(TYPES) == pa.decimal128(22, 2)
    merged = merge_states(total, total.state(TYPES), Groups(np.zeros(2, np.int64), 1), (pa.concat_arrays(states * 2),))
    assert merged[0].type == states[0].type and merged[0].to_pylist() == [Decimal("2.50")]


def test_spark_casts_sums_of_decimals_back() -> None:
    assert Sum("x").native_result(TYPES) == "CAST({sum} AS DECIMAL(22, 2))"
    assert Sum("x").native_result({"x": pa.float32()}) is None


@given(st.lists(st.decimals(-(10**25), 10**25, places=12), min_size=1, max_size=5), st.booleans())
def test_decimals_are_read_as_the_nearest_doubles(values: list[Decimal], small: bool) -> None:
    values = [value % 1000 if small else value for value in values]
    decimals = pa.array([None, *values], pa.decimal128(38, 12))[1:]
    assert nearest_doubles(decimals).tolist() == [float(value) for value in values]


def test_a_sum_of_integers_can_be_had_in_python() -> None:
    total, groups = Sum("x"), Groups(np.array([0, 0, 1]), 2)
    assert total.result(*total.add(groups, pa.array([2**62, -3, None]))).to_pylist() == [2**62 - 3, None]
    with pytest.raises(InputError, match="must fit in 64 bits"):
        total.result(*total.add(groups, pa.array([2**62, 2**62, 1])))


@pytest.mark.parametrize(
    ("type_", "value", "names"),
    [
        (pa.int64(), 2**62, ["sum_low", "sum_high"]),
        (pa.decimal128(38, 2), Decimal(9 * 10**35), ["sum_low", "sum_high"]),
        (pa.decimal128(28, 2), Decimal(9 * 10**25), ["sum"]),
    ],
    ids=str,
)
def test_a_partial_sum_beyond_its_type_is_no_error(type_, value, names) -> None:
    total, types = Sum("x"), {"x": type_}
    groups = Groups(np.zeros(9, np.int64), 1)
    states = total.add(groups, pa.array([value] * 9, type_))
    assert [column.name for column in total.state(types)] == names
    merged = merge_states(
        total,
        total.state(types),
        Groups(np.zeros(2, np.int64), 1),
        tuple(pa.concat_arrays([state] * 2) for state in states),
    )
    assert [state.type for state in merged] == [column.type for column in total.state(types)]
