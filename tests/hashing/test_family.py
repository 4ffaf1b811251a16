"""Candidate workers: distinct, evenly spread, and a whole permutation when followed to the end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.hashing.family import candidate_sequence, reseed
from anabranch.hashing.xxhash64 import SPARK_SEED

HASHES = hash_keys(np.arange(200_000))

any_hashes = st.lists(st.integers(0, 2**64 - 1), max_size=20).map(
    lambda keys: np.array([*keys, 0, 2**32 - 1, 2**32, 2**64 - 1], dtype=np.uint64)
)


@given(keys=any_hashes, n_workers=st.integers(1, 2**20), seed=st.integers(-(2**63), 2**64 - 1))
def test_candidates_are_in_range_and_distinct(keys, n_workers, seed):
    first, second = MultiplyShift().pairs(keys, n_workers, seed)
    assert first.dtype == second.dtype == np.int32
    for candidates in (first, second):
        assert candidates.min() >= 0
        assert candidates.max() < n_workers
    assert n_workers == 1 or (first != second).all()
    assert (MultiplyShift().first(keys, n_workers, seed) == first).all()


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7, 64, 1000])
def test_the_first_candidate_scales_the_high_half_of_the_hash(n_workers):
    first, second = MultiplyShift().pairs(HASHES[:500], n_workers, 0)
    for key, a, b in zip(HASHES[:500].tolist(), first.tolist(), second.tolist(), strict=True):
        assert a == (key >> 32) * n_workers >> 32
        assert b == (a + 1 + ((key & 0xFFFFFFFF) * (n_workers - 1) >> 32)) % n_workers


def test_a_sequence_is_a_permutation_that_begins_with_its_pair():
    for n_workers in range(1, 61):
        out = np.empty(n_workers, dtype=np.int32)
        for first in range(n_workers):
            for second in range(n_workers):
                candidate_sequence(first, second, n_workers, out)
                assert sorted(out.tolist()) == list(range(n_workers)), (first, second, n_workers)
                assert out[0] == first
                assert n_workers == 1 or first == second or out[1] == second


@pytest.mark.parametrize("n_workers", [2, 3, 7, 10, 64])
def test_first_candidates_are_uniform(n_workers):
    observed = np.bincount(MultiplyShift().first(HASHES, n_workers, 0), minlength=n_workers)
    assert stats.chisquare(observed).pvalue > 1e-4


@pytest.mark.parametrize("n_workers", [2, 3, 7, 16])
def test_ordered_pairs_are_uniform(n_workers):
    first, second = MultiplyShift().pairs(HASHES, n_workers, 0)
    observed = np.bincount(first * n_workers + second, minlength=n_workers**2).reshape(n_workers, n_workers)
    off_diagonal = observed[~np.eye(n_workers, dtype=bool)]
    assert off_diagonal.sum() == len(HASHES)
    assert stats.chisquare(off_diagonal).pvalue > 1e-4


def test_seeds_give_independent_routes():
    n_workers = 8
    routes = [MultiplyShift().first(HASHES, n_workers, seed) for seed in (0, 1, 2, -1)]
    for i, one in enumerate(routes):
        for other in routes[:i]:
            joint = np.bincount(one * n_workers + other, minlength=n_workers**2)
            assert stats.chisquare(joint).pvalue > 1e-4


def test_seed_0_uses_the_hash_as_it_is():
    assert reseed(HASHES, 0) is HASHES


@settings(max_examples=30)
@given(keys=any_hashes, seed=st.integers(1, 2**63 - 1))
def test_another_seed_hashes_as_spark_would(keys, seed):
    as_spark = hash_keys(np.full(len(keys), seed, dtype=np.int64), keys.view(np.int64), seed=SPARK_SEED)
    assert reseed(keys, seed).tolist() == as_spark.tolist()
