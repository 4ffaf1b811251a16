"""How a worker's rows are cut."""

from __future__ import annotations

import pyarrow as pa

from anabranch.spark.workers import chunks


def test_long_values_end_a_chunk_before_its_rows_do(monkeypatch):
    """Arrow cannot put more than 2 GB of strings into one array."""
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", 10_000)
    long = pa.record_batch({"k": pa.array(["x" * 1000] * 4)})
    assert [table.num_rows for table in chunks.chunks(iter([long] * 8), 1 << 20)] == [12, 12, 8]
    assert [table.num_rows for table in chunks.chunks(iter([long] * 8), None)] == [32]
