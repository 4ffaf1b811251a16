"""Pair counts keep the promises of SpaceSaving, and know the two keys of every counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.chain import PairCounts, Pairs
from anabranch.chain.planning.pairs import hash_pairs
from anabranch.errors import ConfigError, InputError
from anabranch.hashing import hash_keys

EVERY = [(a, b) for a in range(7) for b in range(7)]
tuples = skewed(np.random.default_rng(0).permutation(EVERY), most=400).map(
    lambda drawn: list(map(tuple, drawn.tolist()))
)
capacities = st.integers(1, 50)


def columns(listed: list[tuple[int, int]]) -> np.ndarray:
    return np.array(listed, dtype=np.uint64).reshape(-1, 2).T


def check(counts: PairCounts, listed: list[tuple[int, int]]) -> None:
    true = Counter(listed)
    slack = len(listed) / counts.capacity
    assert counts.total == len(listed)
    for pair, estimate in zip(EVERY, counts.sketch.estimate(hash_pairs(*columns(EVERY))), strict=True):
        assert true[pair] <= estimate <= true[pair] + slack
    found = counts.pairs()
    listed_pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert len(set(listed_pairs)) == len(listed_pairs) <= counts.capacity
    assert found.total == len(listed)
    for pair, count in zip(listed_pairs, found.counts, strict=True):
        assert 1 <= count <= true[pair]
    assert {pair for pair, count in true.items() if count > slack} <= set(listed_pairs)


@given(listed=tuples, capacity=capacities, cut=st.integers(0, 400))
def test_estimates_are_bounded_and_frequent_pairs_are_there(listed, capacity, cut):
    counts = PairCounts(capacity)
    counts.update(*columns(listed[:cut]))
    counts.update(*columns(listed[cut:]))
    check(counts, listed)


@given(listed=tuples)
def test_with_enough_counters_it_is_exact(listed):
    counts = PairCounts(49)
    counts.update(*columns(listed))
    found, exact = counts.pairs(), Pairs.exact(*columns(listed))
    for name in ("first", "second", "counts"):
        assert np.array_equal(getattr(found, name), getattr(exact, name))


def test_memory_does_not_grow_with_the_stream():
    counts = PairCounts(100)
    before = len(counts.first)
    counts.update(hash_keys(np.arange(20_000)), hash_keys(np.arange(20_000) % 77))
    assert len(counts.first) == len(counts.second) == before
    assert len(counts.pairs()) <= 100


def test_keys_that_are_no_hashes_are_refused():
    with pytest.raises(InputError, match=r"must be hashes of keys, got <U4; pass hash_keys"):
        PairCounts(10).update(["Asia"], ["#tag"])


def test_it_needs_a_counter():
    with pytest.raises(ConfigError, match="capacity must be at least 1, got 0"):
        PairCounts(0)
