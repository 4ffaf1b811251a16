"""Zipf keys among keys that occur once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.streams.generated import Generated, require_number
from anabranch.streams.synthetic.bursts import put_new_keys
from anabranch.streams.synthetic.zipf import require_zipf, zipf_ranks


@dataclass(frozen=True)
class Singletons(Generated):
    """Zipf keys among which a share of the tuples have keys that occur once in the whole stream.

    When to use it: against sketches and tables that singletons flush or fill, and to see what memory per key costs.

    Guarantees
    ----------
    Every key above n_keys occurs once; each tuple has such a key with probability `share`. The other tuples are those
    of `Zipf` with the same seed. No table is kept.

    Parameters
    ----------
    n_tuples, n_keys, z
        As in `Zipf`; the singletons come on top of n_keys.
    share
        Share of the tuples that are singletons, from 0 to 1.

    Examples
    --------
    >>> keys = next(Singletons(n_tuples=1000, n_keys=10, z=1.2).batches())["key"].to_pylist()
    >>> new = [key for key in keys if key > 10]
    >>> len(set(new)) == len(new), 450 < len(new) < 550
    (True, True)
    """

    name: ClassVar[str] = "singletons"

    n_tuples: int = 1_000_000
    n_keys: int = 100_000
    z: float = 1.2
    share: float = 0.5

    def __post_init__(self) -> None:
        require_zipf(self.n_tuples, self.n_keys, self.z)
        require_number("share", self.share, at_least=0.0, at_most=1.0)

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        keys = zipf_ranks(seed, start, count, n_keys=self.n_keys, z=self.z)
        put_new_keys(seed, start, keys, self.n_keys + 1, float(self.share), 1)
        return {"key": pa.array(keys)}
