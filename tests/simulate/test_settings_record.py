"""A record says what a run can be repeated from."""

from __future__ import annotations

import json

from anabranch.groupings import KeyGrouping
from anabranch.simulate import Change, Settings, simulate
from anabranch.streams import Zipf


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
