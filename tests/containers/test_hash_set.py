"""Hash sets against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from tests.containers.colliding import COLLIDING
from tests.drawn import skewed

from anabranch.containers.hash_set import HashSet, insert

streams = skewed(COLLIDING, most=1_000).map(np.ndarray.tolist)


@njit
def insert_all(table, size, values, new):
    for i in range(len(values)):
        new[i] = insert(table, size, values[i])


def inserted(held: HashSet, values: list[int]) -> list[bool]:
    held.reserve(len(values))
    new = np.zeros(len(values), dtype=np.bool_)
    insert_all(held.table, held.size, np.array(values, dtype=np.uint64), new)
    return new.tolist()


@given(st.lists(streams, max_size=4))
def test_a_set_tells_new_values_from_known_ones(parts):
    held, expected = HashSet(size=4), set()
    for part in parts:
        for value, new in zip(part, inserted(held, part), strict=True):
            # 0 marks an empty place: it is one with 1.
            value = value or 1
            assert new == (value not in expected)
            expected.add(value)
        assert len(held) == len(expected)


def test_a_set_grows_and_keeps_its_values():
    held = HashSet(size=4)
    values = np.random.default_rng(0).integers(1, 2**63, 5000).tolist()
    for start in range(0, 5000, 77):
        inserted(held, values[start : start + 77])
    assert len(held) == len(set(values))
    assert not any(inserted(held, values))
    assert len(held.table) >= 2 * len(held)


def test_zero_is_a_value():
    held = HashSet()
    assert inserted(held, [0, 0]) == [True, False]
    assert len(held) == 1


def test_a_cleared_set_is_empty_and_keeps_its_room():
    held = HashSet(size=4)
    inserted(held, list(range(1, 100)))
    room = len(held.table)
    held.clear()
    assert len(held) == 0
    assert len(held.table) == room
    assert all(inserted(held, list(range(1, 100))))
