"""Kernels that add doubles, and products of doubles, into 32-bit limbs."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64, Bools
from anabranch.kernels import njit

Scale = tuple[int, int]
_MANTISSA = (1 << 52) - 1
_HIDDEN = 1 << 52
_LOW_HALF = (1 << 27) - 1


def add_doubles(codes: I64, values: F64, n: int, scale: Scale) -> tuple[I64, I64]:
    """Sum of each group as limbs (one row per group), and the rows whose values have no place in them.

    Parameters
    ----------
    codes
        Group of each value.
    values
        Any doubles.
    n
        Number of groups.
    scale
        Exponent of the finest bit, and number of limbs.
    """
    limbs, left = _add_doubles(codes, values.view(np.int64), n, *scale)
    return carry(limbs), np.flatnonzero(left)


def add_products(codes: I64, x: F64, y: F64, n: int, scale: Scale) -> tuple[I64, I64]:
    """The same for products x·y, which are not rounded."""
    limbs, left = _add_products(codes, x.view(np.int64), y.view(np.int64), n, *scale)
    return carry(limbs), np.flatnonzero(left)


@njit(cache=True)
def carry(limbs: I64) -> I64:
    """Bring every limb but the last into −2^31 … 2^31 − 1, in place: a sum has only one such form."""
    for group in range(limbs.shape[0]):
        for j in range(limbs.shape[1] - 1):
            over = (limbs[group, j] + (1 << 31)) >> 32
            limbs[group, j] -= over << 32
            limbs[group, j + 1] += over
    return limbs


@njit(cache=True)
def _bit_length(mantissa: int) -> int:
    length = 0
    while mantissa >> length:
        length += 1
    return length


@njit(cache=True)
def _fits(mantissa: int, shift: int, n_bits: int) -> bool:
    """Whether mantissa · 2^shift is an integer below 2^n_bits."""
    if shift < 0:
        return shift > -63 and mantissa & ((1 << -shift) - 1) == 0
    return shift + 63 <= n_bits or shift + _bit_length(mantissa) <= n_bits


@njit(cache=True)
def _put(limbs: I64, mantissa: int, shift: int, sign: int) -> None:
    """Add ± mantissa · 2^shift, which must fit, to the limbs of one group; mantissa < 2^56."""
    if shift < 0:
        mantissa, shift = mantissa >> -shift, 0
    limb, offset = shift >> 5, shift & 31
    limbs[limb] += sign * ((mantissa & ((1 << (32 - offset)) - 1)) << offset)
    rest = mantissa >> (32 - offset)
    # Beyond the last limb there is nothing left to add.
    if rest:
        limbs[limb + 1] += sign * (rest & 0xFFFF_FFFF)
        if rest >> 32:
            limbs[limb + 2] += sign * (rest >> 32)


@njit(cache=True)
def _add_doubles(codes: I64, bits: I64, n: int, unit: int, n_limbs: int) -> tuple[I64, Bools]:
    limbs, left = np.zeros((n, n_limbs), np.int64), np.zeros(len(codes), np.bool_)
    for i in range(len(codes)):
        exponent = (bits[i] >> 52) & 0x7FF
        mantissa = (bits[i] & _MANTISSA) | _HIDDEN
        shift = exponent - 1075 - unit
        if exponent == 0:
            left[i] = mantissa != _HIDDEN
        elif exponent == 0x7FF or not _fits(mantissa, shift, 32 * n_limbs):
            left[i] = True
        else:
            _put(limbs[codes[i]], mantissa, shift, 1 - 2 * ((bits[i] >> 63) & 1))
    return limbs, left


@njit(cache=True)
def _add_products(codes: I64, x: I64, y: I64, n: int, unit: int, n_limbs: int) -> tuple[I64, Bools]:
    limbs, left = np.zeros((n, n_limbs), np.int64), np.zeros(len(codes), np.bool_)
    for i in range(len(codes)):
        x_exponent, y_exponent = (x[i] >> 52) & 0x7FF, (y[i] >> 52) & 0x7FF
        x_zero, y_zero = (x[i] << 1) == 0, (y[i] << 1) == 0
        if x_exponent == 0x7FF or y_exponent == 0x7FF:
            left[i] = True
        elif x_zero or y_zero:
            continue
        elif x_exponent == 0 or y_exponent == 0:
            left[i] = True
        else:
            left[i] = not _put_product(
                limbs[codes[i]],
                (x[i] & _MANTISSA) | _HIDDEN,
                (y[i] & _MANTISSA) | _HIDDEN,
                x_exponent + y_exponent - 2150 - unit,
                1 - 2 * (((x[i] ^ y[i]) >> 63) & 1),
            )
    return limbs, left


@njit(cache=True)
def _put_product(limbs: I64, a: int, b: int, shift: int, sign: int) -> bool:
    """Add ± a · b · 2^shift in three parts of at most 55 bits; False, and nothing added, where one has no place."""
    a_high, a_low = a >> 27, a & _LOW_HALF
    b_high, b_low = b >> 27, b & _LOW_HALF
    high, middle, low = a_high * b_high, a_high * b_low + a_low * b_high, a_low * b_low
    n_bits = 32 * len(limbs)
    if not (_fits(high, shift + 54, n_bits) and _fits(middle, shift + 27, n_bits) and _fits(low, shift, n_bits)):
        return False
    _put(limbs, high, shift + 54, sign)
    _put(limbs, middle, shift + 27, sign)
    _put(limbs, low, shift, sign)
    return True
