from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import errors
from anabranch.printable import printable

UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@given(st.text(st.characters()))
def test_nothing_is_left_that_commands_a_terminal_or_ends_a_line(text):
    shown = printable(text)
    assert not UNFIT.search(shown)
    assert printable(shown) == shown
    assert len(shown.splitlines()) <= 1
    shown.encode()


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))
def test_words_stay_as_they_are(text):
    assert printable(text) == text


@pytest.mark.parametrize("character", ["\x00", "\n", "\x1b", "\x7f", "\x9b", "\u2028", "\u202e", "\u2069", "\ud800"])
def test_an_escape_is_that_of_python(character):
    assert printable(f"a{character}b") == f"a{character!r}b".replace("'", "")


def test_joined_letters_and_marks_of_direction_stay():
    for text in ("می\u200cخواهم", "👩\u200d🔬", "\u200fשלום"):
        assert printable(text) == text


def test_text_in_lines_keeps_its_lines():
    assert printable("a\tb\nc\r\n", lines=True) == "a\\tb\nc\\r\n"


def test_a_value_of_any_kind_is_shown_by_its_text():
    assert [printable(value) for value in (None, 3, 1.5, b"\x1b")] == ["None", "3", "1.5", "b'\\x1b'"]


@pytest.mark.parametrize("kind", [errors.ConfigError, errors.InputError, errors.QueryError, errors.MissingExtraError])
def test_an_error_is_one_line_whatever_it_quotes(kind):
    error = kind("no key \x1b]0;owned\x07\nError: forged; remove it")
    assert str(error) == r"no key \x1b]0;owned\x07\nError: forged; remove it"
    assert error.args == ("no key \x1b]0;owned\x07\nError: forged; remove it",)
