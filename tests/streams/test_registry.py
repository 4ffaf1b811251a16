from __future__ import annotations

import inspect
import re

import pytest

from anabranch import streams
from anabranch.errors import ConfigError
from anabranch.streams import CorrelatedPairs, Country, LogNormal, Zipf, named, names


def test_every_exported_stream_has_its_name():
    exported = (getattr(streams, name) for name in streams.__all__)
    concrete = {cls.name for cls in exported if inspect.isclass(cls) and not inspect.isabstract(cls)}
    assert set(names()) == concrete | {"ln1", "ln2"}


def test_makes_streams_from_names_and_parameters(tmp_path):
    assert named("zipf", n_tuples=10, n_keys=5, z=1.0) == Zipf(10, 5, 1.0)
    assert named("country", n_tuples=10, skew_percent=80, half_skew=True) == Country(10, 80, half_skew=True)
    assert named("correlated-pairs", n_tuples=10, n_values=5, locality=0.5) == CorrelatedPairs(10, 5, 0.5)
    assert named("ln1") == LogNormal.ln1()
    assert named("ln2", n_tuples=10) == LogNormal.ln2(10)
    (tmp_path / "a.csv").write_text("k\n1\n")
    assert named("replay", path=tmp_path, key="k").describe()["path"] == str(tmp_path)


def test_names_the_streams_there_are():
    with pytest.raises(ConfigError, match=re.escape(f"stream must be one of {', '.join(names())}, got 'zipfian'")):
        named("zipfian")


def test_suggests_the_closest_name():
    with pytest.raises(ConfigError, match=r"got 'Zpf'; did you mean zipf\?$"):
        named("Zpf")
    with pytest.raises(ConfigError, match=r"got 'xyzzy'$"):
        named("xyzzy")


def test_names_the_parameters_there_are():
    with pytest.raises(ConfigError, match="stream zipf takes n_tuples, n_keys, z, got 'skew'; leave it out"):
        named("zipf", n_tuples=10, n_keys=5, skew=1.0)
    with pytest.raises(ConfigError, match="stream ln1 takes n_tuples, got 'mu'"):
        named("ln1", mu=1.0)


def test_names_the_parameters_that_are_missing():
    with pytest.raises(ConfigError, match="stream zipf needs n_keys, z, got n_tuples; add them"):
        named("zipf", n_tuples=10)
