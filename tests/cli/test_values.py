"""Numbers, lists and ranges as they are written on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.cli import values
from anabranch.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("16", 16),
        ("1.4", 1.4),
        ("2_000_000", 2e6),
        ("1e6", 1e6),
        ("10k", 1e4),
        ("2M", 2e6),
        ("1.5G", 1.5e9),
        (" 7 ", 7),
    ],
)
def test_a_number_may_have_a_suffix(text, number):
    assert values.number(text, "--rate") == number


def test_a_number_with_a_suffix_may_be_whole():
    assert values.whole("1.5k", "--tuples") == 1500
    assert values.wholes("1k:3k:1k,7", "--workers") == [1000, 2000, 3000, 7]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("16", [16]),
        ("16,32,64", [16, 32, 64]),
        ("1.0:1.2:0.1", [1.0, 1.1, 1.2]),
        ("0:1:0.3", [0.0, 0.3, 0.6, 0.9]),
        ("5:5:1", [5]),
        ("0.5,1:2:0.5", [0.5, 1.0, 1.5, 2.0]),
    ],
)
def test_lists_and_ranges(text, numbers):
    assert values.numbers(text, "--z") == numbers


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 30))
def test_a_range_has_both_ends_in_decimal_steps(first, steps, step):
    text = f"{first / 10}:{(first + steps * step) / 10}:{step / 10}"
    assert values.numbers(text, "--z") == [(first + i * step) / 10 for i in range(steps + 1)]


@pytest.mark.parametrize("text", ["", "x", "k", "1..2", "nan", "inf", "-inf", "1,", "1:2:x", "1e999999M", "sNaN"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ConfigError, match=r"^--z must be a number such as 16, 1.4, 10k or 2M, got "):
        values.numbers(text, "--z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1:2", "--z takes a range as first:last:step, got '1:2'"),
        ("1:2:3:4", "--z takes a range as first:last:step, got '1:2:3:4'"),
        ("2:1:0.1", "--z takes a rising range first:last:step with a step above 0, got '2:1:0.1'"),
        ("1:2:0", "--z takes a rising range first:last:step with a step above 0, got '1:2:0'"),
        ("1:2:-1", "--z takes a rising range first:last:step with a step above 0, got '1:2:-1'"),
        ("1:1e9:1", "--z takes at most 10000 values, got '1:1e9:1'; raise the step"),
        ("1e5000", "--z must be at most 1e+19, got '1e5000'"),
    ],
)
def test_a_bad_range_says_what_is_wrong(text, message):
    with pytest.raises(ConfigError) as caught:
        values.numbers(text, "--z")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: values.numbers("1,2,", "--z"), "--z must be a number such as 16, 1.4, 10k or 2M, got '1,2,'"),
        (lambda: values.number("-1", "--rate"), "--rate must be 0 or more, got '-1'"),
        (lambda: values.number("0", "--rate", zero=False), "--rate must be above 0, got '0'"),
        (lambda: values.whole("0k", "--window", at_least=1), "--window must be at least 1, got '0k'"),
        (lambda: values.wholes("4,0", "--workers", at_least=1), "--workers must be at least 1, got '4,0'"),
        (lambda: values.wholes("4,2k", "--workers", at_most=1000), "--workers must be at most 1000, got '4,2k'"),
        (lambda: values.speeds("2;1", "--speeds"), "--speeds takes relative speeds such as 2,1, got '2;1'"),
        (
            lambda: values.speeds("2,-1", "--speeds"),
            "--speeds must be above 0, got '2,-1'; 1 is a worker of normal speed",
        ),
    ],
)
def test_bounds_are_told_with_the_option_and_the_value_as_typed(read, message):
    with pytest.raises(ConfigError) as caught:
        read()
    assert str(caught.value) == message


def test_a_fraction_is_no_whole_number():
    with pytest.raises(ConfigError, match=r"^--tuples must be a whole number, got '1.5'"):
        values.whole("1.5", "--tuples")
    with pytest.raises(ConfigError, match=r"^--workers must be whole numbers, got '1:2:0.5'"):
        values.wholes("1:2:0.5", "--workers")
