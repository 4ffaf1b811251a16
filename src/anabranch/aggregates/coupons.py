"""What Apache DataSketches remembers of a value: a coupon of 26 bits of its hash and a count of leading zeros."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels import njit

# The seed of every DataSketches sketch that is not told otherwise.
_SEED = np.uint64(9001)
_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)


def coupons(values: pa.Array) -> NDArray[np.int64]:
    """Coupon of each value, as ``HllSketch.update`` computes it; 0 for an empty string, which it ignores.

    Parameters
    ----------
    values
        Signed integers, strings or binaries, without nulls.
    """
    if pa.types.is_signed_integer(values.type):
        words = np.ascontiguousarray(values.cast(pa.int64()).to_numpy())
        return _coupons(words.view(np.uint8), np.arange(len(words) + 1, dtype=np.int64) * 8)
    _, offsets, data = values.cast(pa.large_binary()).buffers()
    ends = np.frombuffer(offsets or bytes(8), np.int64)[values.offset : values.offset + len(values) + 1]
    return _coupons(np.frombuffer(data or b"", np.uint8), ends)


@njit(cache=True, inline="always")
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit(cache=True, inline="always")
def _mix(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@njit(cache=True, inline="always")
def _read(data: NDArray[np.uint8], start: int, end: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(start, end):
        word |= np.uint64(data[i]) << np.uint64(8 * (i - start))
    return word


@njit(cache=True)
def _murmur(data: NDArray[np.uint8], start: int, end: int) -> tuple[np.uint64, np.uint64]:
    """Both halves of murmur3_128."""
    h1, h2 = _SEED, _SEED
    at = start
    while end - at >= 16:
        h1 ^= _rotate(_read(data, at, at + 8) * _C1, 31) * _C2
        h1 = (_rotate(h1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
        h2 ^= _rotate(_read(data, at + 8, at + 16) * _C2, 33) * _C1
        h2 = (_rotate(h2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
        at += 16
    if end > at + 8:
        h2 ^= _rotate(_read(data, at + 8, end) * _C2, 33) * _C1
    if end > at:
        h1 ^= _rotate(_read(data, at, min(end, at + 8)) * _C1, 31) * _C2
    h1 ^= np.uint64(end - start)
    h2 ^= np.uint64(end - start)
    h1 += h2
    h2 += h1
    h1, h2 = _mix(h1), _mix(h2)
    h1 += h2
    return h1, h1 + h2


@njit(cache=True)
def _coupons(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.zeros(len(ends) - 1, np.int64)
    for i in range(len(out)):
        if ends[i + 1] == ends[i]:
            continue
        h1, h2 = _murmur(data, ends[i], ends[i + 1])
        zeros = 0
        while zeros < 62 and not (h2 >> np.uint64(63 - zeros)) & np.uint64(1):
            zeros += 1
        out[i] = (np.int64(zeros + 1) << 26) | np.int64(h1 & np.uint64(0x3FF_FFFF))
    return out
