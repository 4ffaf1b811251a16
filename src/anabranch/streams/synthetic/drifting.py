"""Zipf keys whose hot set changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64, U64
from anabranch.kernels import njit
from anabranch.streams.counter_random import lane, mix64
from anabranch.streams.generated import Generated, require_count
from anabranch.streams.synthetic.zipf import require_zipf, zipf_ranks

# The lanes of the ranks start at 0 and count attempts; periods draw from far above them.
_PERIOD_LANE = 1 << 40
_ROUNDS = 4
_NEVER_BACK = 2**62


@dataclass(frozen=True)
class Drifting(Generated):
    """Zipf keys whose hot ones change in every period: the law stays, the names change.

    When to use it: to see how fast a grouping notices new hot keys, again and again.

    Guarantees
    ----------
    Within a period the keys are a bijective relabelling of Zipf ranks in 1 … n_keys; each period has its own,
    pseudo-random in the seed. No table is kept, whatever n_keys is.

    Parameters
    ----------
    n_tuples, n_keys, z
        As in `Zipf`.
    every
        Tuples in a period, at least 1.

    Examples
    --------
    >>> stream = Drifting(n_tuples=2000, n_keys=10_000, z=2.0, every=1000)
    >>> tops = [max(set(keys), key=keys.count) for keys in (b["key"].to_pylist() for b in stream.batches(size=1000))]
    >>> tops[0] != tops[1]
    True

    References
    ----------
    The partial key grouping paper studies such drift on its cashtag data (§V.A, CT), where the popular keys change
    from week to week. Black, Rogaway, "Ciphers with arbitrary finite domains" (CT-RSA 2002): cycle walking.
    """

    name: ClassVar[str] = "drifting"

    n_tuples: int = 1_000_000
    n_keys: int = 100_000
    z: float = 1.2
    every: int = 100_000

    def __post_init__(self) -> None:
        require_zipf(self.n_tuples, self.n_keys, self.z)
        require_count("every", self.every)

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        keys = zipf_ranks(seed, start, count, n_keys=self.n_keys, z=self.z)
        relabel(seed, start, keys, self.n_keys, self.every, _NEVER_BACK)
        return {"key": pa.array(keys)}


@njit(cache=True)
def relabel(seed: np.uint64, start: int, keys: I64, n_keys: int, every: int, n_phases: int) -> None:
    """Give ranks their keys in place: another bijection every `every` tuples, the first again after `n_phases`."""
    n_bits = 0
    while (1 << n_bits) < n_keys:
        n_bits += 1
    constants = np.empty(2 * _ROUNDS, dtype=np.uint64)
    i = 0
    while i < keys.size:
        period = (start + i) // every
        state = lane(seed, _PERIOD_LANE + period % n_phases)
        for j in range(constants.size):
            state = mix64(state + np.uint64(j + 1))
            constants[j] = state
        end = min(keys.size, (period + 1) * every - start)
        while i < end:
            keys[i] = 1 + permuted(keys[i] - 1, n_keys, n_bits, constants)
            i += 1


@njit(cache=True)
def permuted(value: int, n: int, n_bits: int, constants: U64) -> int:
    """A bijection of [0, n), where 2**n_bits is the smallest power of two that holds n values.

    Each round is an affine map with an odd factor and a shift, both bijections of n_bits-bit words. A word outside
    [0, n) is mapped again until it falls inside, at most twice on average.
    """
    if n_bits == 0:
        return value
    mask = (np.uint64(1) << np.uint64(n_bits)) - np.uint64(1)
    shift = np.uint64((n_bits + 1) // 2)
    word = np.uint64(value)
    while True:
        for j in range(0, constants.size, 2):
            word = ((word + constants[j]) * (constants[j + 1] | np.uint64(1))) & mask
            word ^= word >> shift
        if word < np.uint64(n):
            return int(word)
