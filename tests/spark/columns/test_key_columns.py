"""Which keys are the same to Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anabranch.spark.columns.key_columns import hashes_of, hashes_of_jvm, key_hashes, normal

ZONED, UTC = pa.timestamp("us", "Asia/Kathmandu"), pa.timestamp("us", "UTC")
LISTS = [[9.5], [-0.0, None], None, [], [float("nan"), -float("nan")]]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float32(), [9.5, -0.0, None, float("nan")]),
        (pa.list_(pa.float64()), LISTS),
        (pa.large_list(pa.float32()), LISTS),
        (pa.list_(pa.float64(), 2), [[9.5, 9.5], [-0.0, None], None, [-0.0, float("nan")]]),
        (
            pa.struct([("x", pa.float64()), ("y", pa.list_(pa.struct([("z", pa.float64())])))]),
            [{"x": 9.5, "y": None}, {"x": -0.0, "y": [{"z": -0.0}, None]}, None, {"x": None, "y": []}],
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("start", [0, 1, 2])
def test_keys_have_one_zero_and_one_nan_however_deep(kind, values, start):
    array = pa.array(values, kind).slice(start)
    found = normal(pa.table({"key": array, "v": array}), ("key",))
    found.validate(full=True)
    assert found.schema.field("key").type == kind
    assert repr(found["key"].to_pylist()) == repr(array.to_pylist()).replace("-0.0", "0.0")
    assert repr(found["v"].to_pylist()) == repr(array.to_pylist())


def test_the_slot_of_a_key_does_not_depend_on_the_time_zone() -> None:
    keys = [pa.array([[0], [3_600_000_000]], pa.list_(zone)) for zone in (ZONED, UTC)]
    first, second = (hashes_of(pa.table({"k": key}), ("k",)).tolist() for key in keys)
    assert first == second


def test_all_zeros_have_one_hash_and_so_have_all_nans():
    keys = pa.table({"k": np.array([0.0, -0.0, np.nan, -np.nan, 1.0])})
    assert len(set(key_hashes(keys, ("k",)).tolist())) == 3


def test_a_type_that_only_the_jvm_hashes_has_a_hash_of_ours():
    keys = pa.table({"k": [[1], [1], [2]]})
    assert hashes_of_jvm(keys, ("k",)) is None
    assert len(set(hashes_of(keys, ("k",)).tolist())) == 2
