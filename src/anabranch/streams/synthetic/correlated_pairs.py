"""Pairs of correlated keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.errors import ConfigError
from anabranch.kernels import njit
from anabranch.streams.counter_random import below, lane, uniform
from anabranch.streams.generated import MAX_KEYS, Generated, require_count, require_number


@dataclass(frozen=True)
class CorrelatedPairs(Generated):
    """Tuples (integer, integer, padding) whose two integers are equal with a given chance.

    When to use it: for two operators in a row, keyed by `key` and then by `second`, and routes that keep equal pairs
    on one server.

    Guarantees
    ----------
    `key` and `second` are each uniform over 1 … n_values. They are equal with probability `locality`, independently
    from tuple to tuple, and otherwise `second` is any of the other values.

    Parameters
    ----------
    n_tuples, n_values
        Length of the stream; values of each integer.
    locality
        Chance that both are equal, from 0 to 1.
    padding
        Bytes a tuple carries besides; above 0 there is a column ``padding``. Its value is stored once per batch.

    Examples
    --------
    >>> batch = next(CorrelatedPairs(n_tuples=1000, n_values=6, locality=0.8, padding=12_000).batches())
    >>> batch.schema.names, len(batch["padding"][0].as_py())
    (['key', 'second', 'padding'], 12000)

    References
    ----------
    Caneill et al., "Locality-aware routing in stateful streaming applications" (Middleware 2016), §4.2. The paper
    leaves open how unequal pairs are drawn; here all are equally likely.
    """

    name: ClassVar[str] = "correlated-pairs"

    n_tuples: int = 1_000_000
    n_values: int = 6
    locality: float = 0.8
    padding: int = 0

    def __post_init__(self) -> None:
        require_count("n_tuples", self.n_tuples)
        require_count("n_values", self.n_values, at_most=MAX_KEYS)
        require_number("locality", self.locality, at_least=0.0, at_most=1.0)
        require_count("padding", self.padding, at_least=0, at_most=2**30)
        if self.n_values == 1 and self.locality < 1.0:
            raise ConfigError(
                f"locality must be 1 when n_values is 1, got {self.locality}; a single value is always equal to itself"
            )

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        keys = np.empty(count, dtype=np.int64)
        seconds = np.empty(count, dtype=np.int64)
        _fill_pairs(seed, start, self.n_values, float(self.locality), keys, seconds)
        columns = {"key": pa.array(keys), "second": pa.array(seconds)}
        if self.padding > 0:
            value = pa.array([bytes(self.padding)], type=pa.binary())
            columns["padding"] = pa.DictionaryArray.from_arrays(np.zeros(count, dtype=np.int32), value)
        return columns


@njit(cache=True)
def _fill_pairs(seed: np.uint64, start: int, n_values: int, locality: float, keys: I64, seconds: I64) -> None:
    key_lane = lane(seed, 0)
    equal_lane = lane(seed, 1)
    distance_lane = lane(seed, 2)
    for i in range(keys.size):
        key = below(key_lane, start + i, n_values)
        second = key
        if uniform(equal_lane, start + i) >= locality:
            second = key + 1 + below(distance_lane, start + i, n_values - 1)
            if second >= n_values:
                second -= n_values
        keys[i] = key + 1
        seconds[i] = second + 1
