"""Zipf keys whose ranking changes and comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.streams.generated import Generated, require_count
from anabranch.streams.synthetic.drifting import relabel
from anabranch.streams.synthetic.zipf import require_zipf, zipf_ranks


@dataclass(frozen=True)
class Alternating(Generated):
    """Zipf keys that change between a few rankings and come back to the first, round and round.

    When to use it: to see whether a grouping that forgets learns the same hot keys again every time, and whether one
    that does not forget is still balanced when they change.

    Guarantees
    ----------
    Within a period the keys are a bijective relabelling of Zipf ranks in 1 … n_keys, pseudo-random in the seed; periods
    p and p + n_phases have the same. No table is kept, whatever n_keys is.

    Parameters
    ----------
    n_tuples, n_keys, z
        As in `Zipf`.
    period
        Tuples between changes of the ranking, at least 1.
    n_phases
        Rankings, at least 2.

    Examples
    --------
    >>> stream = Alternating(n_tuples=3000, n_keys=10_000, z=2.0, period=1000)
    >>> tops = [max(set(keys), key=keys.count) for keys in (b["key"].to_pylist() for b in stream.batches(size=1000))]
    >>> tops[0] != tops[1], tops[0] == tops[2]
    (True, True)
    """

    name: ClassVar[str] = "alternating"

    n_tuples: int = 1_000_000
    n_keys: int = 100_000
    z: float = 1.2
    period: int = 100_000
    n_phases: int = 2

    def __post_init__(self) -> None:
        require_zipf(self.n_tuples, self.n_keys, self.z)
        require_count("period", self.period)
        require_count("n_phases", self.n_phases, at_least=2)

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        keys = zipf_ranks(seed, start, count, n_keys=self.n_keys, z=self.z)
        relabel(seed, start, keys, self.n_keys, self.period, self.n_phases)
        return {"key": pa.array(keys)}
