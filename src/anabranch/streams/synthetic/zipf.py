"""Zipf keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.kernels import njit
from anabranch.streams.counter_random import below, lane, uniform
from anabranch.streams.generated import MAX_KEYS, Generated, require_count, require_number


@dataclass(frozen=True)
class Zipf(Generated):
    """Keys 1 … n_keys, key i with probability proportional to i^−z.

    When to use it: the standard skewed stream of the literature. Real keys have z between 0.8 and 1.4; 0 is uniform.

    Guarantees
    ----------
    The distribution is exact for every z ≥ 0 (no table, no truncation), in constant memory.

    Parameters
    ----------
    n_tuples, n_keys
        Length of the stream; size of the key space.
    z
        Skew, at least 0.

    Examples
    --------
    >>> batch = next(Zipf(n_tuples=1000, n_keys=10, z=1.4).batches(seed=1))
    >>> batch.num_rows, batch["key"].to_pylist().count(1) > 400
    (1000, True)

    References
    ----------
    Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions" (ACM TOMACS
    6(3), 1996). The attempts of a tuple take consecutive draws of the counter-based generator.
    """

    name: ClassVar[str] = "zipf"

    n_tuples: int = 1_000_000
    n_keys: int = 100_000
    z: float = 1.2

    def __post_init__(self) -> None:
        require_zipf(self.n_tuples, self.n_keys, self.z)

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        return {"key": pa.array(zipf_ranks(seed, start, count, n_keys=self.n_keys, z=self.z))}


def require_zipf(n_tuples: int, n_keys: int, z: float) -> None:
    """Raise ConfigError unless the parameters make a Zipf stream."""
    require_count("n_tuples", n_tuples)
    require_count("n_keys", n_keys, at_most=MAX_KEYS)
    require_number("z", z, at_least=0.0)


def zipf_ranks(seed: np.uint64, start: int, count: int, *, n_keys: int, z: float) -> I64:
    """Zipf ranks of the tuples start … start + count − 1."""
    out = np.empty(count, dtype=np.int64)
    if z == 0.0:
        _fill_uniform(seed, start, n_keys, out)
    else:
        _fill_zipf(seed, start, n_keys, float(z), out)
    return out


@njit(cache=True)
def _fill_uniform(seed: np.uint64, start: int, n_keys: int, out: I64) -> None:
    first = lane(seed, 0)
    for i in range(out.size):
        out[i] = 1 + below(first, start + i, n_keys)


@njit(cache=True)
def _fill_zipf(seed: np.uint64, start: int, n_keys: int, z: float, out: I64) -> None:
    high = _area(n_keys + 0.5, z)
    low = _area(1.5, z) - 1.0
    squeeze = 2.0 - _area_inverse(_area(2.5, z) - 2.0**-z, z)
    first = lane(seed, 0)
    for i in range(out.size):
        draw = 0
        start_of_lane = first
        while True:
            area = high + uniform(start_of_lane, start + i) * (low - high)
            x = _area_inverse(area, z)
            # Clamped as a double: x is infinite where the tail is too thin for one.
            rank = min(max(np.floor(x + 0.5), 1.0), np.float64(n_keys))
            if rank - x <= squeeze or area >= _area(rank + 0.5, z) - rank**-z:
                break
            draw += 1
            start_of_lane = lane(seed, draw)
        out[i] = np.int64(rank)


@njit(cache=True)
def _area(x: float, z: float) -> float:
    """The integral of t^−z from 1 to x: (x^(1−z) − 1)/(1−z), and log x at z = 1."""
    log_x = np.log(x)
    t = (1.0 - z) * log_x
    if abs(t) < 1e-8:
        return float(log_x * (1.0 + t * 0.5 * (1.0 + t / 3.0)))
    return float(log_x * np.expm1(t) / t)


@njit(cache=True)
def _area_inverse(area: float, z: float) -> float:
    t = max(area * (1.0 - z), -1.0)
    if abs(t) < 1e-8:
        return float(np.exp(area * (1.0 - t * (0.5 - t / 3.0))))
    return float(np.exp(area * np.log1p(t) / t))
