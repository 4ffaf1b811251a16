"""Names and values that would command a terminal, a page or a picture are shown as they stand, in every output."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch.cli.run as run_command
from anabranch.cli import endpoints
from anabranch.cli.output import print_table
from anabranch.cli.progress import Progress
from anabranch.errors import InputError
from anabranch.report import interactive

TITLE = "\x1b]0;owned\x07"
# A title, colours, markup, a link, text that runs backwards, lines of its own, mathematics, HTML, and a picture.
HOSTILE = f"{TITLE}\x9b31m[red]x[link=u]click[/link]\u202ed\u2066\u2028\nError: forged\r$x^2_$<b>&|:tiger:"
SHOWN = r"\x1b]0;owned\x07\x9b31m[red]x[link=u]click[/link]\u202ed\u2066\u2028\nError: forged\r$x^2_$<b>&|:tiger:"
UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def check(text: str) -> None:
    """See that nothing in a text commands anything, or begins a line of its own."""
    assert not UNFIT.search(text), ascii(text)
    assert not any(line.startswith("Error: forged") for line in text.splitlines())


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def stream(tmp_path):
    """Options that replay a file whose name, key column and keys are hostile."""
    path = tmp_path / f"{HOSTILE.replace('/', '')}.parquet"
    pq.write_table(pa.table({HOSTILE: [HOSTILE, "a", "b"] * 50, "n": [1] * 150}), path)
    return "--input", path, "--key", HOSTILE


@pytest.fixture
def on_a_terminal(run, monkeypatch):
    def run_wide(*args):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "300")
        done = run(*args)
        assert done.code == 0, done
        return without_colours(done.out)

    return run_wide


def test_simulations_are_shown_and_drawn_harmlessly(run, stream, tmp_path):
    page, picture, records = tmp_path / "p.html", tmp_path / "p.svg", tmp_path / "r.json"
    drawn = ("--plot", page, "--plot", picture, "--json", records)
    done = run("simulate", *stream, "--workers", "2,3", "--grouping", "key", *drawn)
    assert done.code == 0, done
    for text in (done.out, done.err, records.read_text(), picture.read_text()):
        check(text)
    html = page.read_text().replace(interactive.script(), "")
    check(html)
    assert "<b>&" not in html
    assert SHOWN.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in html
    ElementTree.parse(picture)
    assert json.loads(records.read_text())[0]["stream_parameters"]["key"] == HOSTILE


def test_records_on_stdout_are_harmless(run, stream):
    done = run("simulate", *stream, "--workers", 2, "--grouping", "key", "--json", "-")
    check(done.out + done.err)
    assert HOSTILE in json.loads(done.out)[0]["stream_parameters"].values()


def test_the_name_of_a_file_is_shown_as_it_stands(run, on_a_terminal, stream):
    done = run("bound", *stream)
    for text in (done.out, done.err, on_a_terminal("bound", *stream)):
        check(text)
    assert f"key {SHOWN}" in " ".join(done.out.split())


def test_answers_are_shown_as_they_stand(capsys, monkeypatch):
    pytest.importorskip("pyspark")
    from anabranch.apps.sinks.sink import shown

    app = SimpleNamespace(key="word")
    rows = [["word", "count"], [shown(HOSTILE), shown(3)], [shown([["\x1b[2J", 1]]), "1"]]
    run_command._print_rows(app, rows)
    printed = capsys.readouterr().out
    check(printed)
    assert [re.sub(" {2,}", "  ", line) for line in printed.splitlines()[1:]] == [f"{SHOWN}  3", r"\x1b[2J 1  1"]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    run_command._print_rows(app, rows)
    printed = without_colours(capsys.readouterr().out)
    check(printed)
    assert SHOWN in printed


def test_a_table_commands_nothing_whatever_is_put_into_it(capsys):
    from rich.table import Table
    from rich.text import Text

    table = Table(HOSTILE, box=None)
    table.add_row(TITLE + "[red]")
    table.add_row(Text(TITLE))
    print_table(table)
    printed = capsys.readouterr().out
    assert not UNFIT.search(printed)
    # Some characters rich leaves out by itself.
    assert printed.count(r"\x1b]0;owned") == 3
    assert "[red]\n" in printed


def test_the_console_sink_shows_keys_as_they_stand(capsys, monkeypatch):
    pytest.importorskip("pyspark")
    from anabranch.apps.sinks import sink

    class Rows:
        columns = ("word", "count")

        def orderBy(self, *_):
            return self

        def limit(self, _):
            return self

        def collect(self):
            return [(HOSTILE, 2), ("calm", 1)]

    monkeypatch.setattr(sink, "F", SimpleNamespace(desc=str))
    endpoints.sink("console", SimpleNamespace(heaviest="count"), None).write(Rows(), 7)
    printed = capsys.readouterr().out
    check(printed)
    assert printed.splitlines()[2:4] == [f"{SHOWN}  2", "calm".ljust(len(SHOWN)) + "  1"]


def test_progress_is_one_line_whatever_it_quotes(capsys):
    Progress().restart(1, HOSTILE)
    example = {"partition": 0, "offset": 1, "reason": HOSTILE}
    letters = SimpleNamespace(count=3, read=3, example=example, reasons=Counter({HOSTILE: 3}), are_all=True)
    endpoints.tell_malformed(SimpleNamespace(letters=letters, dead_letters=HOSTILE))
    said = capsys.readouterr().err
    check(said)
    assert said.count("\n") == 2
    assert said.count(SHOWN) == 3


@pytest.mark.parametrize("error", [InputError(HOSTILE), OSError(HOSTILE), MemoryError(HOSTILE)])
def test_an_error_is_one_line_whatever_it_quotes(fails, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("anabranch.cli.streams.choose", fail)
    assert fails(1, "simulate") == SHOWN


def test_errors_of_a_hostile_file_are_harmless(fails, stream, tmp_path):
    file = stream[:2]
    for args in (("--key", "m"), ("--key", "n", "--timestamp", HOSTILE), ("--key", f"{HOSTILE}?")):
        check(fails(1, "simulate", *file, *args, "--grouping", "key"))
    for path in (tmp_path / f"none {TITLE}", tmp_path / f"{TITLE}.csv"):
        check(fails(1, "simulate", "--input", path, "--key", "k", "--grouping", "key"))


@pytest.mark.parametrize("args", [[TITLE], ["simulate", f"--{TITLE}"]])
def test_wrong_usage_is_harmless(run, args):
    done = run(*args)
    assert done.code == 2
    assert r"\x1b]0;owned\x07" in done.err
    check(done.out + done.err)
