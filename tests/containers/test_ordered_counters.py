"""Counters that stay in order, with every pointer of the structure checked after each step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from anabranch.containers import ordered_counters
from anabranch.containers.ordered_counters import OrderedCounters


@njit
def increment(count, order, items, blocks, free, item, amount):
    ordered_counters.increment(count, order, items, blocks, free, item, amount)


def check(counters: OrderedCounters) -> None:
    n = len(counters.count)
    ordered = counters.count[counters.order]
    assert (np.diff(ordered) >= 0).all()
    assert sorted(counters.order.tolist()) == list(range(n))
    assert (counters.items[counters.order, 0] == np.arange(n)).all()
    # A block is a run of equal counts that cannot be made longer at either end.
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    ends = np.append(starts[1:], n) - 1
    block_of = counters.items[counters.order, 1]
    used = block_of[starts].tolist()
    assert len(set(used)) == len(used)
    for block, start, end in zip(used, starts.tolist(), ends.tolist(), strict=True):
        assert (block_of[start : end + 1] == block).all()
        assert counters.blocks[block].tolist() == [start, end]
    height = int(counters.free[n])
    assert sorted([*counters.free[:height].tolist(), *used]) == list(range(n))


@settings(max_examples=60)
@given(
    n=st.integers(1, 12),
    rotation=st.integers(0, 11),
    steps=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 6)), max_size=60),
)
def test_random_increments_keep_every_invariant(n, rotation, steps):
    counters = ordered_counters.zeros(n, rotation % n)
    check(counters)
    expected = np.zeros(n, dtype=np.int64)
    for item, amount in steps:
        increment(*counters, item % n, amount)
        expected[item % n] += amount
        assert counters.count.tolist() == expected.tolist()
        check(counters)


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    steps=st.lists(st.integers(0, 11), max_size=20),
    rotation=st.integers(0, 11),
)
def test_assigned_counts_keep_every_invariant(counts, steps, rotation):
    n = len(counts)
    counters = ordered_counters.zeros(n)
    ordered_counters.assign(counters, np.array(counts, dtype=np.int64), rotation % n)
    check(counters)
    assert counters.count.tolist() == counts
    ties_in_turn = sorted(range(n), key=lambda item: (counts[item], (item - rotation) % n))
    assert counters.order.tolist() == ties_in_turn
    holding = ordered_counters.holding(np.array(counts, dtype=np.int64), rotation % n)
    assert [array.tolist() for array in holding] == [array.tolist() for array in counters]
    in_order = ordered_counters.holding(np.array(counts, dtype=np.int64))
    assert in_order.order.tolist() == sorted(range(n), key=lambda item: (counts[item], item))
    for item in steps:
        increment(*counters, item % n, 1)
        check(counters)


def test_large_amounts_pass_over_many_blocks():
    n = 200
    rng = np.random.default_rng(0)
    counters = ordered_counters.zeros(n)
    for item, amount in zip(rng.integers(0, n, 3000).tolist(), rng.integers(1, 1000, 3000).tolist(), strict=True):
        increment(*counters, item, amount)
    check(counters)


@pytest.mark.parametrize("rotation", [0, 1, 4])
def test_taking_the_smallest_each_time_is_fair_from_the_first_tie_on(rotation):
    counters = ordered_counters.zeros(5, rotation)
    assert counters.order[0] == rotation
    for turn in range(1, 41):
        increment(*counters, int(counters.order[0]), 1)
        assert counters.count.max() - counters.count.min() == (0 if turn % 5 == 0 else 1)
