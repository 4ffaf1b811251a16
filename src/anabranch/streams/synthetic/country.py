"""Country names with one hot name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import I32
from anabranch.kernels import njit
from anabranch.streams.counter_random import below, lane, uniform
from anabranch.streams.generated import Generated, require_count, require_number
from anabranch.streams.synthetic.country_names import COUNTRY_NAMES


@dataclass(frozen=True)
class Country(Generated):
    """The names of 204 countries; one of them has a given share of the tuples.

    When to use it: to meet the dynamic key grouping paper's figures; one extremely hot key, all others alike.

    Guarantees
    ----------
    The first name has `skew_percent` % of the tuples, and the other 203 share the rest evenly; at 0 % all 204 are
    alike. The column ``key`` is dictionary-encoded text.

    Parameters
    ----------
    n_tuples
        Length of the stream (10 million in the paper).
    skew_percent
        Share of the hot name in percent, from 0 to 100.
    half_skew
        The first half of the stream is skewed and the second is as at 0 %, so that the hot name has about half of
        `skew_percent` overall.

    Examples
    --------
    >>> names = next(Country(n_tuples=1000, skew_percent=80).batches())["key"].to_pylist()
    >>> 0.75 < names.count(COUNTRY_NAMES[0]) / 1000 < 0.85
    True

    References
    ----------
    Dynamic key grouping, §5.1, Table 2: country-skew-r0 … r100, and country-half-skew-r80 with an overall skew of
    40 %. The paper does not say which half is skewed; its authors' public generator writes the skewed half first. That
    generator draws the rest from all names, the hot one included; here the hot name has its share exactly.
    """

    name: ClassVar[str] = "country"

    n_tuples: int = 1_000_000
    skew_percent: float = 80.0
    half_skew: bool = False

    def __post_init__(self) -> None:
        require_count("n_tuples", self.n_tuples)
        require_number("skew_percent", self.skew_percent, at_least=0.0, at_most=100.0)

    @property
    def needs_end(self) -> bool:
        return self.half_skew

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        indices = np.empty(count, dtype=np.int32)
        skewed = self.n_tuples // 2 if self.half_skew else self.n_tuples
        if self.skew_percent == 0:
            skewed = 0
        _fill_names(seed, start, len(COUNTRY_NAMES), self.skew_percent / 100.0, skewed, indices)
        return {"key": pa.DictionaryArray.from_arrays(indices, pa.array(COUNTRY_NAMES))}


@njit(cache=True)
def _fill_names(seed: np.uint64, start: int, n_names: int, share: float, skewed: int, out: I32) -> None:
    hot_lane = lane(seed, 0)
    name_lane = lane(seed, 1)
    for i in range(out.size):
        index = start + i
        if index >= skewed:
            out[i] = below(name_lane, index, n_names)
        elif uniform(hot_lane, index) < share:
            out[i] = 0
        else:
            out[i] = 1 + below(name_lane, index, n_names - 1)
