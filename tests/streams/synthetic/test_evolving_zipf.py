from __future__ import annotations

import numpy as np
import pytest

from anabranch.errors import ConfigError
from anabranch.streams import EvolvingZipf, Zipf


@pytest.mark.parametrize("flip", [0.0, 0.8, 0.37, 1.0])
def test_ranks_are_those_of_zipf_and_reversed_after_the_flip(flip, keys):
    n, n_keys = 20_000, 500
    plain = keys(Zipf(n, n_keys, 1.2), seed=4)
    evolving = keys(EvolvingZipf(n, n_keys, 1.2, flip=flip), seed=4, size=1234)
    first = round(flip * n)
    np.testing.assert_array_equal(evolving[:first], plain[:first])
    np.testing.assert_array_equal(evolving[first:], n_keys + 1 - plain[first:])


def test_by_default_the_last_fifth_is_flipped(keys):
    sample = keys(EvolvingZipf(10_000, 100, 2.0))
    assert np.bincount(sample[:8000]).argmax() == 1
    assert np.bincount(sample[8000:]).argmax() == 100


@pytest.mark.parametrize("flip", [-0.1, 1.1, float("nan")])
def test_flip_is_a_share(flip):
    with pytest.raises(ConfigError, match="flip must be"):
        EvolvingZipf(10, 10, 1.0, flip=flip)


def test_checks_what_zipf_checks():
    with pytest.raises(ConfigError, match="z must be at least 0"):
        EvolvingZipf(10, 10, -1.0)
