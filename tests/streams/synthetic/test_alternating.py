from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from anabranch.errors import ConfigError
from anabranch.streams import Alternating, Zipf


def relabelling(ranks, keys) -> dict[int, int]:
    """The key of each rank; fails unless that is one to one."""
    pairs = set(zip(ranks.tolist(), keys.tolist(), strict=True))
    assert len(pairs) == len({rank for rank, _ in pairs}) == len({key for _, key in pairs})
    return dict(pairs)


@pytest.mark.parametrize("n_phases", [2, 3, 5])
def test_a_phase_has_a_ranking_of_its_own_that_comes_back(n_phases, keys):
    n, n_keys, period = 30_000, 1000, 1700
    ranks = keys(Zipf(n, n_keys, 1.0), seed=6)
    sample = keys(Alternating(n, n_keys, 1.0, period, n_phases), seed=6, size=999)
    assert 1 <= sample.min() <= sample.max() <= n_keys
    phase = np.arange(n) // period % n_phases
    # All tuples of a phase, whichever period they are from, are relabelled by one bijection.
    rankings = [relabelling(ranks[phase == p], sample[phase == p]) for p in range(n_phases)]
    for one, other in combinations(rankings, 2):
        shared = one.keys() & other.keys()
        assert sum(one[rank] == other[rank] for rank in shared) < 0.05 * len(shared)


def test_by_default_two_rankings_change_every_hundred_thousand_tuples(keys):
    sample = keys(Alternating(300_000, 10_000, 2.0), seed=1)
    tops = [np.bincount(sample[first : first + 100_000]).argmax() for first in range(0, 300_000, 100_000)]
    assert tops[0] == tops[2] != tops[1]
    assert np.bincount(sample[99_000:100_000]).argmax() == tops[0]


def test_a_period_has_at_least_one_tuple():
    with pytest.raises(ConfigError, match=r"^period must be at least 1, got 0"):
        Alternating(10, 10, 1.0, 0)


def test_there_are_at_least_two_phases():
    with pytest.raises(ConfigError, match=r"^n_phases must be at least 2, got 1"):
        Alternating(10, 10, 1.0, 5, 1)


def test_checks_what_zipf_checks():
    with pytest.raises(ConfigError, match=r"^z must be at least 0"):
        Alternating(10, 10, -1.0)
