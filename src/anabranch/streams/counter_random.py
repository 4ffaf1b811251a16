"""Random numbers as a function of (seed, draw number, tuple index), for numba kernels.

A draw number names a *lane*, a starting point on the orbit of splitmix64; the tuple's index is the distance walked on
it. Nothing is carried from tuple to tuple, so a stream can start anywhere and be cut into batches of any size.

References
----------
Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014): splitmix64.
Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (Applied Statistics 37, 1988).
"""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

from anabranch.kernels import njit

_WEYL = np.uint64(0x9E3779B97F4A7C15)
_LANE = np.uint64(0xD1B54A32D192ED03)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-52


def seed_bits(seed: SupportsIndex) -> np.uint64:
    """The 64 bits of a seed that the kernels take; negative seeds wrap."""
    return np.uint64(operator.index(seed) & 0xFFFF_FFFF_FFFF_FFFF)


@njit(cache=True)
def mix64(bits: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: a bijection of 64-bit words."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    return bits ^ (bits >> np.uint64(31))


@njit(cache=True)
def lane(seed: np.uint64, draw: int) -> np.uint64:
    """Where the numbers of one draw start; make it once, outside the loop over tuples."""
    return mix64(mix64(seed + _WEYL) + np.uint64(draw) * _LANE)


@njit(cache=True)
def random_bits(start: np.uint64, index: int) -> np.uint64:
    """64 random bits for the tuple at `index` of a lane."""
    return mix64(start + (np.uint64(index) + np.uint64(1)) * _WEYL)


@njit(cache=True)
def uniform(start: np.uint64, index: int) -> float:
    """A uniform number in the open interval (0, 1); never an endpoint, so that logarithms and quantiles are finite."""
    # 52 bits, not 53: with the added half, 53 would round up to 1.0.
    return (np.float64(random_bits(start, index) >> np.uint64(12)) + 0.5) * _UNIT


@njit(cache=True)
def below(start: np.uint64, index: int, n: int) -> int:
    """A uniform integer in [0, n); its bias is below n / 2**52."""
    return int(uniform(start, index) * n)


@njit(cache=True)
def normal_quantile(p: float) -> float:
    """The standard normal quantile, accurate to about 1e-16 (Wichura's PPND16)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _central_ratio(0.180625 - q * q)
    r = np.sqrt(-np.log(p if q < 0.0 else 1.0 - p))
    value = _tail_ratio(r - 1.6) if r <= 5.0 else _far_tail_ratio(r - 5.0)
    return -value if q < 0.0 else value


@njit(cache=True)
def _central_ratio(r: float) -> float:
    top = 2509.0809287301226727 * r + 33430.575583588128105
    top = ((top * r + 67265.770927008700853) * r + 45921.953931549871457) * r + 13731.693765509461125
    top = ((top * r + 1971.5909503065514427) * r + 133.14166789178437745) * r + 3.387132872796366608
    bottom = 5226.495278852545925 * r + 28729.085735721942674
    bottom = ((bottom * r + 39307.89580009271061) * r + 21213.794301586595867) * r + 5394.1960214247511077
    bottom = ((bottom * r + 687.1870074920579083) * r + 42.313330701600911252) * r + 1.0
    return top / bottom


@njit(cache=True)
def _tail_ratio(r: float) -> float:
    top = 7.7454501427834140764e-4 * r + 0.0227238449892691845833
    top = ((top * r + 0.24178072517745061177) * r + 1.27045825245236838258) * r + 3.64784832476320460504
    top = ((top * r + 5.7694972214606914055) * r + 4.6303378461565452959) * r + 1.42343711074968357734
    bottom = 1.05075007164441684324e-9 * r + 5.475938084995344946e-4
    bottom = ((bottom * r + 0.0151986665636164571966) * r + 0.14810397642748007459) * r + 0.68976733498510000455
    bottom = ((bottom * r + 1.6763848301838038494) * r + 2.05319162663775882187) * r + 1.0
    return top / bottom


@njit(cache=True)
def _far_tail_ratio(r: float) -> float:
    top = 2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
    top = ((top * r + 0.0012426609473880784386) * r + 0.026532189526576123093) * r + 0.29656057182850489123
    top = ((top * r + 1.7848265399172913358) * r + 5.4637849111641143699) * r + 6.6579046435011037772
    bottom = 2.04426310338993978564e-15 * r + 1.4215117583164458887e-7
    bottom = ((bottom * r + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525
    bottom = ((bottom * r + 0.13692988092273580531) * r + 0.59983220655588793769) * r + 1.0
    return top / bottom
