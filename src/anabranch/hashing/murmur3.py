"""Murmur3 of 128 bits, as DataSketches and Guava compute it."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import U8
from anabranch.kernels import njit

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)


@njit(cache=True, inline="always")
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (np.uint64(64) - bits))


@njit(cache=True, inline="always")
def _mix(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@njit(cache=True, inline="always")
def _read(data: U8, start: int, end: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(start, end):
        word |= np.uint64(data[i]) << np.uint64(8 * (i - start))
    return word


@njit(cache=True)
def murmur3_128(data: U8, start: int, end: int, seed: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Both halves of murmur3_128 of the bytes from `start` to `end`."""
    h1, h2 = seed, seed
    at = start
    while end - at >= 16:
        h1 ^= _rotate(_read(data, at, at + 8) * _C1, np.uint64(31)) * _C2
        h1 = (_rotate(h1, np.uint64(27)) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
        h2 ^= _rotate(_read(data, at + 8, at + 16) * _C2, np.uint64(33)) * _C1
        h2 = (_rotate(h2, np.uint64(31)) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
        at += 16
    if end > at + 8:
        h2 ^= _rotate(_read(data, at + 8, end) * _C2, np.uint64(33)) * _C1
    if end > at:
        h1 ^= _rotate(_read(data, at, min(end, at + 8)) * _C1, np.uint64(31)) * _C2
    h1 ^= np.uint64(end - start)
    h2 ^= np.uint64(end - start)
    h1 += h2
    h2 += h1
    h1, h2 = _mix(h1), _mix(h2)
    h1 += h2
    return h1, h1 + h2
