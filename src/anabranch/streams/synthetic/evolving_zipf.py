"""Zipf keys whose ranks flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.streams.generated import Generated, require_number
from anabranch.streams.synthetic.zipf import require_zipf, zipf_ranks


@dataclass(frozen=True)
class EvolvingZipf(Generated):
    """Zipf keys whose popularity is turned upside down once: what was rare becomes hot.

    When to use it: to see whether a grouping forgets. Compare makespans; a cumulative imbalance hides the flip.

    Guarantees
    ----------
    Before the flip the tuples are those of `Zipf` with the same seed; after it key i stands where n_keys + 1 − i would.

    Parameters
    ----------
    n_tuples, n_keys, z
        As in `Zipf`.
    flip
        Share of the stream before the flip, from 0 to 1.

    Examples
    --------
    >>> stream = EvolvingZipf(n_tuples=1000, n_keys=50, z=2.0)
    >>> keys = next(stream.batches())["key"].to_pylist()
    >>> max(set(keys[:800]), key=keys[:800].count), max(set(keys[800:]), key=keys[800:].count)
    (1, 50)

    References
    ----------
    FISH, §6 (data set ZF: 50 M tuples, 10^5 keys, z from 1.0 to 2.0). Its formula for the last 20 % repeats that of the
    first 80 %; the reversal p(i) ∝ (n_keys + 1 − i)^−z is our reading of it.
    """

    name: ClassVar[str] = "evolving-zipf"

    n_tuples: int = 1_000_000
    n_keys: int = 100_000
    z: float = 1.2
    flip: float = 0.8

    def __post_init__(self) -> None:
        require_zipf(self.n_tuples, self.n_keys, self.z)
        require_number("flip", self.flip, at_least=0.0, at_most=1.0)

    @property
    def needs_end(self) -> bool:
        return True

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        keys = zipf_ranks(seed, start, count, n_keys=self.n_keys, z=self.z)
        flipped = keys[max(round(self.flip * self.n_tuples) - start, 0) :]
        np.subtract(self.n_keys + 1, flipped, out=flipped)
        return {"key": pa.array(keys)}
