"""Sums a group of integers, decimals and doubles, whatever the order of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64, I64, U32
from anabranch.errors import InputError
from anabranch.kernels import njit

MAX_PRECISION = 38
# Powers of ten up to this one are doubles.
_EXACT_TENS = 22
_HALF = np.int64(0xFFFF_FFFF)


def summed(type_: pa.DataType) -> pa.DataType:
    """Spark's type of a sum of decimals: ten more digits, at most 38."""
    return pa.decimal128(min(MAX_PRECISION, type_.precision + 10), type_.scale)


def integer_sums(codes: I64, values: I64, n: int) -> I64:
    """Sum of each group. One that does not fit in an int64 is an InputError, as in Spark's ANSI mode."""
    high, low = halves(codes, values, n)
    high = high + (low >> 32)
    if np.any((high < -(2**31)) | (high >= 2**31)):
        raise InputError(
            "a sum of integers must fit in 64 bits, got a larger one; cast the column to decimal or double"
        )
    return (high << 32) | (low & _HALF)


def decimal_sums(codes: I64, values: pa.Array, n: int) -> pa.Array:
    """Sum of each group, in Spark's type. One with too many digits is an InputError, as in Spark's ANSI mode.

    Parameters
    ----------
    codes
        Group of each value.
    values
        Decimals without nulls.
    n
        Number of groups.
    """
    return decimals_of(quarters(codes, values, n), summed(values.type))


def quarters(codes: I64, values: pa.Array, n: int) -> I64:
    """Sum of each group of decimals as an unscaled integer: four words of 32 bits, the lowest first.

    Only the last has a sign. It has room for more than 32 bits, so that 2^31 decimals do not overflow.
    """
    return _carried(_quarters(codes, _words(values), n))


def nearest_doubles(decimals: pa.Array) -> F64:
    """Decimals as the nearest doubles, which Arrow's own cast misses in the last bit."""
    lowest, low, high, highest = _words(decimals).reshape(-1, 4).astype(np.int64).T
    upper, lower = (highest << 32) | high, (low << 32) | lowest
    if decimals.type.scale <= _EXACT_TENS and np.all((upper == lower >> 63) & (np.abs(lower) <= 2**53)):
        # Both are doubles, so there is one rounding.
        doubles: F64 = lower / 10.0**decimals.type.scale
        return doubles
    return np.array([float(one) for one in decimals.to_pylist()], np.float64)


def decimals_of(words: I64, type_: pa.DataType) -> pa.Array:
    """Decimals from unscaled integers of four words each. One with too many digits is an InputError."""
    words = _carried(words)
    try:
        if np.any(words[:, 3] != words[:, 3].astype(np.int32)):
            raise pa.ArrowInvalid("more than 128 bits")
        buffer = pa.py_buffer(words.astype(np.uint32).tobytes())
        decimals = pa.Array.from_buffers(type_, len(words), [None, buffer])
        decimals.validate(full=True)
    except pa.ArrowInvalid as error:
        rule = f"a sum of decimals must fit in {type_.precision} digits, got a larger one"
        raise InputError(f"{rule}; cast the column to fewer digits or to double") from error
    return decimals


def double_sums(codes: I64, values: F64, n: int) -> F64:
    """Sum of each group, added from the smallest value to the largest; there is only one NaN."""
    nonzero = values != 0
    codes, values = codes[nonzero], values[nonzero]
    order = np.lexsort((values, codes))
    sums = _running_sums(codes[order], values[order], n)
    return np.where(np.isnan(sums), np.nan, sums)


def _words(decimals: pa.Array) -> U32:
    """Their unscaled integers, four words each."""
    decimals = decimals.cast(pa.decimal128(decimals.type.precision, decimals.type.scale))
    words = np.frombuffer(decimals.buffers()[1] or b"", np.uint32)
    return words[4 * decimals.offset :][: 4 * len(decimals)]


@njit(cache=True)
def halves(codes: I64, values: I64, n: int) -> tuple[I64, I64]:
    """Sums of the upper and of the lower 32 bits, which cannot overflow."""
    high, low = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for i in range(len(codes)):
        high[codes[i]] += values[i] >> 32
        low[codes[i]] += values[i] & 0xFFFF_FFFF
    return high, low


@njit(cache=True)
def _quarters(codes: I64, words: U32, n: int) -> I64:
    sums = np.zeros((n, 4), np.int64)
    for i in range(len(codes)):
        for j in range(3):
            sums[codes[i], j] += np.int64(words[4 * i + j])
        sums[codes[i], 3] += np.int64(np.int32(words[4 * i + 3]))
    return sums


def _carried(words: I64) -> I64:
    words = words.copy()
    for j in range(words.shape[1] - 1):
        words[:, j + 1] += words[:, j] >> 32
        words[:, j] &= _HALF
    return words


@njit(cache=True)
def _running_sums(codes: I64, values: F64, n: int) -> F64:
    sums = np.zeros(n)
    for i in range(len(codes)):
        sums[codes[i]] += values[i]
    return sums
