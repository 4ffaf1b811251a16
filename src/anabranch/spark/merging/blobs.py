"""Blobs: the rows of a table as one value of Spark's, an Arrow stream, whole or split by slot and bucket."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.spark.columns.key_columns import hashes_of
from anabranch.spark.columns.types import canonical


def split(partial: pa.Table, keys: tuple[str, ...], slots: list[int]) -> list[tuple[int, bytes]]:
    """The rows by the aggregator's slot, each as a blob."""
    hashes = hashes_of(partial, keys)
    at = (hashes % np.uint64(len(slots))).astype(np.int64)
    return [(slots[i], encode(ordered(part, keys))) for i, part in _parts(partial, at)]


def by_bucket(table: pa.Table, keys: tuple[str, ...], n: int) -> list[tuple[int, pa.Table]]:
    """The rows by their bucket of n."""
    # The low bits choose the slot: buckets go by others.
    return _parts(table, ((hashes_of(table, keys) >> np.uint64(40)) % np.uint64(n)).astype(np.int64))


def _parts(table: pa.Table, at: I64) -> list[tuple[int, pa.Table]]:
    order = np.argsort(at, kind="stable")
    numbers, starts = np.unique(at[order], return_index=True)
    ordered = table.take(pa.array(order))
    ends = np.append(starts, len(at))[1:]
    return [(int(i), ordered.slice(a, b - a)) for i, a, b in zip(numbers, starts, ends, strict=True)]


def ordered(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """In an order of its own, so that a task that runs again ships the same bytes."""
    return table.take(pa.array(np.argsort(hashes_of(table, keys), kind="stable")))


def encode(table: pa.Table) -> bytes:
    """The rows as an Arrow stream, of the same types whatever the session's settings."""
    table = canonical(table)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def decode(blob: bytes) -> pa.Table:
    """The rows of an Arrow stream, of the same types whatever the session's settings were."""
    return canonical(rows_of(blob))


def rows_of(blob: bytes) -> pa.Table:
    """The rows of an Arrow stream as they are."""
    return pa.ipc.open_stream(bytes(blob)).read_all()
