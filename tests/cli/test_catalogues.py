"""``anabranch groupings`` and ``anabranch streams``."""

from __future__ import annotations

import pytest

from anabranch import groupings, streams


def test_every_grouping_is_listed_with_its_paper(run):
    done = run("groupings")
    assert done.code == 0
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    for name in groupings.names():
        cls = groupings.named(name)
        assert cls.paper in lines[name]
        assert cls.summary() in lines[name]
    assert set(lines) == {"name", *groupings.names()}
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_the_list_is_short_at_80_columns(on_terminal):
    lines = on_terminal(80, "groupings")
    assert all(len(line) <= 80 for line in lines)
    assert not any("…" in line for line in lines)
    assert len(lines) <= 1 + 3 * len(groupings.names())


def test_a_name_shows_the_documentation(run):
    done = run("groupings", "partial-key")
    assert done.code == 0
    assert done.out.startswith("partial-key: Each tuple to the less loaded of its key's two candidates.")
    for part in ("When to use it", "Guarantees", "Parameters", "Examples", "References"):
        assert part in done.out


def test_a_name_shows_the_parameters_with_their_defaults(run):
    assert "partial-key(choices=2, estimation='local', probe_s=None)" in run("groupings", "partial-key").out
    assert "defaults" not in run("groupings", "shuffle").out


def test_an_unknown_name_suggests_a_known_one(fails):
    assert fails(2, "groupings", "partial-keys") == "no grouping is named 'partial-keys'; did you mean partial-key?"
    assert "there are spillway, key, shuffle" in fails(2, "groupings", "xyzzy")


def test_every_stream_is_listed_with_its_parameters_as_they_are_written(run):
    done = run("streams")
    assert done.code == 0
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    assert set(lines) == {"name", *streams.names()}
    assert lines["bursts"].endswith(" tuples=1000000, keys=100000, z=1.2, share=0.3, length=3000")


@pytest.mark.parametrize("name", streams.names())
def test_what_a_stream_shows_as_its_defaults_makes_it(run, name):
    lines = run("streams", name).out.splitlines()
    assert lines[0].startswith(f"{name}: ")
    assert streams.parse(lines[2].removeprefix("With its defaults: ")) == streams.named(name)()


def test_an_unknown_stream_suggests_a_known_one(fails):
    assert fails(2, "streams", "zpf") == "no stream is named 'zpf'; did you mean zipf?"
