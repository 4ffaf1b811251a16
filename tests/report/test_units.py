from __future__ import annotations

import math

import pytest

from anabranch.report import units


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.000"), (9.9996, "10.00"), (77.914, "77.91"), (12345.6, "12346"), (math.nan, "–"), (math.inf, "∞")],
)
def test_number_has_four_digits(value, text):
    assert units.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.31, "0.31"), (0.012, "0.012"), (0.0012, "1.2e-3"), (3.14e-7, "3.1e-7"), (2.5, "2.5"), (12.0, "12")],
)
def test_fraction_has_two_digits(value, text):
    assert units.fraction(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (2e-9, "2.00 ns"),
        (4.2e-12, "0.00 ns"),
        (850e-6, "850 µs"),
        (999.7e-6, "1.00 ms"),
        (0.0123, "12.3 ms"),
        (0.9999, "1.00 s"),
        (3600.0, "3600 s"),
        (math.nan, "–"),
    ],
)
def test_duration_takes_the_unit_that_fits(seconds, text):
    assert units.duration(seconds) == text


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (2.5e6, "2.50 MB"), (1.5, "1.50 B")]
)
def test_size_is_decimal(n, text):
    assert units.size(n) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (950.0, "950"), (999_999, "1.00 M"), (3e9, "3.00 G")])
def test_rate_has_a_prefix(value, text):
    assert units.rate(value) == text


@pytest.mark.parametrize(("n", "text"), [(5, "5"), (9999, "9999"), (10_000, "10 k"), (123_456, "123 k"), (2e6, "2 M")])
def test_count_drops_trailing_zeros(n, text):
    assert units.count(n) == text


@pytest.mark.parametrize(
    ("value", "beside", "text"),
    [
        (0.0042, "1.043", "0.004"),
        (0.5, "77.91", "0.50"),
        (0.0, "3.1e-7", "0"),
        (2.4e-8, "3.1e-7", "2e-8"),
        (math.nan, "1", "–"),
    ],
)
def test_spread_follows_the_mean(value, beside, text):
    assert units.spread(value, beside) == text
