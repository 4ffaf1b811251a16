"""How many bytes each row of an Arrow batch has, whatever batches the rows came in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def bytes_before(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """Bytes of the values before each row, and at the end those of all rows."""
    total = np.zeros(rows.num_rows + 1, dtype=np.int64)
    for column in rows.columns if rows.num_rows else ():
        total += _before(column)
    return total


def _before(array: pa.Array) -> NDArray[np.int64]:
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [_before(array.field(i)) for i in range(kind.num_fields)]
        return np.sum(fields, axis=0, dtype=np.int64) if fields else np.zeros(len(array) + 1, dtype=np.int64)
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _less_first(_before(array.values)[array.offsets.to_numpy()])
    if _has_offsets(kind):
        return _less_first(_offsets(array))
    return np.arange(len(array) + 1, dtype=np.int64) * _width(kind)


def _has_offsets(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _offsets(array: pa.Array) -> NDArray[np.int64]:
    if not len(array):
        return np.zeros(1, dtype=np.int64)
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    every = np.frombuffer(array.buffers()[1], np.int64 if is_large else np.int32)
    return np.array(every[array.offset : array.offset + len(array) + 1], dtype=np.int64)


def _less_first(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    relative: NDArray[np.int64] = offsets - offsets[0]
    return relative


def _width(kind: pa.DataType) -> int:
    """Bytes of a value of a fixed width; flags and nulls are too small to count."""
    try:
        return int(kind.bit_width) // 8
    except ValueError:
        return 0
