"""Settings and changes: what is refused, what the defaults are, and what a record says of them."""

from __future__ import annotations

import json
import re

import pytest

from anabranch.errors import ConfigError
from anabranch.groupings import KeyGrouping
from anabranch.simulate import Change, Settings, simulate
from anabranch.streams import Zipf

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_workers": 0}, "n_workers must be at least 1, got 0"),
        ({"n_workers": 10**9}, "n_workers must be at most 1000000, got 1000000000"),
        ({"n_sources": -1}, "n_sources must be at least 1, got -1"),
        ({"n_sources": 10**9}, "n_sources must be at most 1000000, got 1000000000"),
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"seed": -1}, "seed must be 0 or a positive whole number, got -1"),
        ({"rate": 0.0}, "rate must be a positive number, got 0.0"),
        ({"rate": NAN}, "rate must be a positive number, got nan"),
        ({"rate": INF}, "rate must be a positive number, got inf"),
        ({"service_s": -1.0}, "service_s must be a positive number, got -1.0"),
        ({"service_s": NAN}, "service_s must be a positive number, got nan"),
        ({"report_s": 0.0}, "report_s must be a positive number, got 0.0"),
        ({"report_s": INF}, "report_s must be a positive number, got inf"),
        ({"merge_s": -0.1}, "merge_s must be 0 or a positive number, got -0.1"),
        ({"merge_s": NAN}, "merge_s must be 0 or a positive number, got nan"),
        ({"report_noise": -0.1}, "report_noise must be 0 or a positive number, got -0.1"),
        ({"report_noise": INF}, "report_noise must be 0 or a positive number, got inf"),
        ({"speeds": ()}, "speeds must be positive numbers, got ()"),
        ({"speeds": (1.0, NAN)}, "speeds must be positive numbers, got (1.0, nan)"),
        ({"speeds": (1.0, 0.0)}, "speeds must be positive numbers, got (1.0, 0.0)"),
        ({"speeds": (INF,)}, "speeds must be positive numbers, got (inf,)"),
        ({"edge": "local"}, "edge must be one of adaptive, planned, got 'local'"),
        (
            {"edge": "planned", "changes": (Change(9, remove=1), Change(5, add=2))},
            "workers of the planned edge cannot change, got 5:+2, 9:-1; use the adaptive edge",
        ),
    ],
)
def test_a_setting_outside_its_rule_is_refused_with_rule_and_value(parameters, message):
    with pytest.raises(ConfigError, match="^" + re.escape(message)) as caught:
        Settings(**parameters)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([Change(5, remove=2)], "worker 2 is not there at tuple 5; there are [0, 1]"),
        ([Change(5, remove=0), Change(9, remove=0)], "worker 0 is not there at tuple 9; there are [1]"),
        ([Change(5, remove=0), Change(9, remove=1)], "worker 1 is the last one at tuple 9; add another first"),
        # In the order of the stream, whatever the order they are given in.
        ([Change(9, remove=2), Change(10, add=1)], "worker 2 is not there at tuple 9; there are [0, 1]"),
    ],
)
def test_changes_must_name_workers_that_are_there_and_leave_one(changes, message):
    with pytest.raises(ConfigError, match="^" + re.escape(message)):
        Settings(n_workers=2, changes=tuple(changes))


def test_changes_are_taken_in_the_order_of_the_stream():
    given = Settings(n_workers=2, changes=(Change(10, remove=2), Change(9, add=1), Change(11, remove=0)))
    assert [change.at for change in given.ordered_changes] == [9, 10, 11]
    assert given.n_workers_ever == 3


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("5000:+2", Change(5000, add=2)),
        ("5000:+", Change(5000, add=1)),
        ("0:-3", Change(0, remove=3)),
        ("7:-0", Change(7, remove=0)),
    ],
)
def test_a_change_is_read_from_text(text, change):
    assert Change.parse(text) == change


@pytest.mark.parametrize(
    "text", ["", "5000", "5000:", "5000:2", "x:+2", "5000:+x", "5000:-", "-5:+2", ":+2", "5000:+0"]
)
def test_a_change_that_cannot_be_read_says_how_to_write_one(text):
    with pytest.raises(ConfigError, match=r"^cannot read the change .*; write 5000000:\+2"):
        Change.parse(text)


@pytest.mark.parametrize("parameters", [{}, {"add": -1}, {"add": 1, "remove": 2}, {"add": -1, "remove": 2}])
def test_a_change_either_adds_or_removes(parameters):
    with pytest.raises(ConfigError, match=r"^a change adds workers or removes one"):
        Change(10, **parameters)


def test_a_change_before_the_stream_is_refused():
    with pytest.raises(ConfigError, match=r"^a change must be at tuple 0 or later, got -1"):
        Change(-1, add=1)


def test_defaults_follow_from_the_size():
    given = Settings(n_workers=3, n_sources=4, service_s=0.02, speeds=(2, 1), changes=(Change(5, add=2),))
    assert given.window_tuples == 40_000
    assert given.merge_seconds == pytest.approx(0.002)
    assert given.worker_speeds.tolist() == [2, 1, 2, 1, 2]
    # Newcomers do not count: they are not there when the stream begins.
    assert given.arrival_rate == pytest.approx(0.8 * 5 / 0.02)
    assert Settings(window=7, merge_s=0.0, rate=3.0).window_tuples == 7
    assert Settings(merge_s=0.0).merge_seconds == 0.0
    assert Settings(rate=3.0).arrival_rate == 3.0


def test_the_record_holds_every_setting_that_is_not_a_field_of_its_own():
    settings = Settings(n_workers=4, speeds=(2.0, 1.0), changes=(Change(500, add=1), Change(700, remove=2)), limit=900)
    record = simulate(Zipf(1000, 10, 1.0), KeyGrouping(), settings).record()
    assert json.loads(json.dumps(record["settings"])) == {
        "rate": None,
        "service_s": 0.001,
        "speeds": [2.0, 1.0],
        "report_s": 10.0,
        "report_noise": 0.05,
        "reset_loads": False,
        "source_key": None,
        "limit": 900,
        "edge": "adaptive",
        "merge_s": 0.0001,
        "changes": ["500:+1", "700:-2"],
    }


def test_a_change_is_written_as_it_is_read():
    for text in ("5000:+2", "0:-3"):
        assert str(Change.parse(text)) == text
