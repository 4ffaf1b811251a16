from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from anabranch.aggregates import Groups, Sum, merge_states
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
    assert Sum("x").native_result({"x": pa.int32()}) == "{sum}"
    assert Sum("x").native_result({"x": pa.float32()}) is None


def test_an_overflow_is_an_input_error() -> None:
    with pytest.raises(InputError, match="must fit in 64 bits"):
        Sum("x").add(Groups(np.zeros(2, np.int64), 1), pa.array([2**62, 2**62]))
