"""The hash table of sketches: every slot is found where the table says, whatever is deleted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from anabranch.containers import slot_table


@njit
def delete(gap, keys, table, where):
    slot_table.delete(gap, keys, table, where)


@njit
def places_of(asked, keys, table, out):
    for i in range(len(asked)):
        out[i] = slot_table.place_of(asked[i], keys, table)


def places(asked: np.ndarray, keys: np.ndarray, table: np.ndarray) -> np.ndarray:
    out = np.empty(len(asked), dtype=np.int64)
    places_of(asked, keys, table, out)
    return out


def crowd(n: int, table: np.ndarray, last: int) -> np.ndarray:
    """Keys that begin at the table's last places and at its first ones, so that they meet and wrap around."""
    anyone = np.arange(20_000, dtype=np.uint64)
    homes = places(anyone, np.zeros(1, np.uint64), np.zeros_like(table))
    return anyone[(homes >= len(table) - last) | (homes < last)][:n]


@pytest.mark.parametrize(("capacity", "size"), [(1, 4), (2, 8), (3, 16), (16, 64), (17, 128)])
def test_a_table_is_a_power_of_two_and_at_most_a_quarter_full(capacity, size):
    assert slot_table.empty(capacity).tolist() == [0] * size


@settings(max_examples=60)
@given(n=st.integers(1, 40), last=st.integers(1, 8), seed=st.integers(0, 1_000))
def test_slots_are_found_whatever_is_deleted(n, last, seed):
    table, where = slot_table.empty(n), np.zeros(n, np.int32)
    keys = np.random.default_rng(seed).permutation(crowd(n, table, last))
    n, strangers = len(keys), np.arange(10**6, 10**6 + 50, dtype=np.uint64)
    # What the table held before is gone.
    table[:] = 1
    slot_table.fill(keys, table, where, n)
    left = list(range(n))
    for slot in np.random.default_rng(seed + 1).permutation(n).tolist():
        assert sorted(table[table > 0].tolist()) == [one + 1 for one in left]
        assert places(keys[left], keys, table).tolist() == where[left].tolist()
        assert table[where[left]].tolist() == [one + 1 for one in left]
        assert not table[places(strangers, keys, table)].any()
        delete(where[slot], keys, table, where)
        left.remove(slot)
    assert not table.any()


def test_only_the_first_slots_are_filled_in():
    keys, table, where = np.arange(5, dtype=np.uint64), slot_table.empty(5), np.zeros(5, np.int32)
    slot_table.fill(keys, table, where, 3)
    assert sorted(table[table > 0].tolist()) == [1, 2, 3]
