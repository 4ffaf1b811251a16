"""Key columns as one dense integer a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import I64
from anabranch.kernels import njit

# Codes of several columns are combined by multiplication; beyond this they are made dense first.
_LARGEST = 2**62


def factorise(columns: Sequence[pa.Array], n_rows: int) -> tuple[I64, int]:
    """Dense codes, equal for rows that are equal in all columns, and the number of codes. Null equals null."""
    codes, n = np.zeros(n_rows, np.int64), min(n_rows, 1)
    for leaf in (leaf for column in columns for leaf in _leaves(column)):
        further, m = _encode(leaf)
        if n <= 1:
            codes, n = further, m
            continue
        if n * m > _LARGEST:
            codes, n = _encode(pa.array(codes))
        codes, n = codes * m + further, n * m
    return (codes, n) if n <= 1 or _is_dense(columns) else _encode(pa.array(codes))


def first_rows(codes: I64, n: int) -> I64:
    """Index of the first row of each code."""
    return _first_rows(codes, n)


def _is_dense(columns: Sequence[pa.Array]) -> bool:
    return sum(1 for column in columns for _ in _leaves(column)) == 1


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    """Columns without structs: a struct becomes its fields, after a column that says which structs are null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_struct(column.type):
        yield column
        return
    if column.null_count or not column.type.num_fields:
        yield column.is_null()
    for field in column.flatten():
        yield from _leaves(field)


def _encode(leaf: pa.Array) -> tuple[I64, int]:
    if pa.types.is_nested(leaf.type) or pa.types.is_null(leaf.type):
        # Rare as keys: what Python prints for a value is different for different values.
        leaf = pa.array([repr(value) for value in leaf.to_pylist()], pa.large_string())
    encoded = pc.dictionary_encode(leaf, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


@njit(cache=True)
def _first_rows(codes: I64, n: int) -> I64:
    rows = np.full(n, -1, np.int64)
    for i in range(len(codes)):
        if rows[codes[i]] < 0:
            rows[codes[i]] = i
    return rows
