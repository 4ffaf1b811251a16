"""Packs give every worker its rows, in order, whatever their types and however Spark cut its batches."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.spark import packs


def table(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    some = [None if rng.random() < 0.2 else int(value) for value in rng.integers(0, 100, n)]
    return pa.table(
        {
            "row": pa.array(range(n)),
            "text": pa.array([None if v is None else f"k{v}ü" for v in some], pa.string()),
            "double": pa.array([None if v is None else v / 7 for v in some], pa.float64()),
            "time": pa.array([None if v is None else datetime(2026, 1, 1 + v % 28) for v in some], pa.timestamp("us")),
            "decimal": pa.array([None if v is None else Decimal(v) for v in some], pa.decimal128(10, 2)),
            "struct": pa.array([None if v is None else {"a": v, "b": str(v)} for v in some]),
            "list": pa.array([None if v is None else [v, None] for v in some]),
            "flag": pa.array([None if v is None else v % 2 == 0 for v in some], pa.bool_()),
        }
    )


@given(n=st.integers(1, 300), n_workers=st.integers(1, 9), seed=st.integers(0, 1000))
def test_every_worker_gets_its_rows_in_order(n, n_workers, seed):
    rows = table(n, seed)
    workers = np.random.default_rng(seed).integers(0, n_workers, n).astype(np.int32)
    packed = packs.packed(rows, workers, n_workers, "worker")
    assert packed["worker"].to_pylist() == sorted(set(workers.tolist()))
    for worker, blob in zip(packed["worker"].to_pylist(), packed[packs.ROWS], strict=True):
        received = pa.record_batch({packs.ROWS: pa.array([blob.as_py()])})
        found = pa.Table.from_batches(packs.unpacked(iter([received])))
        assert found.equals(rows.filter(pa.array(workers == worker)))


def test_rows_that_are_not_packed_stay_as_they_are():
    batches = table(10).to_batches(max_chunksize=3)
    assert list(packs.unpacked(iter(batches))) == batches


def cut(rows: pa.Table, size: int, chunk: int, n_workers: int = 2) -> list[pa.Table]:
    return list(packs.in_chunks(iter(rows.to_batches(max_chunksize=size)), chunk, n_workers))


@pytest.mark.parametrize("chunk", [1, 7, 100, 1000])
def test_rows_are_cut_at_multiples_of_the_chunk(monkeypatch, chunk):
    monkeypatch.setattr(packs, "_LEAST", 50)
    monkeypatch.setattr(packs, "_LEAST_EACH", 10)
    rows = table(400)
    for size in (1, 13, 400):
        tables = cut(rows, size, chunk)
        assert pa.concat_tables(tables).combine_chunks().equals(rows.combine_chunks())
        assert all(len(one) % chunk == 0 for one in tables[:-1])
        assert all(len(one) > 50 - chunk for one in tables[:-1])
        assert (len(tables) == 1) == (chunk == 1000 or (size == 400 and chunk != 7))


def test_wide_rows_are_packed_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(packs, "_MOST_BYTES", 1000)
    rows = pa.table({"text": ["x" * 100] * 100})
    assert max(len(one) for one in cut(rows, 5, 1)) <= 15


def test_the_same_rows_give_the_same_bytes():
    """Or Spark would take a task that runs again for another, and start its batch anew."""
    workers = np.arange(200, dtype=np.int32) % 3
    first, second = (packs.packed(table(200), workers, 3, "worker") for _ in range(2))
    assert first.equals(second)


def test_nothing_gives_nothing():
    assert cut(table(0), 10, 1) == []
    assert list(packs.unpacked(iter([]))) == []
