"""The metrics against values worked out by hand, and the latency histogram against the samples it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import metrics

EDGES = metrics.latency_edges()
# A bin is at most a 32nd of its lower edge wide.
BIN = 1 / 32


def bin_of(seconds: float) -> int:
    """Position of the bin, found by comparing and not through the bits of the number."""
    return max(0, sum(1 for edge in EDGES[:-1] if edge <= seconds) - 1)


def binned(samples: np.ndarray) -> np.ndarray:
    histogram, _ = np.histogram(samples, bins=EDGES)
    assert histogram.sum() == len(samples)
    return histogram.astype(np.int64)


def test_imbalance_is_the_largest_load_minus_the_mean():
    assert metrics.imbalance(np.array([1.0, 2.0, 9.0])) == 5.0
    assert metrics.imbalance(np.array([7.0])) == 0.0


def test_load_stddev_is_in_percent_of_the_total():
    # Shares of 25 and 75 percent: each is 25 away from the mean.
    assert metrics.load_stddev(np.array([10.0, 30.0])) == pytest.approx(25.0)
    # Population, not sample: shares 0, 0, 100 have a variance of (2 · 33.3² + 66.7²) / 3.
    assert metrics.load_stddev(np.array([0.0, 0.0, 5.0])) == pytest.approx(100 * math.sqrt(2) / 3)
    assert metrics.load_stddev(np.array([4.0, 4.0, 4.0, 4.0])) == 0.0
    assert metrics.load_stddev(np.zeros(3)) == 0.0


def test_makespan_weighs_windows_by_their_work():
    # Not the mean of the two ratios 3 and 1.
    assert metrics.makespan(np.array([3.0, 9.0]), np.array([1.0, 9.0])) == pytest.approx(1.2)
    assert metrics.makespan(np.array([2.5]), np.array([2.5])) == 1.0
    assert math.isnan(metrics.makespan(np.zeros(0), np.zeros(0)))


def test_makespan_of_like_workers_takes_their_mean_for_the_ideal():
    assert metrics.makespan_of(np.array([1, 2, 6])) == pytest.approx(2.0)
    # One row per window.
    assert metrics.makespan_of(np.array([[3, 1], [2, 4]])) == pytest.approx(7 / 5)
    assert math.isnan(metrics.makespan_of(np.zeros(3)))


def test_latency_bins_are_32_an_octave_from_2_to_the_minus_40():
    assert len(EDGES) == metrics.N_LATENCY_BINS + 1
    assert EDGES[0] == 2.0**-40
    assert EDGES[-1] == 2.0**40
    assert EDGES[32 * 40] == 1.0
    assert EDGES[32 * 40 + 8] == 1.25
    assert (np.diff(EDGES) / EDGES[:-1]).max() <= BIN


@given(st.floats(2.0**-40, 2.0**39))
def test_the_bits_of_a_float_give_its_bin(seconds):
    bits = int(np.float64(seconds).view(np.int64))
    place = (bits >> metrics.LATENCY_SHIFT) - metrics.LATENCY_OFFSET
    assert EDGES[place] <= seconds < EDGES[place + 1]


@given(
    samples=st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=200).map(np.array),
    share=st.sampled_from([0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 1.0]),
)
def test_a_quantile_lies_in_the_bin_of_the_sample_at_its_rank(samples, share):
    found = metrics.latency_quantile(binned(samples), share)
    at_rank = np.sort(samples)[max(0, math.ceil(share * len(samples)) - 1)]
    assert EDGES[bin_of(at_rank)] <= found <= EDGES[bin_of(at_rank) + 1]


def test_quantiles_of_many_samples_are_those_of_numpy():
    samples = np.random.default_rng(3).lognormal(-6, 1.5, 200_000)
    histogram = binned(samples)
    for share in (0.05, 0.5, 0.95, 0.99):
        assert metrics.latency_quantile(histogram, share) == pytest.approx(np.quantile(samples, share), rel=BIN / 4)


def test_a_quantile_is_interpolated_within_its_bin():
    histogram = np.zeros(metrics.N_LATENCY_BINS, dtype=np.int64)
    histogram[1280] = 4
    width = EDGES[1281] - EDGES[1280]
    assert metrics.latency_quantile(histogram, 0.25) == pytest.approx(EDGES[1280] + width / 4)
    assert metrics.latency_quantile(histogram, 0.0) == EDGES[1280]
    assert metrics.latency_quantile(histogram, 1.0) == EDGES[1281]


def test_no_samples_have_no_quantile():
    assert math.isnan(metrics.latency_quantile(np.zeros(metrics.N_LATENCY_BINS, dtype=np.int64), 0.5))


@given(
    samples=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200).map(np.array),
    delay_s=st.floats(1e-7, 1e3),
)
def test_delayed_moves_every_sample_by_the_delay_up_to_a_bin(samples, delay_s):
    moved = metrics.delayed(binned(samples), delay_s)
    assert moved.sum() == len(samples)
    # Order is kept, so the samples of the two histograms correspond one to one.
    exact = np.sort(samples) + delay_s
    places = np.repeat(np.arange(len(moved)), moved)
    assert (EDGES[places] <= exact * (1 + BIN)).all()
    assert (EDGES[places + 1] >= exact * (1 - BIN)).all()


def test_delayed_is_right_on_average():
    histogram = binned(np.linspace(1, 2, 3200, endpoint=False))
    middles = (EDGES[:-1] + EDGES[1:]) / 2
    errors = [
        metrics.delayed(histogram, delay_s) @ middles / 3200 - (1.5 + delay_s) for delay_s in np.linspace(0.5, 2, 301)
    ]
    # Half a bin is 1/64: moving the edges of bins instead of their middles would be off by that.
    assert abs(np.mean(errors)) < 1 / 300


def test_delayed_without_a_delay_changes_nothing():
    histogram = binned(np.array([0.001, 0.5, 0.5, 20.0]))
    assert (metrics.delayed(histogram, 0.0) == histogram).all()


def test_delayed_leaves_its_input_alone_and_ends_in_the_last_bin():
    histogram = binned(np.array([0.001, 0.5]))
    before = histogram.copy()
    moved = metrics.delayed(histogram, 2.0**41)
    assert (histogram == before).all()
    assert moved[-1] == 2
