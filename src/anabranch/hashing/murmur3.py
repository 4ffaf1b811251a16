"""Murmur3, the hash of the reference implementations, for tests that compare routes tuple by tuple."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import ConfigError
from anabranch.hashing.family import HashFamily
from anabranch.kernels import njit

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)


@dataclass(frozen=True)
class Murmur3(HashFamily):
    """Candidates as the published partial key grouping codes compute them, for keys that are decimal numbers.

    A key is the *number itself* (not its hash), hashed as its decimal text with murmur3_128 under one seed a choice.
    The two candidates may coincide, as they do there.

    Parameters
    ----------
    seeds
        13 and 17 in gdfm/partial-key-grouping; 43 and 47 in anisnasir/SLBSimulator, whose key grouping uses 13.
    bits
        64: ``abs(asLong) % W`` (gdfm); 32: ``abs(asInt % W)`` (SLBSimulator).

    Examples
    --------
    >>> import numpy as np
    >>> Murmur3(seeds=(13, 17), bits=64).first(np.array([4, 9], dtype=np.uint64), n_workers=10, seed=0).tolist()
    [2, 4]
    """

    seeds: tuple[int, int] = (43, 47)
    bits: int = 32

    def __post_init__(self) -> None:
        if self.bits not in (32, 64):
            raise ConfigError(f"bits must be 32 or 64, got {self.bits}")
        if len(self.seeds) != 2:
            raise ConfigError(f"seeds must be two numbers, got {self.seeds}")

    def first(self, keys: NDArray[np.uint64], n_workers: int, seed: int) -> NDArray[np.int32]:
        """Home worker of each key; `seed` shifts both murmur seeds."""
        out = np.empty(len(keys), dtype=np.int32)
        _reduce(keys, np.uint64((self.seeds[0] + seed) & 0xFFFFFFFFFFFFFFFF), n_workers, self.bits, out)
        return out

    def pairs(self, keys: NDArray[np.uint64], n_workers: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """First and second candidate of each key."""
        second = np.empty(len(keys), dtype=np.int32)
        _reduce(keys, np.uint64((self.seeds[1] + seed) & 0xFFFFFFFFFFFFFFFF), n_workers, self.bits, second)
        return self.first(keys, n_workers, seed), second


def murmur3_64(data: bytes, seed: int) -> int:
    """First 64 bits of murmur3_128, signed as Guava's ``asLong``."""
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    return int(np.uint64(murmur3_128(content, 0, len(data), np.uint64(seed))[0]).astype(np.int64))


@njit(cache=True, inline="always")
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (np.uint64(64) - bits))


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
def murmur3_128(data: NDArray[np.uint8], start: int, end: int, seed: np.uint64) -> tuple[np.uint64, np.uint64]:
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


@njit(cache=True)
def _decimal(number: np.uint64, text: NDArray[np.uint8]) -> int:
    """Write `number` into `text` and return its length."""
    length = 0
    while length == 0 or number > 0:
        text[length] = np.uint8(48 + number % np.uint64(10))
        number = number // np.uint64(10)
        length += 1
    for i in range(length // 2):
        text[i], text[length - 1 - i] = text[length - 1 - i], text[i]
    return length


@njit(cache=True)
def _reduce(keys: NDArray[np.uint64], seed: np.uint64, n_workers: int, bits: int, out: NDArray[np.int32]) -> None:
    text = np.empty(20, dtype=np.uint8)
    for i in range(len(keys)):
        h, _ = murmur3_128(text, 0, _decimal(keys[i], text), seed)
        if bits == 32:
            out[i] = abs(np.int64(np.int32(h & np.uint64(0xFFFFFFFF)))) % n_workers
        else:
            out[i] = abs(np.int64(h)) % n_workers
