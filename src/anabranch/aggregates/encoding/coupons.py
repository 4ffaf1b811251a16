"""What Apache DataSketches remembers of a value: a coupon of 26 bits of its hash and a count of leading zeros."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, U8
from anabranch.hashing.murmur3 import murmur3_128
from anabranch.kernels import njit

# The seed of every DataSketches sketch that is not told otherwise.
_SEED = np.uint64(9001)


def coupons(values: pa.Array) -> I64:
    """Coupon of each value, as ``HllSketch.update`` computes it; 0 for an empty string, which it ignores.

    Parameters
    ----------
    values
        Signed integers, strings or binaries, without nulls.
    """
    if pa.types.is_signed_integer(values.type):
        words = np.ascontiguousarray(values.cast(pa.int64()).to_numpy())
        return _coupons(words.view(np.uint8), np.arange(len(words) + 1, dtype=np.int64) * 8)
    # The cast of a slice may begin elsewhere than the slice.
    array = values.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets or bytes(8), np.int64)[array.offset : array.offset + len(array) + 1]
    return _coupons(np.frombuffer(data or b"", np.uint8), ends)


@njit(cache=True)
def _coupons(data: U8, ends: I64) -> I64:
    out = np.zeros(len(ends) - 1, np.int64)
    for i in range(len(out)):
        if ends[i + 1] == ends[i]:
            continue
        h1, h2 = murmur3_128(data, ends[i], ends[i + 1], _SEED)
        zeros = 0
        while zeros < 62 and not (h2 >> np.uint64(63 - zeros)) & np.uint64(1):
            zeros += 1
        out[i] = (np.int64(zeros + 1) << 26) | np.int64(h1 & np.uint64(0x3FF_FFFF))
    return out
