from __future__ import annotations

import struct
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Groups, Quantiles
from anabranch.aggregates.encoding.kll import Kll


def items_of(sketch: bytes) -> list[tuple[float, int]]:
    """Values and weights of a sketch of several values, read by the layout that DataSketches documents."""
    n, k, n_levels = struct.unpack_from("<qHB", sketch, 8)
    levels = [*struct.unpack_from(f"<{n_levels}i", sketch, 20)]
    capacity = sum(max(8, (2 * k * 2**depth // 3**depth + 1) // 2) for depth in range(n_levels))
    values = struct.unpack_from(f"<{capacity - levels[0]}d", sketch, 20 + 4 * n_levels + 16)
    assert len(sketch) == 20 + 4 * n_levels + 16 + 8 * len(values) and levels[0] >= 0
    weights = [1 << h for h in range(n_levels) for _ in range([*levels[1:], capacity][h] - levels[h])]
    assert sum(weights) == n
    return list(zip(values, weights, strict=True))


def sketch(values: np.ndarray, k: int = 8) -> pa.Array:
    return Kll(k).of(Groups(np.zeros(len(values), np.int64), 1), values.astype(float))


def largest_rank_error(items: list[tuple[float, int]]) -> float:
    """Of values 0, 1, 2 …: how far an item is from the values for which it stands."""
    ordered = sorted(items)
    ends = list(accumulate(weight for _, weight in ordered))
    return max(
        max(abs(value - end + 1), abs(end - weight - value)) for (value, weight), end in zip(ordered, ends, strict=True)
    )


@given(st.integers(2, 3000), st.integers(8, 300))
def test_ranks_are_off_by_at_most_one_in_k(n: int, k: int) -> None:
    items = items_of(sketch(np.arange(n), k)[0].as_py())
    assert largest_rank_error(items) <= (0 if n <= k else n / k)
    assert items == sorted(items, key=lambda item: (item[1], item[0]))


@given(st.integers(2, 2000), st.integers(1, 6), st.integers(8, 100))
def test_merged_ranks_are_off_by_two_in_k(n: int, n_parts: int, k: int) -> None:
    parts = Kll(k).of(Groups(np.arange(n) % n_parts, n_parts), np.arange(n, dtype=float))
    merged = Kll(k).merge(Groups(np.zeros(n_parts, np.int64), 1), parts)[0].as_py()
    assert largest_rank_error(items_of(merged)) <= (0 if n <= k else n_parts + 2 * n / k)
    at = 20 + 4 * merged[18]
    assert struct.unpack_from("<dd", merged, at) == (0.0, n - 1.0)


# Bytes of Spark's `kll_sketch_agg_double` for 1.0, and for 1.0, 2.0, 3.0 but for the flag that level 0 is sorted.
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0], "02020f04c8000800000000000000f03f"),
        (
            [3.0, 1.0, 2.0],
            "05010f02c80008000300000000000000c8000100c5000000"
            "000000000000f03f0000000000000840000000000000f03f00000000000000400000000000000840",
        ),
    ],
)
def test_few_values_have_datasketches_bytes(values: list[float], expected: str) -> None:
    assert sketch(np.array(values), 200)[0].as_py().hex() == expected


def test_nan_and_null_are_left_out() -> None:
    quantiles, groups = Quantiles("x"), Groups(np.array([0, 0, 0, 1, 1]), 2)
    column = pa.array([1.0, None, float("nan"), None, float("nan")])
    assert quantiles.add(groups, column)[0].equals(
        pa.concat_arrays([sketch(np.ones(1), 200), pa.nulls(1, pa.binary())])
    )
