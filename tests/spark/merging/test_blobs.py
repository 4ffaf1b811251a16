"""Blobs have the same types whatever the session's settings, and do not depend on the order of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.spark.merging.blobs import decode, encode, split

ZONED, UTC = pa.timestamp("us", "Asia/Kathmandu"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (ZONED, UTC),
        (pa.timestamp("us"), pa.timestamp("us")),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.list_(pa.struct([("a", ZONED), ("b", pa.large_string())])), pa.list_(pa.struct({"a": UTC, "b": "string"}))),
        (pa.map_(pa.large_string(), ZONED), pa.map_(pa.string(), UTC)),
    ],
)
def test_blobs_have_the_same_types_whatever_the_settings(kind: pa.DataType, stored: pa.DataType) -> None:
    table = pa.table({"x": pa.nulls(2, kind)}, pa.schema([pa.field("x", kind)]))
    assert decode(encode(table)).schema == pa.schema([("x", stored)])


@given(n=st.integers(1, 200), seed=st.integers(0, 1000))
def test_the_blobs_for_the_aggregator_do_not_depend_on_the_order_of_rows(n: int, seed: int) -> None:
    """Or Spark would take a task that runs again for another, because rows arrive in any order."""
    rows = pa.table({"k": [f"key {i}" for i in range(n)], "v": range(n)})
    permuted = rows.take(np.random.default_rng(seed).permutation(n))
    assert split(permuted, ("k",), [7, 8, 9]) == split(rows, ("k",), [7, 8, 9])
