"""KLL sketches of doubles in the bytes of Apache DataSketches, many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.aggregates.encoding.kll_bytes import HEADER, SINGLE, Levels, read, write
from anabranch.aggregates.encoding.lists import binaries, bytes_of
from anabranch.aggregates.encoding.order import sort_within
from anabranch.aggregates.groups import Groups
from anabranch.arrays import F64, I64
from anabranch.kernels import njit


@dataclass(frozen=True)
class Kll:
    """Writes and merges sketches whose items are chosen from the sorted values, not at random.

    Up to k values are kept as they are. More are cut, in order, into blocks of 2^h, and the middle of each block stands
    for all of it; what is left over is cut into smaller blocks.

    Guarantees
    ----------
    Equal values in one call give equal bytes, whatever their order. Ranks are off by at most n/k for each time that
    values were thinned out.

    Parameters
    ----------
    k
        Most items of the top level.

    References
    ----------
    Karnin, Lang and Liberty, *Optimal quantile approximation in streams*, FOCS 2016; Apache DataSketches,
    ``kll/KllPreambleUtil.java`` for the bytes. Both choose items at random; here a state must not depend on chance.
    """

    k: int

    def of(self, groups: Groups, values: F64) -> pa.Array:
        """Sketch of each group from its values, none of which is NaN; null where there is none."""
        # Adding 0.0 turns −0.0 into 0.0, so that the order of equal values leaves no trace.
        ends, items = sort_within(groups.codes, values + 0.0, groups.n)
        extremes = _first_and_last(ends, items)
        return self._encode(np.diff(ends), extremes, items, np.ones(len(items), np.int64))

    def merge(self, groups: Groups, sketches: pa.Array) -> pa.Array:
        """Sketch of each group from those of its parts."""
        totals, extremes = np.zeros(groups.n, np.int64), np.zeros((groups.n, 2))
        codes, items, weights = read(*bytes_of(sketches), groups.codes, totals, extremes)
        order = np.lexsort((weights, items, codes))
        return self._encode(totals, extremes, items[order], weights[order])

    def _encode(self, totals: I64, extremes: F64, items: F64, weights: I64) -> pa.Array:
        """Sketches from weighted items in the order of groups and values; weights add up to the group's total."""
        heights = np.zeros(len(totals), np.int64)
        while np.any(totals >> heights > self.k):
            heights += totals >> heights > self.k
        n_items = (totals >> heights) + np.bitwise_count(totals & ((1 << heights) - 1))
        sizes = np.where(totals == 1, SINGLE, HEADER + 4 * (heights + 1) + 8 * (2 + n_items))
        ends = np.concatenate([[0], np.cumsum(np.where(totals == 0, 0, sizes))])
        data = np.zeros(ends[-1], np.uint8)
        levels = np.cumsum(n_items) - n_items, heights, n_items
        write(data, ends, self.k, totals, levels, extremes, _chosen(totals, levels, items, weights))
        return binaries(data, ends, mask=totals == 0)


@njit(cache=True)
def _first_and_last(ends: I64, items: F64) -> F64:
    extremes = np.zeros((len(ends) - 1, 2))
    for group in range(len(extremes)):
        if ends[group + 1] > ends[group]:
            extremes[group, 0], extremes[group, 1] = items[ends[group]], items[ends[group + 1] - 1]
    return extremes


@njit(cache=True)
def _chosen(totals: I64, levels: Levels, items: F64, weights: I64) -> F64:
    """The middle of each block, those of smaller blocks first, as levels follow each other in a sketch."""
    firsts, heights, n_items = levels
    chosen = np.empty(n_items.sum())
    at, seen = 0, 0
    for group in range(len(totals)):
        top = totals[group] >> heights[group]
        n_low = n_items[group] - top
        place, base, before = firsts[group] + n_low, 0, seen
        for block in range(n_items[group]):
            height = heights[group]
            if block >= top:
                height = _bit_length(totals[group] - base) - 1
                place = firsts[group] + n_items[group] - 1 - block
            while seen + weights[at] <= before + base + ((1 << height) >> 1):
                seen += weights[at]
                at += 1
            chosen[place] = items[at]
            base += 1 << height
            place += 1
        while seen < before + totals[group]:
            seen += weights[at]
            at += 1
    return chosen


@njit(cache=True)
def _bit_length(number: int) -> int:
    length = 0
    while number >> length:
        length += 1
    return length
