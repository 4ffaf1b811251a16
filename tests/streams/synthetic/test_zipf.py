from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from anabranch.errors import ConfigError
from anabranch.streams import Zipf


def probabilities(n_keys: int, z: float):
    weights = np.arange(1, n_keys + 1, dtype=np.float64) ** -z
    return weights / weights.sum()


@pytest.mark.parametrize("z", [0.0, 1e-9, 0.3, 0.8, 1.0 - 1e-10, 1.0, 1.0 + 1e-6, 1.4, 2.0, 4.0])
@pytest.mark.parametrize("n_keys", [2, 20])
def test_ranks_follow_the_law(z, n_keys, keys):
    n = 300_000
    counts = np.bincount(keys(Zipf(n, n_keys, z), seed=11), minlength=n_keys + 1)
    assert counts[0] == 0
    assert counts.size == n_keys + 1
    expected = n * probabilities(n_keys, z)
    # Ranks that are expected less than 10 times are pooled: chi-square needs a few in each cell.
    rare = expected < 10
    observed = counts[1:]
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("z", [0.8, 1.0, 1.4, 2.0])
def test_share_of_the_top_key_and_of_the_tail(z, keys):
    n, n_keys = 500_000, 100_000
    sample = keys(Zipf(n, n_keys, z), seed=3)
    p = probabilities(n_keys, z)
    for share, found in ((p[0], sample == 1), (p[1000:].sum(), sample > 1000)):
        assert abs(found.mean() - share) < 5 * np.sqrt(share * (1 - share) / n)


@pytest.mark.parametrize("z", [0.0, 0.5, 1.0])
def test_a_billion_keys_need_no_table(z, keys):
    n, n_keys = 200_000, 1_000_000_000
    sample = keys(Zipf(n, n_keys, z), seed=1)
    assert 1 <= sample.min() <= sample.max() <= n_keys
    # The continuous law is exact enough up here: the share of ranks above a tenth of the keys.
    upper = {0.0: 0.9, 0.5: 1 - np.sqrt(0.1), 1.0: np.log(10) / (np.log(n_keys) + np.euler_gamma)}[z]
    assert abs((sample > n_keys // 10).mean() - upper) < 5 * np.sqrt(upper * (1 - upper) / n)


@pytest.mark.parametrize("z", [0.0, 1.0, 1.4])
def test_one_key_is_always_that_key(z, keys):
    assert set(keys(Zipf(1000, 1, z)).tolist()) == {1}


@pytest.mark.parametrize("z", [50.0, 1e3, 1e6])
def test_extreme_skew_leaves_one_key(z, keys):
    assert set(keys(Zipf(10_000, 10**9, z)).tolist()) == {1}


def test_the_largest_key_space(keys):
    assert keys(Zipf(1000, 2**40, 0.1)).max() <= 2**40


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_keys": 0}, "n_keys must be at least 1, got 0"),
        ({"n_keys": 2**40 + 1}, "n_keys must be at most"),
        ({"n_keys": 10.0}, "n_keys must be a Python int"),
        ({"z": -0.1}, "z must be at least 0, got -0.1"),
        ({"z": float("nan")}, "z must be a finite number"),
        ({"z": float("inf")}, "z must be a finite number"),
        ({"z": "1"}, "z must be a finite number"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ConfigError, match=message):
        Zipf(**{"n_tuples": 10, "n_keys": 10, "z": 1.0, **parameters})
