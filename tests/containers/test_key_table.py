"""The routing table: what goes in comes out, however it grows and whoever leaves."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from anabranch.containers.key_table import EMPTY, UNPLACED, KeyTable, place_of


@njit
def look_up(keys, table_keys, table_workers, out):
    for i in range(len(keys)):
        out[i] = table_workers[place_of(keys[i], table_keys, table_workers)]


def workers_of(table: KeyTable, keys: np.ndarray) -> list[int]:
    out = np.empty(len(keys), dtype=np.int32)
    look_up(keys, table.keys, table.workers, out)
    return out.tolist()


@settings(max_examples=25)
@given(
    keys=st.sets(st.integers(0, 2**64 - 1) | st.integers(0, 20), max_size=60),
    strangers=st.sets(st.integers(0, 2**64 - 1), max_size=10),
    doublings=st.integers(0, 2),
)
def test_a_table_gives_back_what_was_put_in(keys, strangers, doublings):
    table = KeyTable()
    ordered = np.array(sorted(keys), dtype=np.uint64)
    homes = np.arange(len(ordered), dtype=np.int32)
    table.insert(ordered, homes)
    for _ in range(doublings):
        table.grow()
    assert len(table.keys) == len(table.workers) == 1024 << doublings
    assert workers_of(table, ordered) == homes.tolist()
    assert workers_of(table, np.array(sorted(strangers - keys), dtype=np.uint64)) == [EMPTY] * len(strangers - keys)
    assert int(table.size[0]) == len(keys)


def test_a_table_grows_before_it_is_more_than_half_full():
    table = KeyTable()
    keys = np.arange(5_000, dtype=np.uint64)
    for start in range(0, 5_000, 500):
        table.insert(keys[start : start + 500], np.full(500, start // 500, dtype=np.int32))
        assert not table.is_full
    assert workers_of(table, keys) == np.repeat(np.arange(10), 500).tolist()


def test_workers_are_renumbered_and_keys_of_those_who_left_are_unplaced():
    table = KeyTable()
    keys = np.arange(5, dtype=np.uint64)
    table.insert(keys, np.array([0, 1, 2, 3, 1], dtype=np.int32))
    # Of the workers at 0 … 3 those at 0, 2 and 3 stay, and one comes in between.
    table.renumber(np.array([0, -1, 2, 3]))
    assert workers_of(table, keys) == [0, UNPLACED, 2, 3, UNPLACED]
    table.renumber(np.array([3, 0]))
    assert workers_of(table, keys) == [1, UNPLACED, UNPLACED, 0, UNPLACED]
    assert UNPLACED != EMPTY


def test_a_key_is_at_home_where_the_table_has_no_worker_for_it():
    table, out = KeyTable(), np.empty(4, dtype=np.int32)
    table.insert(np.arange(3, dtype=np.uint64), np.array([0, 5, UNPLACED], dtype=np.int32))
    table.look_up(np.arange(4, dtype=np.uint64), np.array([9, 9, 7, 8], dtype=np.int32), out)
    assert out.tolist() == [0, 5, 7, 8]


def test_a_table_is_full_when_half_of_it_is():
    table = KeyTable()
    table.insert(np.arange(511, dtype=np.uint64), np.zeros(511, dtype=np.int32))
    assert len(table.keys) == 1024
    table.size[0] += 1
    assert table.is_full


def test_a_table_takes_over_the_arrays_of_another():
    table, other = KeyTable(), KeyTable()
    keys = np.arange(2_000, dtype=np.uint64)
    table.insert(keys, np.arange(2_000, dtype=np.int32))
    other.adopt({name: array.copy() for name, array in table.arrays().items()})
    assert workers_of(other, keys) == list(range(2_000))
    assert int(other.size[0]) == 2_000


def test_renumbering_nobody_and_an_empty_table():
    table = KeyTable()
    table.renumber(np.array([0, 1]))
    assert workers_of(table, np.arange(3, dtype=np.uint64)) == [EMPTY] * 3
    table.insert(np.arange(3, dtype=np.uint64), np.array([0, 1, 2], dtype=np.int32))
    table.renumber(np.array([-1, -1]))
    assert workers_of(table, np.arange(3, dtype=np.uint64)) == [UNPLACED] * 3
