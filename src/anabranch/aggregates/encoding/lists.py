"""States that are lists or bytes: one entry per group, in flat arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.aggregates.groups import Groups
from anabranch.arrays import I32, I64, U8, Bools
from anabranch.errors import InputError

_MOST_BYTES = 2**31 - 1


def explode(groups: Groups, lists: pa.Array) -> tuple[I64, pa.Array]:
    """Group of each element, and the elements of all lists; a list that is null has none."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    return np.repeat(groups.codes, lengths), lists.flatten()


def leading(codes: I64, n_groups: int, longest: int) -> tuple[Bools, I32]:
    """Which elements are among the first of their group, and where each group's list of them starts and ends.

    Parameters
    ----------
    codes
        Group of each element, ascending.
    n_groups
        Number of groups.
    longest
        Most elements that a list may have.
    """
    lengths = np.bincount(codes, minlength=n_groups)
    starts = np.cumsum(lengths) - lengths
    chosen = np.arange(len(codes)) - starts[codes] < longest
    offsets = np.concatenate([[0], np.cumsum(np.minimum(lengths, longest))])
    return chosen, offsets.astype(np.int32)


def bytes_of(binary: pa.Array) -> tuple[U8, I64]:
    """All bytes, and where each entry starts and the last one ends; a null has no bytes."""
    array = binary.fill_null(b"").cast(pa.large_binary())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets or bytes(8), np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data or b"", np.uint8), ends


def binaries(data: U8, ends: I64, mask: Bools | None = None) -> pa.Array:
    """Binary entries that lie one after the other; null where the mask says so."""
    if ends[-1] > _MOST_BYTES:
        rule = f"the states of one column must fit in {_MOST_BYTES} bytes"
        raise InputError(f"{rule}, got {ends[-1]}; use more workers, or a smaller sketch")
    validity = None if mask is None else pa.array(~mask).buffers()[1]
    buffers = [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)
