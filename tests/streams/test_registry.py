"""Streams by name, as the command line spells them."""

from __future__ import annotations

import contextlib
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import streams
from anabranch.errors import ConfigError
from anabranch.names import parameters_of
from anabranch.streams import Alternating, CorrelatedPairs, Country, LogNormal, Stream, Zipf, named, names, parse
from anabranch.streams.registry import STREAMS, written


def test_every_exported_stream_has_its_name():
    exported = (getattr(streams, name) for name in streams.__all__)
    concrete = {cls.name for cls in exported if inspect.isclass(cls) and not inspect.isabstract(cls)}
    assert set(names()) == concrete - {"replay"} | {"ln1", "ln2"}


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("zipf", Zipf()),
        ("zipf(tuples=10, keys=5, z=1)", Zipf(10, 5, 1.0)),
        (" zipf (keys=1.5k,z=0) ", Zipf(1_000_000, 1500, 0.0)),
        ("country(tuples=2M, skew_percent=70, half_skew=True)", Country(2_000_000, 70, half_skew=True)),
        ("correlated-pairs(values=5, locality=0.5)", CorrelatedPairs(1_000_000, 5, 0.5)),
        ("alternating(phases=3)", Alternating(n_phases=3)),
        ("log-normal", LogNormal(1_000_000, 1.789, 2.366)),
        ("ln1", LogNormal.ln1()),
        ("ln2(tuples=10)", LogNormal.ln2(10)),
    ],
)
def test_makes_streams_from_names_and_parameters(text, stream):
    assert parse(text) == stream


def test_what_the_text_says_goes_before_a_default():
    assert parse("zipf(tuples=10)", n_tuples=20, n_keys=7) == Zipf(10, 7)


@pytest.mark.parametrize("name", names())
def test_a_name_alone_makes_a_stream_and_what_is_written_makes_it_again(name):
    stream = parse(name)
    assert parse(written(stream)) == stream
    small = {"n_tuples": 7} | {p.field: 0.25 for p in parameters_of(named(name)).values() if float in p.kinds}
    other = parse(name, **small)
    assert parse(written(other)) == other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Zpf", "no stream is named 'Zpf'; did you mean zipf?"),
        ("xyzzy", f"no stream is named 'xyzzy'; there are {', '.join(names())}"),
        ("zipf?z=1.4&keys=5", "no stream is named 'zipf?z=1.4&keys=5'; "),
        ("zipf(skew=1.0)", "zipf has no parameter 'skew'; it takes tuples, keys, z"),
        ("zipf(n_keys=5)", "zipf has no parameter 'n_keys'; it takes tuples, keys, z"),
        ("ln1(mu=1)", "ln1 has no parameter 'mu'; it takes tuples"),
        ("zipf(z=1.4", "cannot read 'zipf(z=1.4'; write it as in 'zipf(z=1.4, keys=100k)'"),
        ("zipf(1.4)", "cannot read 'zipf(1.4)'; "),
        ("zipf(z=1.4, z=1)", "cannot read "),
        ("zipf(z=high)", "z must be a number, got 'high'"),
        ("zipf(z=-1)", "z must be at least 0, got -1"),
        ("zipf(keys=2.5)", "keys must be a whole number, got 2.5"),
        ("zipf(keys=0)", "keys must be at least 1, got 0"),
        ("zipf(keys=5kk)", "keys must be a number such as 16, 1.4, 10k or 2M, got '5kk'"),
        ("country(half_skew=1)", "half_skew must be True or False, got 1"),
        ("correlated-pairs(values=1)", "locality must be 1 when values is 1, got 0.8"),
        ("zipf(z=1:2:0.5)", "z takes one value here, got 1:2:0.5; only sweeps take several"),
        ("zipf(z=1,2)", "z takes one value here, got 1,2; only sweeps take several"),
    ],
)
def test_errors_name_the_remedy(text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


def test_a_sweep_has_the_values_of_lists_and_ranges():
    make, vary = STREAMS.sweep("zipf(z=0.8,1.0:2.0:0.5, keys=1k,2k)")
    assert vary == {"z": [0.8, 1.0, 1.5, 2.0], "n_keys": [1000, 2000]}
    assert make(z=0.8, n_keys=1000) == Zipf(1_000_000, 1000, 0.8)


@given(st.text(alphabet="zipfkeys()=,:.'0123[]- \n\0", max_size=20))
def test_nonsense_raises_nothing_but_a_config_error(text):
    for attempt in (text, f"zipf({text}", f"zipf(keys={text})"):
        with contextlib.suppress(ConfigError):
            assert isinstance(parse(attempt), Stream)
