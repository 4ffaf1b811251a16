"""Spark's ``xxhash64`` over Arrow columns, so that a key has one hash in the JVM and in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.arrays import F32, F64, I32, I64, U8, U64, Bools
from anabranch.errors import InputError
from anabranch.kernels import njit

SPARK_SEED = 42

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


def hash_keys(*columns: Any, seed: int = SPARK_SEED) -> U64:
    """Hash one or several key columns as Spark's ``xxhash64(col, ...)`` does.

    Parameters
    ----------
    *columns
        Arrow arrays, NumPy arrays or lists of equal length. Strings, binary, booleans, integers, floats, dates,
        timestamps and decimals of at most 18 digits. A null leaves the hash of the columns before it unchanged.
    seed
        42 in Spark.

    Examples
    --------
    >>> hash_keys(["Spark", None]).view("int64").tolist()
    [-4294468057691064905, 42]
    """
    if not columns:
        raise InputError("hash_keys needs at least one column, got none; pass the key column")
    arrays = [_as_arrow(column) for column in columns]
    hashes = np.full(len(arrays[0]), np.uint64(seed & 0xFFFFFFFFFFFFFFFF), dtype=np.uint64)
    for i, array in enumerate(arrays):
        if len(array) != len(hashes):
            raise InputError(f"key columns must be equally long, got {len(hashes)} and {len(array)} rows")
        if i == 0 and pa.types.is_dictionary(array.type):
            hashes = _hash_dictionary(array, hashes)
        else:
            _hash_column(array, hashes)
    return hashes


def _as_arrow(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.Array):
        return column
    try:
        return pa.array(column)
    except (pa.ArrowInvalid, TypeError, OverflowError) as error:
        raise InputError(f"a key column must hold values of one hashable type: {error}") from error


def _hash_dictionary(array: pa.DictionaryArray, seeds: U64) -> U64:
    """Hash each dictionary entry once: every row starts from the same seed in the first column."""
    if not len(array):
        return seeds
    entries = np.full(len(array.dictionary) + 1, seeds[0], dtype=np.uint64)
    _hash_column(array.dictionary, entries[:-1])
    indices = array.indices.cast(pa.int64())
    if indices.null_count:
        indices = indices.fill_null(len(array.dictionary))
    hashes: U64 = entries[indices.to_numpy(zero_copy_only=False)]
    return hashes


def _hash_column(array: pa.Array, hashes: U64) -> None:
    """Fold one column into `hashes`, in place."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    valid = _validity(array)
    if pa.types.is_null(kind):
        return
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        _hash_variable(array.cast(pa.large_string()), valid, hashes)
    elif _is_binary(kind):
        _hash_variable(array.cast(pa.large_binary()), valid, hashes)
    elif pa.types.is_decimal(kind):
        _hash_longs(_unscaled(array), valid, hashes)
    elif pa.types.is_timestamp(kind):
        micros = array.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        _hash_longs(_fixed(micros, np.int64), valid, hashes)
    elif pa.types.is_date(kind):
        _hash_ints(_fixed(array.cast(pa.date32()).cast(pa.int32()), np.int32), valid, hashes)
    elif pa.types.is_float64(kind):
        _hash_longs(_double_bits(_fixed(array, np.float64)), valid, hashes)
    elif pa.types.is_floating(kind):
        _hash_ints(_float_bits(_fixed(array.cast(pa.float32()), np.float32)), valid, hashes)
    elif pa.types.is_int64(kind) or pa.types.is_uint64(kind) or pa.types.is_uint32(kind):
        _hash_longs(_fixed(array.cast(pa.int64(), safe=False), np.int64), valid, hashes)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        _hash_ints(_fixed(array.cast(pa.int32()), np.int32), valid, hashes)
    else:
        raise InputError(f"cannot hash a key of type {kind}; use a string, number, date, timestamp or binary column")


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _validity(array: pa.Array) -> Bools:
    if array.null_count == 0:
        return np.empty(0, dtype=np.bool_)
    valid: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _fixed(array: pa.Array, dtype: Any) -> NDArray[Any]:
    if array.null_count:
        array = array.fill_null(0)
    values: NDArray[Any] = np.ascontiguousarray(array.to_numpy(zero_copy_only=False), dtype=dtype)
    return values


def _double_bits(values: F64) -> I64:
    """Bits as the JVM sees them: one NaN, one zero."""
    normal = values + 0.0
    normal[np.isnan(normal)] = np.nan
    return normal.view(np.int64)


