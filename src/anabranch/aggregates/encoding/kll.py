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
        """Sketch of each group from its values, without NaN; null where there is none."""
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
    """The item in the middle of each block, in the order in which a sketch stores them: small blocks first.

    A group's items lie in a row, each as long as its weight. The row is cut into blocks of 2^h, and what is left over
    into one block per binary digit, so that their lengths fall:

        items    | a | b     | c       | d | e   | f |
        blocks   |   2^h     |   2^h     | 2^i   |2^j|
        stored   2^j, 2^i, then those of 2^h from the left
    """
    firsts, heights, n_items = levels
    chosen = np.empty(n_items.sum())
    # The rows of all groups follow each other: the block in hand begins at `begin`, the item `at` at `passed`.
    begin, at, passed = 0, 0, 0
    for group in range(len(totals)):
        n_large = totals[group] >> heights[group]
        n_small, end = n_items[group] - n_large, begin + totals[group]
        for block in range(n_items[group]):
            is_large = block < n_large
            length = 1 << (heights[group] if is_large else _bit_length(end - begin) - 1)
            while passed + weights[at] <= begin + length // 2:
                passed += weights[at]
                at += 1
            place = n_small + block if is_large else n_items[group] - 1 - block
            chosen[firsts[group] + place] = items[at]
            begin += length
    return chosen


@njit(cache=True)
def _bit_length(number: int) -> int:
    length = 0
    while number >> length:
        length += 1
    return length
