"""Packs: rows of one worker in one blob, so that Spark's exchange moves few large rows instead of many small ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.spark.edges.row_bytes import bytes_before

# The only column of rows that are packed.
ROWS = "__anabranch_rows"
# Rows that are packed at a time: a blob has a cost of its own, however small it is. Bytes end a pack earlier.
_LEAST, _LEAST_EACH = 1 << 16, 256
_MOST_BYTES = 1 << 25
# Bytes that end a router's chunk before it has all its rows: a task holds a chunk at once, and no array of strings has
# more than 2 GB. As many as Spark itself puts into one batch.
_CHUNK_BYTES = 1 << 26


class _Chunks:
    """Where chunks end: after `size` rows, or earlier with the row with which their bytes reach `most_bytes`.

    That is a function of the rows alone: however they come in batches, chunks end at the same rows.
    """

    def __init__(self, size: int, most_bytes: int) -> None:
        self.size, self.most_bytes = size, most_bytes
        self.rows = self.bytes = 0

    def ends(self, before: NDArray[np.int64]) -> Iterator[tuple[int, bool]]:
        """Ends of chunks in the next rows, `before` which there are so many bytes; and whether bytes were the cause."""
        start, n = 0, len(before) - 1
        while True:
            by_rows = start + self.size - self.rows
            by_bytes = int(np.searchsorted(before, before[start] + self.most_bytes - self.bytes))
            end = min(by_rows, by_bytes)
            if end > n:
                break
            self.rows = self.bytes = 0
            yield end, by_bytes < by_rows
            start = end
        self.rows += n - start
        self.bytes += int(before[n] - before[start])


def in_chunks(batches: Iterator[pa.RecordBatch], chunk: int, n_workers: int) -> Iterator[pa.Table]:
    """The rows in tables of many, each of whole chunks: routes must not depend on how Spark cut its batches.

    Only the last chunk of a table may be short: a router cuts the table's rows after every `chunk` rows itself.
    """
    enough = max(_LEAST, _LEAST_EACH * n_workers)
    # A router that looks at one tuple at a time does not care where tables end.
    chunks = _Chunks(enough, _MOST_BYTES) if chunk == 1 else _Chunks(chunk, _CHUNK_BYTES)
    held: list[pa.RecordBatch] = []
    n = n_bytes = 0
    for batch in batches:
        before, start = bytes_before(batch), 0
        ends = list(chunks.ends(before))
        for end, by_bytes in ends:
            is_enough = n + end - start >= enough and end == ends[-1][0]
            if by_bytes or is_enough or n_bytes + before[end] - before[start] >= _MOST_BYTES:
                yield pa.Table.from_batches([*held, batch.slice(start, end - start)]).combine_chunks()
                held, n, n_bytes, start = [], 0, 0, end
        if start < batch.num_rows:
            held.append(batch.slice(start))
            n += batch.num_rows - start
            n_bytes += int(before[-1] - before[start])
    if n:
        yield pa.Table.from_batches(held).combine_chunks()


def packed(rows: pa.Table, workers: NDArray[np.int32], n_workers: int, column: str) -> pa.RecordBatch:
    """One row per worker that gets any: its number in `column`, and its rows, in order, as an Arrow stream in ROWS."""
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