def _float_bits(values: F32) -> I32:
    normal = values + np.float32(0.0)
    normal[np.isnan(normal)] = np.float32(np.nan)
    return normal.view(np.int32)


def _unscaled(array: pa.Array) -> I64:
    if array.type.precision > 18:
        raise InputError(f"cannot hash a decimal of {array.type.precision} digits; cast the key to 18 digits or fewer")
    array = array.cast(pa.decimal128(18, array.type.scale))
    words = np.frombuffer(array.buffers()[1], dtype=np.int64)
    values: I64 = np.ascontiguousarray(words[2 * array.offset : 2 * (array.offset + len(array)) : 2])
    return values


def _hash_variable(array: pa.Array, valid: Bools, hashes: U64) -> None:
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, dtype=np.uint8)
    _hash_bytes(content, starts, valid, hashes)


@njit(cache=True, inline="always")
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (np.uint64(64) - bits))


@njit(cache=True, inline="always")
def _finish(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@njit(cache=True, inline="always")
def hash_long(value: np.uint64, seed: np.uint64) -> np.uint64:
    """Spark's ``XXH64.hashLong``."""
    h = seed + _P5 + np.uint64(8)
    h ^= _rotate(value * _P2, np.uint64(31)) * _P1
    return _finish(_rotate(h, np.uint64(27)) * _P1 + _P4)


@njit(cache=True)
def _hash_longs(values: I64, valid: Bools, hashes: U64) -> None:
    for i in range(len(hashes)):
        if len(valid) == 0 or valid[i]:
            hashes[i] = hash_long(np.uint64(values[i]), hashes[i])


@njit(cache=True)
def _hash_ints(values: I32, valid: Bools, hashes: U64) -> None:
    for i in range(len(hashes)):
        if len(valid) == 0 or valid[i]:
            h = hashes[i] + _P5 + np.uint64(4)
            h ^= np.uint64(np.uint32(values[i])) * _P1
            hashes[i] = _finish(_rotate(h, np.uint64(23)) * _P2 + _P3)


@njit(cache=True, inline="always")
def _word(data: U8, at: int, size: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@njit(cache=True)
def _stripes(data: U8, at: int, end: int, seed: np.uint64) -> np.uint64:
    """The 32-byte loop of XXH64 and the merge of its four lanes."""
    lanes = (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)
    a, b, c, d = lanes
    while at <= end - 32:
        a = _rotate(a + _word(data, at, 8) * _P2, np.uint64(31)) * _P1
        b = _rotate(b + _word(data, at + 8, 8) * _P2, np.uint64(31)) * _P1
        c = _rotate(c + _word(data, at + 16, 8) * _P2, np.uint64(31)) * _P1
        d = _rotate(d + _word(data, at + 24, 8) * _P2, np.uint64(31)) * _P1
        at += 32
    h = _rotate(a, np.uint64(1)) + _rotate(b, np.uint64(7)) + _rotate(c, np.uint64(12)) + _rotate(d, np.uint64(18))
    for lane in (a, b, c, d):
        h = (h ^ (_rotate(lane * _P2, np.uint64(31)) * _P1)) * _P1 + _P4
    return h


@njit(cache=True)
def _hash_slice(data: U8, at: int, end: int, seed: np.uint64) -> np.uint64:
    length = end - at
    if length >= 32:
        h = _stripes(data, at, end, seed)
        at += length // 32 * 32
    else:
        h = seed + _P5
    h += np.uint64(length)
    while at <= end - 8:
        h = _rotate(h ^ (_rotate(_word(data, at, 8) * _P2, np.uint64(31)) * _P1), np.uint64(27)) * _P1 + _P4
        at += 8
    if at <= end - 4:
        h = _rotate(h ^ (_word(data, at, 4) * _P1), np.uint64(23)) * _P2 + _P3
        at += 4
    while at < end:
        h = _rotate(h ^ (np.uint64(data[at]) * _P5), np.uint64(11)) * _P1
        at += 1
    return _finish(h)


@njit(cache=True)
def _hash_bytes(data: U8, starts: I64, valid: Bools, hashes: U64) -> None:
    for i in range(len(hashes)):
        if len(valid) == 0 or valid[i]:
            hashes[i] = _hash_slice(data, starts[i], starts[i + 1], hashes[i])
