"""Log-normal keys."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.arrays import I64
from anabranch.errors import ConfigError
from anabranch.kernels import njit
from anabranch.streams.counter_random import lane, normal_quantile, uniform
from anabranch.streams.generated import Generated, require_count, require_number

# The uniforms are at least 2**-53 away from 0 and 1, where the normal quantile is ±8.2.
_FARTHEST_NORMAL = 8.3


@dataclass(frozen=True)
class LogNormal(Generated):
    """Keys round(exp(N(mu, sigma))): many keys, a heavy tail, and a top key that is not key 1.

    When to use it: to meet the partial key grouping paper's synthetic figures (`ln1`, `ln2`).

    Guarantees
    ----------
    Key k has the probability that a log-normal variate lies within ½ of k; key 0 takes what is below ½.

    Parameters
    ----------
    n_tuples
        Length of the stream.
    mu, sigma
        Mean and standard deviation of the logarithm; sigma is above 0. The defaults are those of `ln1`.

    Examples
    --------
    >>> keys = next(LogNormal.ln1(n_tuples=10_000).batches())["key"].to_pylist()
    >>> 0.13 < keys.count(0) / len(keys) < 0.16
    True

    References
    ----------
    Nasir et al., "The power of both choices" (ICDE 2015), §V, Table I: p1 is 14.71 % for LN1 and 7.01 % for LN2, with
    16k and 1.1k keys. The paper does not say how a variate becomes a key; rounding to the nearest integer gives all
    four figures.
    """

    name: ClassVar[str] = "log-normal"

    n_tuples: int = 1_000_000
    mu: float = 1.789
    sigma: float = 2.366

    def __post_init__(self) -> None:
        require_count("n_tuples", self.n_tuples)
        require_number("mu", self.mu, at_least=-math.inf)
        require_number("sigma", self.sigma, at_least=0.0)
        if self.sigma == 0.0:
            raise ConfigError("sigma must be above 0, got 0; use Zipf with n_keys=1 for a single key")
        if self.mu + _FARTHEST_NORMAL * self.sigma > math.log(2.0**62):
            raise ConfigError(
                f"mu + {_FARTHEST_NORMAL} sigma must be at most 42.9 for keys to fit into 64 bits, "
                f"got mu={self.mu}, sigma={self.sigma}; lower one of them"
            )

    @classmethod
    def ln1(cls, n_tuples: int = 10_000_000) -> LogNormal:
        """The paper's LN1: some 16 000 keys, the top one with 14.71 % of the tuples."""
        return cls(n_tuples)

    @classmethod
    def ln2(cls, n_tuples: int = 10_000_000) -> LogNormal:
        """The paper's LN2: some 1100 keys, the top one with 7.01 % of the tuples."""
        return cls(n_tuples, mu=2.245, sigma=1.133)

    def _columns(self, seed: np.uint64, start: int, count: int) -> dict[str, pa.Array]:
        keys = np.empty(count, dtype=np.int64)
        _fill_log_normal(seed, start, float(self.mu), float(self.sigma), keys)
        return {"key": pa.array(keys)}


@njit(cache=True)
def _fill_log_normal(seed: np.uint64, start: int, mu: float, sigma: float, out: I64) -> None:
    first = lane(seed, 0)
    for i in range(out.size):
        out[i] = np.int64(np.exp(mu + sigma * normal_quantile(uniform(first, start + i))) + 0.5)
