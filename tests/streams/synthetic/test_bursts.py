from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.streams import Bursts, Zipf


@given(st.integers(1, 4000), st.integers(1, 900), st.floats(0, 1), st.integers(0, 2**32))
def test_a_key_of_a_burst_is_in_it_alone_and_the_others_are_those_of_zipf(keys, n, length, share, seed):
    burst = 51 + np.arange(n) // length
    sample = keys(Bursts(n, 50, 1.2, share, length), seed=seed, size=999)
    new = sample > 50
    np.testing.assert_array_equal(sample[new], burst[new])
    np.testing.assert_array_equal(sample[~new], keys(Zipf(n, 50, 1.2), seed=seed)[~new])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
def test_a_burst_has_its_share(share, keys):
    sample = keys(Bursts(40_000, 100, 1.2, share, length=10_000), seed=2)
    for burst in range(4):
        found = np.count_nonzero(sample == 101 + burst)
        assert abs(found - 10_000 * share) <= 5 * np.sqrt(10_000 * share * (1 - share))


def test_by_default_a_burst_has_three_tenths_of_three_thousand_tuples(keys):
    sample = keys(Bursts(9000, 100, 1.2), seed=0)
    assert set(sample[sample > 100]) == {101, 102, 103}
    assert 800 < np.count_nonzero(sample == 102) < 1000


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), True])
def test_share_is_a_share(share):
    with pytest.raises(ConfigError, match=r"^share must be"):
        Bursts(10, 10, 1.0, share=share)


def test_a_burst_has_at_least_one_tuple():
    with pytest.raises(ConfigError, match=r"^length must be at least 1, got 0"):
        Bursts(10, 10, 1.0, length=0)


def test_checks_what_zipf_checks():
    with pytest.raises(ConfigError, match=r"^n_keys must be at least 1"):
        Bursts(10, 0, 1.0)
