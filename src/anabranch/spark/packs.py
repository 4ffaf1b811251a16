"""Packs: rows of one worker in one blob, so that Spark's exchange moves few large rows instead of many small ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# The only column of rows that are packed.
ROWS = "__anabranch_rows"
# Rows that are packed at a time: a blob has a cost of its own, however small it is. Bytes end a pack earlier.
_LEAST, _LEAST_EACH = 1 << 16, 256
_MOST_BYTES = 1 << 25


def in_chunks(batches: Iterator[pa.RecordBatch], chunk: int, n_workers: int) -> Iterator[pa.Table]:
    """The rows in tables of many, cut at multiples of `chunk`: routes must not depend on how Spark cut its batches."""
    enough = max(_LEAST, _LEAST_EACH * n_workers)
    held: list[pa.RecordBatch] = []
    n = n_bytes = 0
    for batch in batches:
        held.append(batch)
        n += batch.num_rows
        n_bytes += batch.nbytes
        whole = n - n % chunk
        if whole and (n >= enough or n_bytes >= _MOST_BYTES):
            table = pa.Table.from_batches(held).combine_chunks()
            yield table.slice(0, whole)
            held = table.slice(whole).to_batches() if whole < n else []
            n, n_bytes = n - whole, sum(one.nbytes for one in held)
    if n:
        yield pa.Table.from_batches(held).combine_chunks()


def packed(rows: pa.Table, workers: NDArray[np.int32], n_workers: int, column: str) -> pa.RecordBatch:
    """One row a worker that gets any: its number in `column`, and its rows, in order, as an Arrow stream in ROWS."""
    counts = np.bincount(workers, minlength=n_workers)
    # numpy sorts short integers by their digits, which is faster.
    order = np.argsort(workers.astype(np.int16) if n_workers <= 1 << 15 else workers, kind="stable")
    sorted_rows = rows.take(pa.array(order)).combine_chunks()
    ends = np.cumsum(counts)
    receiving = np.flatnonzero(counts)
    blobs = _encoded([sorted_rows.slice(ends[worker] - counts[worker], counts[worker]) for worker in receiving])
    return pa.record_batch({column: pa.array(receiving, pa.int32()), ROWS: blobs})


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows, whether they come packed or as they are."""
    for batch in batches:
        if batch.schema.names != [ROWS]:
            yield batch
            continue
        for blob in batch.column(0):
            with pa.ipc.open_stream(blob.as_buffer()) as rows:
                yield from rows


def _encoded(tables: list[pa.Table]) -> pa.Array:
    """Each table as an Arrow stream, all in one buffer."""
    sink, ends = pa.BufferOutputStream(), [0]
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        ends.append(sink.tell())
    offsets = pa.py_buffer(np.array(ends, dtype=np.int32))
    return pa.Array.from_buffers(pa.binary(), len(tables), [None, offsets, sink.getvalue()])
