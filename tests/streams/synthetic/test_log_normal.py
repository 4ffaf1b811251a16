from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from anabranch.errors import ConfigError
from anabranch.streams import LogNormal


def exact_share(key: int, mu: float, sigma: float) -> float:
    lower = stats.norm.cdf((np.log(key - 0.5) - mu) / sigma) if key > 0 else 0.0
    return float(stats.norm.cdf((np.log(key + 0.5) - mu) / sigma) - lower)


@pytest.mark.parametrize(
    ("make", "top", "published_percent", "n_keys"),
    [(LogNormal.ln1, 0, 14.71, 16_000), (LogNormal.ln2, 3, 7.01, 1100)],
)
def test_top_key_has_the_share_that_the_paper_gives(make, top, published_percent, n_keys, keys):
    n = 2_000_000
    sample = keys(make(n), seed=0)
    share = exact_share(top, make(n).mu, make(n).sigma)
    assert round(100 * share, 2) == published_percent
    # Between neighbouring shares of LN2 (6.82 %, 7.01 %) there are ten standard errors at this length.
    assert np.bincount(sample).argmax() == top
    assert abs((sample == top).mean() - share) < 5 * np.sqrt(share * (1 - share) / n)
    assert np.unique(sample).size < n_keys * 1.1


def test_shares_follow_the_normal_law(keys):
    n, mu, sigma = 300_000, 1.5, 0.7
    sample = np.minimum(keys(LogNormal(n, mu, sigma), seed=9), 30)
    shares = [exact_share(key, mu, sigma) for key in range(30)]
    expected = n * np.array([*shares, 1 - sum(shares)])
    assert stats.chisquare(np.bincount(sample, minlength=31), expected).pvalue > 1e-4


def test_published_lengths_are_the_defaults():
    assert LogNormal.ln1().n_tuples == LogNormal.ln2().n_tuples == 10_000_000


def test_the_largest_keys_fit_into_64_bits(keys):
    assert keys(LogNormal(100_000, 40.0, 0.3)).min() > 0


@pytest.mark.parametrize(
    ("mu", "sigma", "message"),
    [
        (1.0, 0.0, "sigma must be above 0"),
        (1.0, -1.0, "sigma must be at least 0"),
        (float("inf"), 1.0, "mu must be a finite number"),
        (40.0, 2.0, "must be at most 42.9"),
    ],
)
def test_bad_parameters(mu, sigma, message):
    with pytest.raises(ConfigError, match=message):
        LogNormal(10, mu, sigma)
