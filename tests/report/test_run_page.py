from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from anabranch.errors import ConfigError
from anabranch.report import page


class _Reader(HTMLParser):
    """Collects the tags, and the text outside scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self._inside = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self._inside = tag
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in ("script", "style") and data.strip():
            self.words.append(data.strip())


def test_holds_heading_parameters_table_and_panels(make_cell):
    cells = [make_cell("key"), make_cell("partial-key", parameters={"choices": 2})]
    read = _Reader(page(cells))
    assert read.words.count("zipf(n_keys=50 k, z=1.4) · 4 workers · 5 sources · 1000 tuples · window 100") == 2
    assert read.words[read.words.index("rate") + 1] == "1000"
    assert "choices=2" in read.words
    assert sum(tag == "tr" for tag, _ in read.tags) == 3
    assert {a["id"] for tag, a in read.tags if a.get("class") == "plotly-graph-div"} == {f"panel-{i}" for i in range(4)}


def test_holds_the_settings(make_cell):
    settings = {
        "speeds": [2.0, 1.0],
        "changes": ["100:+1"],
        "service_s": 0.002,
        "reset_loads": True,
        "source_key": None,
    }
    words = _Reader(page([make_cell("key", settings=settings)])).words
    after = dict(pairwise(words))
    assert after["workers"] == "4, then 5 from tuple 100"
    assert (after["speeds"], after["changes"], after["service"]) == ("2, 1", "100:+1", "2.00 ms")
    assert after["reset loads"] == "yes"
    assert "source key" not in words


def test_refers_to_nothing_outside(make_cell):
    text = page([make_cell("key")])
    read = _Reader(text)
    assert not [a for _, a in read.tags if "src" in a or "href" in a]
    assert not re.search(r"<script[^>]*\ssrc=|<link[^>]*\shref=", text)
    assert "default-src 'none'" in text
    assert sum(tag == "script" for tag, _ in read.tags) >= 2


def test_text_is_escaped(make_cell):
    evil = "</script><img src=x onerror=alert(1)>'\"&"
    cells = [make_cell(evil, stream=evil, stream_parameters={"a": evil}, parameters={evil: evil}, version=evil)]
    text = page(cells)
    assert "<img src=x" not in text
    assert evil in _Reader(text).words


def test_the_switches_name_the_traces_they_hide(make_cell):
    name = "partial-key(choices<3)"
    read = _Reader(page([make_cell(name), make_cell("key")]))
    buttons = [a["data-name"] for tag, a in read.tags if tag == "button"]
    assert buttons == ["partial-key(choices&lt;3)", "key"]


def test_a_sweep_shows_its_panels_before_its_table(sweep, make_cell):
    of_sweep, of_run = page(sweep), page([make_cell()])
    assert of_sweep.index('id="panel-0"') < of_sweep.index("<table>")
    assert of_run.index('id="panel-0"') > of_run.index("<table>")


def test_nothing_to_show_is_refused():
    with pytest.raises(ConfigError, match="at least one result, got none"):
        page([])
