"""The counting Bloom filter against a multiset: each guarantee of its docstring."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.hashing import hash_keys
from anabranch.sketches import CountingBloomFilter

UNIVERSE = hash_keys(np.arange(200_000))

# Whether a key is appended or deleted, and its rank. Each is appended the more often, or the filter would stay empty.
operations = skewed(np.array([(way, rank) for rank in range(31) for way in (1, 0)]), most=300)


@settings(max_examples=60)
@given(operations=operations, capacity=st.sampled_from([1, 3, 20]), rate=st.sampled_from([1e-4, 0.1, 0.9]))
def test_what_was_appended_and_not_deleted_is_contained(operations, capacity, rate):
    """Only keys that are in it are deleted, as DStream does; the filter may be far too full."""
    hot, inside = CountingBloomFilter(capacity, rate), Counter()
    for appends, rank in operations:
        if appends:
            hot.append(UNIVERSE[rank : rank + 1])
            inside[rank] += 1
        elif inside[rank]:
            hot.delete(UNIVERSE[rank : rank + 1])
            inside[rank] -= 1
        present = [rank for rank, times in inside.items() if times]
        assert hot.contains(UNIVERSE[present]).all()
    assert int(hot.cells.sum()) == hot.n_hashes * inside.total()
    for rank, times in inside.items():
        hot.delete(UNIVERSE[rank : rank + 1].repeat(times))
    assert not hot.cells.any()


@settings(max_examples=60)
@given(operations=operations, capacity=st.sampled_from([1, 3, 20]), rate=st.sampled_from([1e-4, 0.2]))
def test_no_counter_is_ever_negative(operations, capacity, rate):
    """Deleting what is not in it changes nothing, and what only seems to be in it takes away no more than is there."""
    hot = CountingBloomFilter(capacity, rate)
    for appends, rank in operations:
        key = UNIVERSE[rank : rank + 1]
        before = hot.cells.astype(np.int64)
        contained = bool(hot.contains(key)[0])
        (hot.append if appends else hot.delete)(key)
        change = hot.cells.astype(np.int64) - before
        if appends:
            assert change.min() >= 0
            assert change.sum() == hot.n_hashes
        elif contained:
            assert change.max() <= 0
            assert -hot.n_hashes <= change.sum() < 0
        else:
            assert not change.any()


# Capacities where the cells just suffice for a power of two, and small ones, where the keys' cells are few.
@pytest.mark.parametrize(
    ("capacity", "rate"),
    [
        (1, 1e-4),
        (2, 0.01),
        (5, 0.2),
        (20, 1e-4),
        (40, 1e-3),
        (212, 1e-4),
        (426, 1e-4),
        (160, 0.35),
        (700, 0.01),
        (90, 0.5),
    ],
)
def test_few_others_seem_to_be_in_it_at_capacity(capacity, rate):
    strangers = UNIVERSE[100_000:]
    n_filters = 8
    found = 0
    for i in range(n_filters):
        hot = CountingBloomFilter(capacity, rate)
        hot.append(UNIVERSE[i * capacity : (i + 1) * capacity])
        found += int(hot.contains(strangers).sum())
    n = n_filters * len(strangers)
    # False positives of one filter come together: their number varies by a few percent more than a binomial one.
    margin = 5 * math.sqrt(rate * (1 - rate) / n) + 0.05 * rate
    assert found / n <= rate + margin


def test_few_of_the_former_keys_seem_to_be_in_it():
    hot = CountingBloomFilter(50, 1e-3)
    for start in range(0, 50_000, 50):
        hot.append(UNIVERSE[start : start + 50])
        hot.delete(UNIVERSE[start : start + 50])
    assert not hot.cells.any()


def test_a_full_counter_stays_full():
    hot = CountingBloomFilter(10, 0.1)
    key, other = UNIVERSE[:1], UNIVERSE[1:2]
    hot.append(other)
    hot.append(key.repeat(70_000))
    assert hot.cells.max() == 65_535
    full = hot.cells == 65_535
    hot.delete(key.repeat(70_000))
    assert (hot.cells[full] == 65_535).all()
    assert hot.contains(key).all()
    assert hot.contains(other).all()


def test_any_number_is_a_key():
    edges = np.array([0, 1, 2**32, 2**63, 2**64 - 1], dtype=np.uint64)
    hot = CountingBloomFilter(5, 1e-4)
    for i in range(len(edges)):
        hot.append(edges[i : i + 1])
        assert hot.contains(edges)[: i + 1].all()
    hot.delete(edges)
    assert not hot.cells.any()


def test_a_smaller_rate_costs_cells():
    sizes = [CountingBloomFilter(200, rate).nbytes for rate in (0.5, 0.01, 1e-4, 1e-8)]
    assert sizes == sorted(set(sizes))
