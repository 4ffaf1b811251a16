from __future__ import annotations

import builtins
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from anabranch import metrics
from anabranch.errors import ConfigError, MissingExtraError
from anabranch.report import plot, plot_loads


@pytest.fixture
def hide(monkeypatch):
    """Make a package look as if it were not installed."""

    def hidden(package):
        real = builtins.__import__

        def refuse(name, *args, **kwargs):
            if name.partition(".")[0] == package:
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", refuse)

    return hidden


def _is_valid(path):
    content = path.read_bytes()
    if path.suffix == ".svg":
        return ET.fromstring(content).tag.endswith("svg")
    return content.startswith(
        {".png": b"\x89PNG\r\n", ".pdf": b"%PDF-", ".html": b"<!DOCTYPE html>"}[path.suffix.lower()]
    )


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_the_ending_says_what_is_written_and_folders_are_made(make_cell, tmp_path, ending):
    path = tmp_path / "new" / "folder" / f"picture.{ending}"
    plot([make_cell("key"), make_cell("shuffle")], path)
    assert _is_valid(path)


def test_the_ending_may_be_in_capitals_and_the_path_text(make_cell, tmp_path):
    plot([make_cell()], str(tmp_path / "picture.PNG"))
    assert (tmp_path / "picture.PNG").read_bytes().startswith(b"\x89PNG")


def test_another_ending_is_refused_and_nothing_written(make_cell, make_result, tmp_path):
    rule = re.escape("must end in .png, .svg, .pdf, .html, got ")
    with pytest.raises(ConfigError, match=rule):
        plot([make_cell()], tmp_path / "new" / "picture.gif")
    with pytest.raises(ConfigError, match=rule):
        plot([make_cell()], tmp_path / "new" / "picture")
    with pytest.raises(ConfigError, match=re.escape("must end in .png, .svg, .pdf, got ")):
        plot_loads([make_result()], tmp_path / "new" / "loads.html", "Loads")
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_draw_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="at least one result, got none"):
        plot([], tmp_path / "picture.png")


@pytest.mark.parametrize(("package", "ending"), [("matplotlib", "png"), ("plotly", "html")])
def test_a_missing_extra_is_named_and_nothing_written(make_cell, tmp_path, hide, package, ending):
    hide(package)
    with pytest.raises(MissingExtraError, match=rf"{package}, which is not installed; install anabranch\[report\]"):
        plot([make_cell()], tmp_path / "new" / f"picture.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_the_same_cells_give_the_same_bytes(make_cell, tmp_path):
    cells = [make_cell("key"), make_cell("shuffle")]
    for ending in ("svg", "html"):
        plot(cells, tmp_path / f"one.{ending}")
        plot(cells, tmp_path / f"two.{ending}")
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


EXTREMES = {
    "one worker, one window": {"workers": 1, "loads": np.ones(1), "windows": {"n_windows": 1}},
    "1024 workers": {"workers": 1024, "loads": np.geomspace(1e-3, 1e6, 1024)},
    "no imbalance": {"windows": {"imbalance": np.zeros(10)}},
    "no latency": {
        "windows": {"latency_mean": np.full(10, np.nan)},
        "latency_histogram": np.zeros(metrics.N_LATENCY_BINS, np.int64),
    },
    "no tuples": {"tuples": 0, "loads": np.zeros(4), "makespan": np.nan},
    "dollars": {"stream": "replay", "stream_parameters": {"path": "a$b$c_{.csv"}},
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ending", ["svg", "html"])
@pytest.mark.parametrize("changed", EXTREMES.values(), ids=EXTREMES)
def test_draws_extremes(make_cell, tmp_path, changed, ending):
    path = tmp_path / f"picture.{ending}"
    windows = changed.get("windows", {})
    plot([make_cell(name, **changed | {"windows": dict(windows)}) for name in ("key", "shuffle")], path)
    assert _is_valid(path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ending", ["svg", "html"])
def test_draws_sweeps_with_missing_values(make_cell, tmp_path, ending):
    path = tmp_path / f"picture.{ending}"
    cells = [
        make_cell(g, {"stream": s}, latency_p99=np.nan, makespan=np.nan if s == "ln1" else 1.0)
        for g in ("key", "shuffle")
        for s in ("zipf", "ln1")
    ]
    plot(cells, path)
    assert _is_valid(path)


def test_every_grouping_has_an_axis_with_its_name(make_result, tmp_path):
    names = ["key", "partial-key", "spillway", "shuffle", "fish", "d-choices", "w-choices"]
    path = tmp_path / "loads.svg"
    plot_loads([make_result(name) for name in names], path, "A title of my own")
    drawn = path.read_text()
    # matplotlib draws letters as outlines, and writes each text before them as a comment.
    for text in [*names, "A title of my own"]:
        assert f"<!-- {text} -->" in drawn
    assert drawn.count("<!-- 2.00× -->") == len(names)


def test_a_long_title_is_wrapped(make_cell, tmp_path):
    parameters = {f"parameter_{i}": i for i in range(12)}
    path = tmp_path / "picture.svg"
    plot([make_cell(stream_parameters=parameters)], path)
    assert "parameter_0=0" in path.read_text()
    assert "parameter_0=0, parameter_1=1" not in _longest_comment(path, over=110)


def _longest_comment(path, over):
    return "".join(text for text in re.findall(r"<!-- (.*?) -->", path.read_text()) if len(text) > over)
