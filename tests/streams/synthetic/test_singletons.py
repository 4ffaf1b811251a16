from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.streams import Singletons, Zipf


@given(st.integers(1, 4000), st.floats(0, 1), st.integers(0, 2**32))
def test_a_singleton_occurs_once_and_the_others_are_those_of_zipf(keys, n, share, seed):
    sample = keys(Singletons(n, 50, 1.2, share), seed=seed, size=999)
    new = sample > 50
    assert len(set(sample[new])) == np.count_nonzero(new)
    np.testing.assert_array_equal(sample[~new], keys(Zipf(n, 50, 1.2), seed=seed)[~new])


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_singletons_have_their_share(share, keys):
    n = 40_000
    found = np.count_nonzero(keys(Singletons(n, 100, 1.2, share), seed=2) > 100)
    assert abs(found - n * share) <= 5 * np.sqrt(n * share * (1 - share))


def test_by_default_half_of_the_tuples_are_singletons(keys):
    assert 4800 < np.count_nonzero(keys(Singletons(10_000, 100, 1.2)) > 100) < 5200


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_share_is_a_share(share):
    with pytest.raises(ConfigError, match=r"^share must be"):
        Singletons(10, 10, 1.0, share=share)


def test_checks_what_zipf_checks():
    with pytest.raises(ConfigError, match=r"^z must be at least 0"):
        Singletons(10, 10, -1.0)
