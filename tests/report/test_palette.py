from __future__ import annotations

import itertools

from anabranch.groupings import names
from anabranch.report.palette import styles


def test_a_colour_depends_on_the_name_alone():
    alone = styles(["spillway"])["spillway"]
    assert styles(["key", "shuffle", "spillway"])["spillway"] == alone
    assert styles(["mine"]) == {"mine": styles(["key", "mine"])["mine"]}


def test_no_two_groupings_share_a_colour():
    colours = [style.colour for style in styles([*_all_names(), "mine"]).values()]
    assert len(set(colours)) == len(colours)


def test_groupings_close_in_colour_differ_in_dash():
    made = styles(_all_names())
    for (a, first), (b, second) in itertools.combinations(made.items(), 2):
        assert _distance(first.colour, second.colour) > 60 or first.dash != second.dash, (a, b)


def test_variants_are_shades_and_the_bare_name_keeps_its_colour():
    made = styles(["partial-key(choices=3)", "partial-key(choices=4)", "partial-key"])
    assert list(made) == ["partial-key(choices=3)", "partial-key(choices=4)", "partial-key"]
    assert made["partial-key"] == styles(["partial-key"])["partial-key"]
    assert len({style.colour for style in made.values()}) == len({style.dash for style in made.values()}) == 3
    assert styles(["partial-key(choices=3)"])["partial-key(choices=3)"] == made["partial-key"]


def _all_names():
    return sorted({*names(), "dstream", "fish", "dynamic-key", "distribution-aware", "spillway", "table"})


def _distance(first, second):
    parts = ([int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (first, second))
    return sum((a - b) ** 2 for a, b in zip(*parts, strict=True)) ** 0.5
