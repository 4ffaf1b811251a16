"""The bytes of a KLL sketch, as Apache DataSketches lays them out."""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I64, U8
from anabranch.kernels import njit

# Bytes of a sketch of one value, and those before the levels, the extremes and the items of any other.
SINGLE = 16
HEADER = 20
# DataSketches' smallest level.
_M = 8
# Of each group: its first item among those of all groups, its highest level, and its number of items.
Levels = tuple[I64, I64, I64]
Items = tuple[I64, F64, I64]


@njit(cache=True)
def _capacity(k: int, n_levels: int) -> int:
    """Room for items that DataSketches computes for so many levels: the sizes shrink by 2/3 from the top."""
    capacity, twos, threes = 0, 1, 1
    for _ in range(n_levels):
        capacity += max(_M, ((2 * k * twos) // threes + 1) // 2)
        # Further down every level has the smallest size.
        if threes < 3**30:
            twos, threes = 2 * twos, 3 * threes
    return capacity


@njit(cache=True)
def _put(sketch: U8, at: int, number: int, n_bytes: int) -> None:
    for byte in range(n_bytes):
        sketch[at + byte] = (number >> (8 * byte)) & 255


@njit(cache=True)
def _get(data: U8, at: int, n_bytes: int) -> int:
    number = np.int64(0)
    for byte in range(n_bytes):
        number |= np.int64(data[at + byte]) << np.int64(8 * byte)
    return int(number)


@njit(cache=True)
def write(data: U8, ends: I64, k: int, totals: I64, levels: Levels, extremes: F64, items: F64) -> None:
    """Write the sketches of all groups, each between its ends; `items` are those of all groups."""
    firsts, heights, n_items = levels
    for group in range(len(totals)):
        sketch, n_levels = data[ends[group] : ends[group + 1]], heights[group] + 1
        own = items[firsts[group] : firsts[group] + n_items[group]]
        if totals[group] == 0:
            continue
        single = totals[group] == 1
        # Level 0 is sorted.
        sketch[0], sketch[1], sketch[2], sketch[3] = 2 if single else 5, 2 if single else 1, 15, 4 if single else 2
        _put(sketch, 4, k, 2)
        sketch[6] = _M
        if single:
            sketch[8:] = own.view(np.uint8)
            continue
        _put(sketch, 8, totals[group], 8)
        _put(sketch, 16, k, 2)
        sketch[18] = n_levels
        start, rest = _capacity(k, n_levels) - n_items[group], totals[group] & ((1 << heights[group]) - 1)
        for level in range(n_levels):
            _put(sketch, HEADER + 4 * level, start, 4)
            start += (rest >> level) & 1
        at = HEADER + 4 * n_levels
        sketch[at : at + 16] = extremes[group].view(np.uint8)
        sketch[at + 16 :] = own.view(np.uint8)


@njit(cache=True)
def read(data: U8, ends: I64, codes: I64, totals: I64, extremes: F64) -> Items:
    """Group, value and weight of each item; adds to the totals and the extremes of the groups."""
    most = len(data) // 8 + 1
    groups, values, weights, n = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64), 0
    for i in range(len(codes)):
        sketch = data[ends[i] : ends[i + 1]]
        if len(sketch) < SINGLE:
            continue
        single = sketch[0] == 2
        n_levels = 1 if single else int(sketch[18])
        first = 8 if single else HEADER + 4 * n_levels + 16
        n_items = (len(sketch) - first) // 8
        values[n : n + n_items] = sketch[first : first + 8 * n_items].copy().view(np.float64)
        groups[n : n + n_items] = codes[i]
        weights[n : n + n_items] = 1
        for level in range(1, n_levels):
            below = _get(sketch, HEADER + 4 * level, 4) - _get(sketch, HEADER, 4)
            weights[n + below : n + n_items] = 1 << level
        bounds = values[n : n + 1].repeat(2) if single else sketch[first - 16 : first].copy().view(np.float64)
        _widen(extremes[codes[i]], bounds, totals[codes[i]] == 0)
        totals[codes[i]] += 1 if single else _get(sketch, 8, 8)
        n += n_items
    return groups[:n], values[:n], weights[:n]


@njit(cache=True)
def _widen(extremes: F64, bounds: F64, is_first: bool) -> None:
    extremes[0] = bounds[0] if is_first else min(extremes[0], bounds[0])
    extremes[1] = bounds[1] if is_first else max(extremes[1], bounds[1])
