"""Sums a group of integers, decimals and doubles, whatever the order of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.errors import InputError
from anabranch.kernels import njit

MAX_PRECISION = 38
_HALF = np.int64(0xFFFF_FFFF)


def summed(type_: pa.DataType) -> pa.DataType:
    """Spark's type of a sum of decimals: ten more digits, at most 38."""
    return pa.decimal128(min(MAX_PRECISION, type_.precision + 10), type_.scale)


def integer_sums(codes: NDArray[np.int64], values: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Sum of each group. One that is no int64 is an InputError, as in Spark's ANSI mode."""
    high, low = _halves(codes, values, n)
    high = high + (low >> 32)
    if np.any((high < -(2**31)) | (high >= 2**31)):
        raise InputError(
            "a sum of integers must fit in 64 bits, got a larger one; cast the column to decimal or double"
        )
    return (high << 32) | (low & _HALF)


def decimal_sums(codes: NDArray[np.int64], values: pa.Array, n: int) -> pa.Array:
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
    type_ = summed(values.type)
    values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    words = np.frombuffer(values.buffers()[1] or b"", np.uint32)[4 * values.offset :][: 4 * len(values)]
    quarters = _quarters(codes, words, n)
    try:
        if np.any(quarters[:, 3] != quarters[:, 3].astype(np.int32)):
            raise pa.ArrowInvalid("more than 128 bits")
        sums = pa.Array.from_buffers(type_, n, [None, pa.py_buffer(quarters.astype(np.uint32).tobytes())])
        sums.validate(full=True)
    except pa.ArrowInvalid as error:
        rule = f"a sum of decimals must fit in {type_.precision} digits, got a larger one"
        raise InputError(f"{rule}; cast the column to fewer digits or to double") from error
    return sums


def double_sums(codes: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Sum of each group, added from the smallest value to the largest; there is only one NaN."""
    nonzero = values != 0
    codes, values = codes[nonzero], values[nonzero]
    order = np.lexsort((values, codes))
    with np.errstate(invalid="ignore"):
        sums = _running_sums(codes[order], values[order], n)
    return np.where(np.isnan(sums), np.nan, sums)


@njit(cache=True)
def _halves(codes: NDArray[np.int64], values: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sums of the upper and of the lower 32 bits, which cannot overflow."""
    high, low = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for i in range(len(codes)):
        high[codes[i]] += values[i] >> 32
        low[codes[i]] += values[i] & 0xFFFF_FFFF
    return high, low


@njit(cache=True)
def _quarters(codes: NDArray[np.int64], words: NDArray[np.uint32], n: int) -> NDArray[np.int64]:
    """Sums of 128-bit integers as four words of 32 bits, the lowest first; only the last has a sign."""
    sums = np.zeros((n, 4), np.int64)
    for i in range(len(codes)):
        for j in range(3):
            sums[codes[i], j] += np.int64(words[4 * i + j])
        sums[codes[i], 3] += np.int64(np.int32(words[4 * i + 3]))
    for group in range(n):
        for j in range(3):
            sums[group, j + 1] += sums[group, j] >> 32
            sums[group, j] &= 0xFFFF_FFFF
    return sums


@njit(cache=True)
def _running_sums(codes: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    sums = np.zeros(n)
    for i in range(len(codes)):
        sums[codes[i]] += values[i]
    return sums
