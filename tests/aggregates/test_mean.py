from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Groups, Mean, WeightedMean
from anabranch.errors import ConfigError


@given(st.lists(st.decimals(-(10**8), 10**8, places=2), min_size=1, max_size=20))
def test_decimals_are_averaged_with_four_more_digits_rounded_half_up(values: list[Decimal]) -> None:
    mean, type_ = Mean("x"), pa.decimal128(12, 2)
    found = mean.result(*mean.add(Groups(np.zeros(len(values), np.int64), 1), pa.array(values, type_)))
    assert found.type == pa.decimal128(16, 6)
    exact = Context(prec=60).divide(sum(values), Decimal(len(values)))
    assert found[0].as_py() == exact.quantize(Decimal("0.000001"), ROUND_HALF_UP)


def test_decimals_of_more_than_28_digits_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"at most 28 digits.*cast it"):
        Mean("x").state({"x": pa.decimal128(29, 2)})


def test_a_mean_of_bigints_does_not_overflow() -> None:
    mean = Mean("x")
    states = mean.add(Groups(np.zeros(2, np.int64), 1), pa.array([2**63 - 1, 2**63 - 1]))
    assert mean.result(*states).to_pylist() == [2.0**63]


def test_weights_that_cancel_have_no_mean() -> None:
    mean, groups = WeightedMean("x", "y"), Groups(np.array([0, 0, 1, 1]), 2)
    states = mean.add(groups, pa.array([1.0, 2.0, 3.0, 4.0]), pa.array([0.1, -0.1, 1e-300, 1e-300]))
    assert mean.result(*states).to_pylist() == [None, 3.5]


def test_weights_without_a_place_in_the_limbs_count() -> None:
    mean, groups = WeightedMean("x", "y"), Groups(np.array([0, 0, 1, 1]), 2)
    states = mean.add(groups, pa.array([1e300, 4e300, 1e-300, 4e-300]), pa.array([2e-300, 1e-300, 2e300, 1e300]))
    assert mean.result(*states).to_pylist() == pytest.approx([2e300, 2e-300], rel=1e-15)


def test_zero_over_a_negative_weight_is_plain_zero() -> None:
    mean, groups = WeightedMean("x", "y"), Groups(np.zeros(2, np.int64), 1)
    (found,) = mean.result(*mean.add(groups, pa.array([0.0, -0.0]), pa.array([-1.0, -2.0]))).to_pylist()
    assert (found, math.copysign(1.0, found)) == (0.0, 1.0)


def test_a_tuple_counts_only_where_value_and_weight_are_there() -> None:
    mean, groups = WeightedMean("x", "y"), Groups(np.zeros(4, np.int64), 1)
    states = mean.add(groups, pa.array([1.0, None, 3.0, 5.0]), pa.array([1, 7, None, 3]))
    assert mean.result(*states).to_pylist() == [4.0]
