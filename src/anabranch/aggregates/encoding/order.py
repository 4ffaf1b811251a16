"""Spark's order of values as the order of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.arrays import F64, I64
from anabranch.kernels import njit

Back = Callable[[I64], pa.Array]
_POSITIVE = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def is_orderable(type_: pa.DataType) -> bool:
    """Whether `ordered` takes values of this type."""
    kinds = pa.types
    return bool(
        kinds.is_boolean(type_)
        or kinds.is_integer(type_)
        or kinds.is_floating(type_)
        or kinds.is_decimal(type_)
        or kinds.is_temporal(type_)
        or kinds.is_string(type_)
        or kinds.is_large_string(type_)
        or kinds.is_binary(type_)
        or kinds.is_large_binary(type_)
    )


def ordered(values: pa.Array) -> tuple[I64, Back]:
    """Integers in the same order as the values, and the way back from some of those integers to values.

    Floats are in Spark's order: NaN is the largest, and −0.0 is 0.0. Strings are compared by their bytes.

    Parameters
    ----------
    values
        Without nulls.
    """
    type_ = values.type
    if pa.types.is_floating(type_):
        return _ordered_floats(values.cast(pa.float64()).to_numpy(zero_copy_only=False), type_)
    if pa.types.is_signed_integer(type_) or pa.types.is_temporal(type_):
        # Arrow casts only 32-bit times and dates to 32-bit integers.
        storage = pa.int32() if pa.types.is_temporal(type_) and type_.bit_width == 32 else pa.int64()
        codes = values.cast(storage).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return codes, lambda chosen: pa.array(chosen, pa.int64()).cast(storage).cast(type_)
    return _ordered_dictionary(values)


def _ordered_floats(values: F64, type_: pa.DataType) -> tuple[I64, Back]:
    # Adding 0.0 turns −0.0 into 0.0; the sign bit of a NaN would make it the smallest.
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)

    def back(chosen: I64) -> pa.Array:
        return pa.array(_flip(chosen).view(np.float64), pa.float64()).cast(type_)

    return _flip(bits), back


def _flip(bits: I64) -> I64:
    return bits ^ ((bits >> 63) & _POSITIVE)


def _ordered_dictionary(values: pa.Array) -> tuple[I64, Back]:
    encoded = values.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    sorted_values = encoded.dictionary.take(order)
    return ranks[encoded.indices.to_numpy()], lambda chosen: sorted_values.take(pa.array(chosen))


@njit(cache=True)
def sort_within(codes: I64, values: NDArray[Any], n: int) -> tuple[I64, NDArray[Any]]:
    """Where each group starts and the last one ends, and the values in the order of groups, ascending within each."""
    ends = np.zeros(n + 1, np.int64)
    for code in codes:
        ends[code + 1] += 1
    ends = np.cumsum(ends)
    places, placed = ends[:-1].copy(), np.empty_like(values)
    for i in range(len(codes)):
        placed[places[codes[i]]] = values[i]
        places[codes[i]] += 1
    for group in range(n):
        placed[ends[group] : ends[group + 1]].sort()
    return ends, placed
