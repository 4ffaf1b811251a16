from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from scipy import stats

from anabranch.streams.counter_random import (
    below,
    lane,
    mix64,
    normal_quantile,
    random_bits,
    seed_bits,
    uniform,
)


@njit(cache=True)
def uniforms(seed, draw, n):
    start = lane(seed, draw)
    out = np.empty(n)
    for i in range(n):
        out[i] = uniform(start, i)
    return out


def splitmix64(state: int) -> int:
    """The published generator, in Python integers."""
    mask = 2**64 - 1
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & mask
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & mask
    return state ^ (state >> 31)


@given(st.integers(0, 2**64 - 1))
def test_mix64_is_the_finaliser_of_splitmix64(bits):
    assert int(mix64(np.uint64(bits))) == splitmix64(bits)


def test_random_bits_walk_the_orbit_of_splitmix64():
    # The first outputs of splitmix64 from state 1234567, as published with its reference implementation.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(random_bits(np.uint64(1234567), i)) for i in range(4)] == published


@pytest.mark.parametrize(("seed", "draw"), [(0, 0), (0, 1), (1, 0), (2**64 - 1, 5)])
def test_uniforms_are_uniform(seed, draw):
    sample = uniforms(np.uint64(seed), draw, 100_000)
    assert 0.0 < sample.min() < sample.max() < 1.0
    assert stats.kstest(sample, "uniform").pvalue > 1e-4
    lagged = np.corrcoef(sample[:-1], sample[1:])[0, 1]
    assert abs(lagged) < 5 / np.sqrt(sample.size)


@pytest.mark.parametrize("other", [(0, 1), (0, 2), (1, 0), (2, 0)])
def test_lanes_are_uncorrelated(other):
    first = uniforms(np.uint64(0), 0, 100_000)
    second = uniforms(np.uint64(other[0]), other[1], 100_000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(first.size)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(1, 2**40))
def test_below_stays_below(start, index, n):
    assert 0 <= below(np.uint64(start), index, n) < n


def test_seeds_wrap_to_64_bits():
    assert seed_bits(-1) == np.uint64(2**64 - 1)
    assert seed_bits(np.int32(7)) == np.uint64(7)
    with pytest.raises(TypeError):
        seed_bits(0.5)  # type: ignore[arg-type]


@given(st.floats(2.0**-53, 1.0 - 2.0**-53))
def test_normal_quantile_equals_the_reference(p):
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("p", [2.0**-53, 1e-12, 1e-11, 0.0749, 0.0751, 0.5, 0.9249, 0.9251, 1 - 2.0**-53])
def test_normal_quantile_at_the_seams(p):
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-15)
