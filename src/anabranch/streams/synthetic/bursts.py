"""Zipf keys with bursts of new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.kernels import njit
from anabranch.streams.counter_random import lane, uniform
from anabranch.streams.generated import Generated, require_count, require_number
from anabranch.streams.synthetic.zipf import require_zipf, zipf_ranks

# The lanes of the ranks start at 0 and count attempts.
_NEW_LANE = 1 << 40


@dataclass(frozen=True)
class Bursts(Generated):
    """Zipf keys among which one brand-new key after the other is hot for a short while and never comes back.

    When to use it: against groupings that learn hot keys from the past; when they know one, the next has begun.

    Guarantees
    ----------
    Burst b has key n_keys + 1 + b, which occurs in the tuples b · length to (b + 1) · length − 1 only, in each of them
    with probability `share`. The other tuples are those of `Zipf` with the same seed. No table is kept.

    Parameters
    ----------
    n_tuples, n_keys, z
        As in `Zipf`; the keys of the bursts come on top of n_keys.
    share
        Share of a burst's tuples that its key has, from 0 to 1.
    length
        Tuples in a burst, at least 1. The next burst follows at once.

    Examples
    --------
    >>> keys = next(Bursts(n_tuples=6000, n_keys=100, z=1.2).batches())["key"].to_pylist()
    >>> sorted({key for key in keys if key > 100})
    [101, 102]
    >>> 0.25 < keys[:3000].count(101) / 3000 < 0.35, keys[3000:].count(101)
    (True, 0)
    """

    name: ClassVar[str] = "bursts"

    n_tuples: int = 1_000_000
    n_keys: int = 100_000
    z: float = 1.2
    share: float = 0.3
    length: int = 3000

    def __post_init__(self) -> None:
        require_zipf(self.n_tuples, self.n_keys, self.z)
        require_number("share", self.share, at_least=0.0, at_most=1.0)
        require_count("length", self.length)

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        keys = zipf_ranks(seed, start, count, n_keys=self.n_keys, z=self.z)
        put_new_keys(seed, start, keys, self.n_keys + 1, float(self.share), self.length)
        return {"key": pa.array(keys)}


@njit(cache=True)
def put_new_keys(seed: np.uint64, start: int, keys: I64, first: int, share: float, length: int) -> None:
    """Replace `share` of the keys, at random, by keys from `first` on: another one every `length` tuples."""
    new_lane = lane(seed, _NEW_LANE)
    for i in range(keys.size):
        if uniform(new_lane, start + i) < share:
            keys[i] = first + (start + i) // length
