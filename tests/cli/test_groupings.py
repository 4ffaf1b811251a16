"""``anabranch groupings``."""

from __future__ import annotations

from anabranch import groupings


def test_every_grouping_is_listed_with_its_paper_and_parameters(run):
    done = run("groupings")
    assert done.code == 0
    lines = {line.split()[0]: line for line in done.out.splitlines() if line.strip()}
    for name in groupings.names():
        cls = groupings.named(name)
        assert cls.paper in lines[name]
        assert cls.summary() in lines[name]
    assert "choices=2" in lines["partial-key"]
    assert set(lines) == {"name", *groupings.names()}


def test_a_name_shows_the_documentation(run):
    done = run("groupings", "partial-key")
    assert done.code == 0
    assert done.out.startswith("partial-key: Each tuple to the less loaded of its key's two candidates.")
    for part in ("When to use it", "Guarantees", "Parameters", "Examples", "References"):
        assert part in done.out


def test_an_unknown_name_suggests_a_known_one(fails):
    assert fails(2, "groupings", "partial-keys") == "no grouping is named 'partial-keys'; did you mean partial-key?"
    assert "there are key, shuffle" in fails(2, "groupings", "xyzzy")
