"""Groupings by name, as the command line spells them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import groupings
from anabranch.errors import ConfigError
from anabranch.groupings import (
    ConsistentGrouping,
    DChoices,
    Grouping,
    PartialKeyGrouping,
    WChoices,
    named,
    names,
    parse,
)
from anabranch.names import parameters_of

EXPORTED = [
    value
    for value in (getattr(groupings, name) for name in groupings.__all__)
    if isinstance(value, type) and issubclass(value, Grouping) and value is not Grouping
]


def test_every_exported_grouping_has_a_name_of_its_own():
    assert {named(name) for name in names()} == set(EXPORTED)
    assert len(names()) == len(set(names())) == len(EXPORTED)


@pytest.mark.parametrize("cls", EXPORTED)
def test_a_name_alone_gives_the_defaults(cls):
    for text in (cls.name, f"  {cls.name} ", f"{cls.name}()"):
        grouping = parse(text)
        assert type(grouping) is cls
        assert grouping.parameters() == cls().parameters()


@pytest.mark.parametrize("cls", EXPORTED)
def test_settable_parameters_can_be_written_out(cls):
    defaults = {name: parameter.default for name, parameter in parameters_of(cls).items()}
    written = ", ".join(f"{name}={value!r}" for name, value in defaults.items())
    assert parse(f"{cls.name}({written})").parameters() == defaults == cls().parameters()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("partial-key(choices=3)", PartialKeyGrouping(choices=3)),
        ("partial-key (choices=3, estimation='global')", PartialKeyGrouping(choices=3, estimation="global")),
        ('partial-key(estimation="global", probe_s=2)', PartialKeyGrouping(estimation="global", probe_s=2)),
        ("partial-key(probe_s=None)", PartialKeyGrouping()),
        ("w-choices(theta=0.01, capacity=50)", WChoices(theta=0.01, capacity=50)),
        ("d-choices(theta=1, epsilon=1e-3)", DChoices(theta=1, epsilon=1e-3)),
        ("consistent(epsilon=2,)", ConsistentGrouping(epsilon=2)),
    ],
)
def test_parameters_in_brackets(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partial-keys", "no grouping is named 'partial-keys'; did you mean partial-key?"),
        ("w-choice(theta=0.1)", "no grouping is named 'w-choice'; did you mean w-choices?"),
        ("zzz", "no grouping is named 'zzz'; there are spillway, key, shuffle"),
        ("", "no grouping is named ''"),
        ("partial-key(choice=3)", "partial-key has no parameter 'choice'; it takes choices, estimation, probe_s"),
        ("partial-key(family=1)", "has no parameter 'family'"),
        ("shuffle(x=1)", "shuffle has no parameter 'x'; it takes no parameters"),
        ("offline-greedy(counts=3)", "has no parameter 'counts'"),
        ("partial-key(choices='3')", "choices must be a whole number, got '3'"),
        ("partial-key(choices=2.5)", "choices must be a whole number, got 2.5"),
        ("partial-key(choices=True)", "choices must be a whole number, got True"),
        ("partial-key(choices=None)", "choices must be a whole number, got None"),
        ("partial-key(choices=[3])", "choices must be a whole number, got '[3]'"),
        ("partial-key(choices=x)", "choices must be a whole number, got 'x'"),
        ("fish(hashing=ring)", "hashing must be text in quotes, got ring"),
        ("fish(theta=nan)", "theta must be a number or None, got 'nan'"),
        ("fish(theta=-inf)", "theta must be a number or None, got '-inf'"),
        ("fish(interval_s=1e999)", "interval_s must be at most 1e+19, got '1e999'"),
        ("partial-key(choices=nan)", "choices must be a whole number, got 'nan'"),
        ("partial-key(choices=x.y)", "choices must be a whole number, got 'x.y'"),
        ("partial-key(estimation=3)", "estimation must be text in quotes, got 3"),
        ("w-choices(capacity=1.5)", "capacity must be a whole number or None, got 1.5"),
        ("w-choices(theta='a')", "got 'a'"),
        ("consistent(epsilon=None)", "got None"),
        ("partial-key(choices=0)", "choices must be at least 1, got 0"),
        ("partial-key(3)", "cannot read 'partial-key(3)'; write it as in 'partial-key(choices=3)'"),
        ("partial-key(choices=3", "cannot read"),
        ("partial-key(choices=)", "cannot read"),
        ("partial-key(choices=3))", "cannot read"),
        ("partial-key(choices=3)(choices=2)", "cannot read"),
        ("partial-key(choices=3, choices=4)", "cannot read"),
        ("partial-key(choices=open('x'))", "cannot read"),
        ("partial-key(choices=3) + 1", "cannot read"),
        ("partial-key(**{'choices': 3})", "cannot read"),
        ("partial-key(choices=2,3)", "choices takes one value here, got 2,3; only sweeps take several"),
    ],
)
def test_errors_name_the_remedy(text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="abcdeiklprty-()=,.'0123[] \n\0", max_size=20))
def test_nonsense_raises_nothing_but_a_config_error(text):
    for attempt in (text, f"partial-key({text}", f"partial-key(choices={text})"):
        with contextlib.suppress(ConfigError):
            assert isinstance(parse(attempt), Grouping)
