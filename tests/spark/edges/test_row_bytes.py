"""Bytes of rows do not depend on the batches that the rows come in."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from anabranch.spark.edges.row_bytes import bytes_before

COLUMNS = {
    "string": (pa.array(["a", None, "", "üü", "long"]), [1, 0, 0, 4, 4]),
    "large string": (pa.array(["a", None, "", "üü", "long"], pa.large_string()), [1, 0, 0, 4, 4]),
    "binary": (pa.array([b"ab", b"", None, b"c", b"d"]), [2, 0, 0, 1, 1]),
    "long": (pa.array([1, None, 3, 4, 5], pa.int64()), [8] * 5),
    "decimal": (pa.array([Decimal(1)] * 5, pa.decimal128(10, 2)), [16] * 5),
    "time": (pa.array([datetime(2026, 1, 1)] * 5, pa.timestamp("us")), [8] * 5),
    "flag": (pa.array([True] * 5), [0] * 5),
    "nothing": (pa.nulls(5), [0] * 5),
    "list": (pa.array([["a", "bc"], [], None, ["def"], ["g"]]), [3, 0, 0, 3, 1]),
    "list of lists": (
        pa.array([[[1], [2, 3]], [], None, [[]], [[4]]], pa.list_(pa.list_(pa.int32()))),
        [12, 0, 0, 0, 4],
    ),
    "map": (
        pa.array([[("k", 1)], [], None, [("kk", 2), ("l", 3)], []], pa.map_(pa.string(), pa.int64())),
        [9, 0, 0, 19, 0],
    ),
    "struct": (
        pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": ""}, {"a": 3, "b": "yz"}] + [{"a": 0, "b": ""}] * 2),
        [9, 8, 10, 8, 8],
    ),
    "empty struct": (pa.array([{}] * 5, pa.struct([])), [0] * 5),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_bytes_are_those_of_the_values_however_rows_are_cut(name):
    array, each = COLUMNS[name]
    rows = pa.record_batch({"a": array, "b": pa.array(range(5), pa.int16())})
    for start in range(6):
        for n in range(6 - start):
            found = bytes_before(rows.slice(start, n))
            assert found.tolist() == np.append(0, np.cumsum([2 + size for size in each[start : start + n]])).tolist()


def test_a_batch_without_columns_has_no_bytes():
    assert bytes_before(pa.record_batch({})).tolist() == [0]
