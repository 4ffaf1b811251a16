from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import DistinctCount, Groups
from anabranch.aggregates.encoding.hyperloglog import HyperLogLog
from anabranch.errors import InputError


def sketch(values: Sequence[object], type_: pa.DataType, lg_k: int = 12) -> bytes:
    groups = Groups(np.zeros(len(values), np.int64), 1)
    data: bytes = DistinctCount("x", lg_k).add(groups, pa.array(values, type_))[0][0].as_py()
    return data


# The coupons are those of Spark's `hll_sketch_agg(value, 12)`.
@pytest.mark.parametrize(
    ("values", "type_", "coupons"),
    [
        ([1, 2, 3, 2], pa.int64(), ["2bf2fb06", "75816607", "862ff90d"]),
        ([3, 2, 1], pa.int8(), ["2bf2fb06", "75816607", "862ff90d"]),
        (["a", "", "hello world, this is long", None], pa.string(), ["2f823b04", "530feb04"]),
    ],
)
def test_few_values_are_a_sorted_list_of_datasketches_coupons(
    values: list[object], type_: pa.DataType, coupons: list[str]
) -> None:
    ordered = sorted(coupons, key=lambda coupon: bytes.fromhex(coupon)[::-1])
    assert sketch(values, type_).hex() == f"0201070c0308{len(coupons):02x}08" + "".join(ordered)


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.int32()])
def test_a_slice_has_the_sketch_of_its_values(type_: pa.DataType) -> None:
    values = [1, 22, 333, 4444, 55555] if type_ == pa.int32() else [b"1", b"22", b"333", b"4444", b"55555"]
    part = pa.array(values, type_)[2:4]
    found = DistinctCount("x").add(Groups(np.zeros(2, np.int64), 1), part)[0][0].as_py()
    assert found == sketch(values[2:4], type_)


@given(st.integers(4, 12), st.integers(0, 800), st.integers(1, 5))
def test_merged_parts_have_the_bytes_of_the_whole(lg_k: int, n: int, n_parts: int) -> None:
    distinct, values = DistinctCount("x", lg_k), pa.array(np.arange(n))
    whole = distinct.add(Groups(np.zeros(n, np.int64), 1), values)[0]
    parts = distinct.add(Groups(np.arange(n) % n_parts, n_parts), values)[0]
    assert distinct.merge(Groups(np.zeros(n_parts, np.int64), 1), parts)[0].equals(whole)


@pytest.mark.parametrize(
    ("n", "mode", "lg_size"), [(0, 0, 3), (7, 0, 3), (8, 1, 5), (24, 1, 5), (25, 1, 6), (380, 1, 9), (400, 2, 0)]
)
def test_a_sketch_grows_from_list_to_set_to_registers(n: int, mode: int, lg_size: int) -> None:
    data = sketch(list(range(n)), pa.int64())
    assert data[7] & 3 == mode and data[4] == lg_size


def test_registers_hold_the_largest_value_and_their_sums() -> None:
    values = list(range(3000))
    data = sketch(values, pa.int64(), lg_k=6)
    registers = np.frombuffer(data[40:], np.uint8).astype(int)
    assert len(registers) == 64
    low, high = np.frombuffer(data[16:32], np.float64)
    assert low == sum(2.0**-r for r in registers if r < 32) and high == sum(2.0**-r for r in registers if r >= 32)
    assert int.from_bytes(data[32:36], "little") == np.count_nonzero(registers == 0)
    halves = [np.frombuffer(sketch(part, pa.int64(), 6)[40:], np.uint8) for part in (values[:1500], values[1500:])]
    assert registers.tolist() == np.maximum(*halves).tolist()


def test_sketches_of_no_group_are_no_sketches() -> None:
    empty = HyperLogLog(12).of(Groups(np.zeros(0, np.int64), 0), np.zeros(0, np.int64))
    assert len(empty) == 0 and len(HyperLogLog(12).merge(Groups(np.zeros(0, np.int64), 0), empty)) == 0


@pytest.mark.parametrize("lg_k", [4, 11, 13, 16])
@pytest.mark.parametrize("n", [0, 3, 100, 3000])
def test_sketches_of_another_size_are_refused(n: int, lg_k: int) -> None:
    stored = pa.array([sketch([1], pa.int64(), lg_k), sketch(list(range(n)), pa.int64()), None])
    with pytest.raises(InputError, match=r"must have lg_k = .* go on with lg_k=12, or start anew with another"):
        DistinctCount("x", lg_k).merge(Groups(np.zeros(3, np.int64), 1), stored)


def test_registers_that_are_cut_off_are_refused() -> None:
    stored = pa.array([sketch(list(range(3000)), pa.int64())[:-1]])
    with pytest.raises(InputError, match="must have 4136 bytes, got 4135"):
        DistinctCount("x").merge(Groups(np.zeros(1, np.int64), 1), stored)
