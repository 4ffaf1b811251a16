from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.streams import Drifting, Zipf
from anabranch.streams.synthetic.drifting import permuted


def test_each_period_relabels_the_ranks_one_to_one(keys):
    n, n_keys, every = 30_000, 1000, 7000
    ranks = keys(Zipf(n, n_keys, 1.0), seed=6)
    drifting = keys(Drifting(n, n_keys, 1.0, every), seed=6, size=999)
    assert 1 <= drifting.min() <= drifting.max() <= n_keys
    for first in range(0, n, every):
        pairs = set(zip(ranks[first : first + every].tolist(), drifting[first : first + every].tolist(), strict=True))
        assert len(pairs) == len({rank for rank, _ in pairs}) == len({key for _, key in pairs})


def test_top_key_changes_from_period_to_period(keys):
    every = 2000
    sample = keys(Drifting(20 * every, 100_000, 1.4, every), seed=0)
    tops = [np.bincount(sample[first : first + every]).argmax() for first in range(0, sample.size, every)]
    assert len(set(tops)) >= 19


def test_another_seed_has_other_hot_keys(keys):
    stream = Drifting(2000, 100_000, 2.0, 2000)
    assert np.bincount(keys(stream, seed=1)).argmax() != np.bincount(keys(stream, seed=2)).argmax()


def test_top_keys_are_spread_over_the_key_space(keys):
    every = 50
    sample = keys(Drifting(2000 * every, 1000, 4.0, every), seed=3).reshape(-1, every)
    tops = np.array([np.bincount(row).argmax() for row in sample])
    quarters = np.bincount((tops - 1) // 250, minlength=4)
    assert np.all(np.abs(quarters - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75))


@given(st.integers(1, 300), st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8))
def test_permuted_is_a_bijection(n, constants):
    n_bits = (n - 1).bit_length()
    words = np.array(constants, dtype=np.uint64)
    assert sorted(permuted(value, n, n_bits, words) for value in range(n)) == list(range(n))


def test_a_period_has_at_least_one_tuple():
    with pytest.raises(ConfigError, match="every must be at least 1, got 0"):
        Drifting(10, 10, 1.0, 0)
