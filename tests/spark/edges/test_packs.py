"""Packs give every worker its rows, in order, whatever their types and however Spark cut its batches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.spark.edges import packs


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


def lengths(n: int, seed: int) -> list[int]:
    """Most values are short and some are longer than a chunk may be."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.05, rng.integers(100, 3000, n), rng.integers(0, 20, n)).tolist()


def ends_by_hand(sizes: list[int], chunk: int, most: int) -> list[int]:
    ends, rows, total = [], 0, 0
    for i, size in enumerate(sizes):
        rows, total = rows + 1, total + size
        if rows == chunk or total >= most:
            ends.append(i + 1)
            rows = total = 0
    return ends


@given(
    n=st.integers(1, 400), seed=st.integers(0, 1000), chunk=st.sampled_from([2, 7, 50, 1000]), cut_at=st.integers(1, 90)
)
def test_a_chunk_ends_with_the_row_with_which_its_bytes_pass_the_limit(n, seed, chunk, cut_at):
    """The router cuts a table after every `chunk` rows: the ends of all chunks follow from those of the tables."""
    sizes = lengths(n, seed)
    rows = pa.table({"text": pa.array(["x" * size for size in sizes])})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "_CHUNK_BYTES", 1000)
        patch.setattr(packs, "_MOST_BYTES", 300)
        patch.setattr(packs, "_LEAST", 20)
        patch.setattr(packs, "_LEAST_EACH", 1)
        tables = cut(rows, cut_at, chunk)
    assert pa.concat_tables(tables).combine_chunks().equals(rows.combine_chunks())
    ends, at = [], 0
    for one in tables:
        ends += [at + i for i in range(chunk, len(one), chunk)]
        at += len(one)
        ends.append(at)
    by_hand = ends_by_hand(sizes, chunk, 1000)
    assert ends == (by_hand if by_hand[-1:] == [n] else [*by_hand, n])


def test_of_large_rows_only_a_few_are_held_however_large_the_chunk(monkeypatch):
    monkeypatch.setattr(packs, "_CHUNK_BYTES", 10_000)
    taken = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for _ in range(40):
            taken += 10
            yield pa.record_batch({"text": ["x" * 1000] * 10})

    given_out = 0
    for one in packs.in_chunks(batches(), 10_000, 2):
        given_out += len(one)
        assert taken - given_out <= 10
        assert one.nbytes <= 11_000
    assert given_out == 400


def test_the_same_rows_give_the_same_bytes():
    """Or Spark would take a task that runs again for another, and start its batch anew."""
    workers = np.arange(200, dtype=np.int32) % 3
    first, second = (packs.packed(table(200), workers, 3, "worker") for _ in range(2))
    assert first.equals(second)


def test_nothing_gives_nothing():
    assert cut(table(0), 10, 1) == []
    assert list(packs.unpacked(iter([]))) == []
