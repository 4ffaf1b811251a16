"""Murmur3 candidates, the hash family of the reference implementations, to compare routes tuple by tuple."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.errors import ConfigError
from anabranch.hashing import HashFamily
from anabranch.hashing.murmur3 import murmur3_128
from anabranch.kernels import njit


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
