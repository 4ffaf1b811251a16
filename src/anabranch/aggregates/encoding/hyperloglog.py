"""HyperLogLog sketches in the bytes of Apache DataSketches, many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.aggregates.encoding.lists import binaries, bytes_of
from anabranch.aggregates.groups import Groups
from anabranch.arrays import I64, U8, Bools
from anabranch.errors import InputError
from anabranch.kernels import njit

# From this many coupons on a sketch is a set, no longer a list.
_SET = 8
_DENSE_HEADER = 40
_DENSE = 2


@dataclass(frozen=True)
class HyperLogLog:
    """Writes and merges sketches of type HLL_8: a list or set of sorted coupons for few values, registers for many.

    Guarantees
    ----------
    Equal sets of coupons give equal bytes, however they were split: registers are marked as merged out of order, so
    that they have no estimate of their own that would depend on the order of updates.

    Parameters
    ----------
    lg_k
        Logarithm of the number of registers.

    References
    ----------
    Apache DataSketches, *HLL sketch*, ``hll/PreambleUtil.java`` for the bytes.
    """

    lg_k: int

    @property
    def most_coupons(self) -> int:
        """Most coupons that a sketch holds before it changes to registers."""
        return _SET - 1 if self.lg_k < 8 else 3 * 2 ** (self.lg_k - 3) // 4

    def of(self, groups: Groups, coupons: I64) -> pa.Array:
        """Sketch of each group from the coupons of its values."""
        keys = _distinct(((groups.codes << 32) | coupons)[coupons != 0])
        return self._encode(groups.n, keys, np.full(groups.n, -1, np.int64), 0)

    def merge(self, groups: Groups, sketches: pa.Array) -> pa.Array:
        """Sketch of each group from those of its parts, which must have as many registers."""
        data, ends = bytes_of(sketches)
        is_dense = (np.diff(ends) > 7) & (_modes(data, ends) == _DENSE)
        self._check(data, ends, is_dense)
        keys = _distinct(_held_coupons(data, ends, groups.codes, is_dense))
        slots = np.full(groups.n, -1, np.int64)
        dense_groups = np.unique(groups.codes[is_dense])
        slots[dense_groups] = np.arange(len(dense_groups))
        parts = (data, ends[:-1][is_dense], slots[groups.codes[is_dense]])
        return self._encode(groups.n, keys, slots, len(dense_groups), parts)

    def _check(self, data: U8, ends: I64, is_dense: Bools) -> None:
        """Refuse sketches of another size, and registers that are cut off: they would be read beyond their end."""
        lengths = np.diff(ends)
        found = data[ends[:-1][lengths > 7] + 3]
        if np.any(found != self.lg_k):
            other = found[found != self.lg_k][0]
            raise InputError(
                f"sketches must have lg_k = {self.lg_k} to be merged, got one with {other}; "
                f"go on with lg_k={other}, or start anew with another checkpoint"
            )
        size = _DENSE_HEADER + (1 << self.lg_k)
        if np.any(lengths[is_dense] != size):
            wrong = lengths[is_dense][lengths[is_dense] != size][0]
            raise InputError(
                f"a sketch of registers must have {size} bytes, got {wrong}; write it as hll_sketch_agg does"
            )

    def _encode(
        self, n: int, keys: I64, slots: I64, n_dense: int, parts: tuple[U8, I64, I64] | None = None
    ) -> pa.Array:
        """Sketches from coupons (below the group in the upper half of a key) and from the registers of parts."""
        counts = np.bincount(keys >> 32, minlength=n)
        grown = (counts > self.most_coupons) & (slots < 0)
        slots[grown] = n_dense + np.arange(np.count_nonzero(grown))
        registers = np.zeros((n_dense + np.count_nonzero(grown), 1 << self.lg_k), np.uint8)
        if parts is not None:
            _fold_registers(*parts, registers)
        _fold_coupons(keys, slots, registers)
        few = np.where(counts < _SET, 8, 12) + 4 * counts
        ends = np.concatenate([[0], np.cumsum(np.where(slots >= 0, _DENSE_HEADER + (1 << self.lg_k), few))])
        data = np.zeros(ends[-1], np.uint8)
        _write(data, ends, self.lg_k, keys, counts, slots, registers)
        return binaries(data, ends)


def _distinct(keys: I64) -> I64:
    """Ascending. NumPy's own `unique` hashes first, which takes seven times as long here."""
    keys = np.sort(keys)
    distinct: I64 = keys[np.diff(keys, prepend=-1) != 0]
    return distinct


