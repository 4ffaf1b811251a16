"""What a worker received, in tables as large as it likes to have them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from anabranch.spark.edges.packs import unpacked

# Bytes that end a chunk earlier: offsets of Arrow's strings have 31 bits.
_CHUNK_BYTES = 1 << 28


def chunks(batches: Iterator[pa.RecordBatch], rows: int | None) -> Iterator[pa.Table]:
    """What a worker received as tables of at least so many rows, or many bytes; as one where `rows` is None."""
    held: list[pa.RecordBatch] = []
    n = n_bytes = 0
    for batch in unpacked(batches):
        if batch.num_rows:
            held.append(batch)
            n += batch.num_rows
            n_bytes += batch.nbytes
        if rows is not None and (n >= rows or n_bytes >= _CHUNK_BYTES):
            yield pa.Table.from_batches(held)
            held, n, n_bytes = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)