@njit(cache=True)
def _modes(data: U8, ends: I64) -> I64:
    modes = np.zeros(len(ends) - 1, np.int64)
    for i in range(len(modes)):
        if ends[i + 1] - ends[i] > 7:
            modes[i] = data[ends[i] + 7] & 3
    return modes


@njit(cache=True)
def _held_coupons(data: U8, ends: I64, codes: I64, is_dense: Bools) -> I64:
    keys, n = np.empty(len(data) // 4 + 1, np.int64), 0
    for i in range(len(codes)):
        if is_dense[i] or ends[i + 1] - ends[i] < 8:
            continue
        first = ends[i] + (12 if data[ends[i] + 7] & 3 else 8)
        for at in range(first, ends[i + 1] - 3, 4):
            coupon = np.int64(0)
            for byte in range(4):
                coupon |= np.int64(data[at + byte]) << (8 * byte)
            # Zero is a free place in a sketch that Spark has written.
            if coupon:
                keys[n] = (codes[i] << 32) | coupon
                n += 1
    return keys[:n]


@njit(cache=True)
def _fold_registers(data: U8, starts: I64, slots: I64, registers: U8) -> None:
    for i in range(len(starts)):
        first = starts[i] + _DENSE_HEADER
        for register in range(registers.shape[1]):
            registers[slots[i], register] = max(registers[slots[i], register], data[first + register])


@njit(cache=True)
def _fold_coupons(keys: I64, slots: I64, registers: U8) -> None:
    for i in range(len(keys)):
        slot = slots[keys[i] >> 32]
        if slot >= 0:
            register = keys[i] & (registers.shape[1] - 1)
            value = np.uint8((keys[i] >> 26) & 63)
            registers[slot, register] = max(registers[slot, register], value)


@njit(cache=True)
def _write(data: U8, ends: I64, lg_k: int, keys: I64, counts: I64, slots: I64, registers: U8) -> None:
    first = 0
    for group in range(len(counts)):
        sketch = data[ends[group] : ends[group + 1]]
        sketch[1], sketch[2], sketch[3] = 1, 7, lg_k
        if slots[group] >= 0:
            _write_registers(sketch, registers[slots[group]])
        else:
            _write_coupons(sketch, keys[first : first + counts[group]])
        first += counts[group]


@njit(cache=True)
def _write_coupons(sketch: U8, keys: I64) -> None:
    n = len(keys)
    is_set = n >= _SET
    # Compact, and empty where it is; the sketch will have eight-bit registers, and is a list (0) or a set (1).
    sketch[0], sketch[5], sketch[7] = 2 + is_set, 8 | (4 * (n == 0)), 8 | is_set
    lg_size = 5 if is_set else 3
    while is_set and 4 * n > 3 << lg_size:
        lg_size += 1
    sketch[4] = lg_size
    at = 12 if is_set else 8
    if is_set:
        for byte in range(4):
            sketch[8 + byte] = (n >> (8 * byte)) & 255
    else:
        sketch[6] = n
    for i in range(n):
        for byte in range(4):
            sketch[at + 4 * i + byte] = (keys[i] >> (8 * byte)) & 255


@njit(cache=True)
def _write_registers(sketch: U8, registers: U8) -> None:
    # Merged out of order, so that the place of the running estimate stays zero.
    sketch[0], sketch[5], sketch[7] = 10, 16, 10
    zeros, harmonic = 0, np.zeros(2)
    for i in range(len(registers)):
        zeros += registers[i] == 0
        # Two sums, so that each is exact in a double.
        harmonic[registers[i] >> 5] += 1.0 / np.float64(np.int64(1) << np.int64(registers[i]))
        sketch[_DENSE_HEADER + i] = registers[i]
    sketch[16:32] = harmonic.view(np.uint8)
    for byte in range(4):
        sketch[32 + byte] = (zeros >> (8 * byte)) & 255
