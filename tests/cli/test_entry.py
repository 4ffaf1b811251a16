"""The command line as a process: exit codes, and which stream gets what."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest
from typer.main import get_command

import anabranch
from anabranch import streams
from anabranch.cli.entry import app
from anabranch.names import read
from anabranch.streams.registry import STREAMS

COMMAND = [sys.executable, "-c", "from anabranch.cli import main; main()"]


def anabranch_command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, timeout=120)


def test_results_go_to_stdout_and_nothing_else_does():
    done = anabranch_command("simulate", "--tuples", "2000", "--grouping", "key", "--json", "-")
    assert done.returncode == 0
    assert [record["grouping"] for record in json.loads(done.stdout)] == ["key"]
    assert done.stderr == ""


def test_an_error_is_one_line_on_stderr():
    done = anabranch_command("simulate", "--workers", "0", "--tuples", "2000")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "Error: --workers must be at least 1, got '0'\n"


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["--help"], ["simulate", "groupings", "--version"]),
        (
            ["simulate", "--help"],
            ["--stream", "--grouping", "--workers", "--json", "--plot", "anabranch simulate --stream 'zipf(z=1.4)'"],
        ),
        (["groupings", "--help"], ["NAME"]),
    ],
)
def test_help(run, args, shown):
    done = run(*args)
    assert done.code == 0
    assert done.err == ""
    assert all(text in done.out for text in shown)


@pytest.mark.parametrize("verb", ["simulate", "predictors"])
def test_help_says_what_a_value_is_and_what_it_is_by_default(run, verb):
    text = " ".join(run(verb, "--help").out.split())
    for kind in ("<str>", "<int", "<float>"):
        assert kind not in text
    assert "--workers N" in text
    assert "Length of the stream. [default: 1M, or all of --input]" in text
    assert "Tuples per window" in text
    assert " a window" not in text.replace("in a window", "")


def test_version(run):
    assert run("--version").out == f"anabranch {anabranch.__version__}\n"


def test_without_a_verb_there_is_help(run):
    done = run()
    assert done.code == 2
    assert "simulate" in done.out + done.err


@pytest.mark.parametrize("args", [["bogus"], ["simulate", "--bogus"], ["simulate", "--repeat", "0"]])
def test_wrong_usage_is_exit_code_2_without_a_traceback(run, args):
    done = run(*args)
    assert done.code == 2
    assert done.out == ""
    assert "Error: " in done.err
    assert "Traceback" not in done.err


def test_too_little_memory_is_an_error_of_one_line(fails):
    # Addresses of 2^62 bytes: no machine can give them, and asking costs nothing.
    line = fails(1, "simulate", "--tuples", 100, "--grouping", "consistent(virtual_workers=72057594037927936)")
    assert line


def test_the_number_of_workers_is_the_same_by_default_in_python_and_here(run):
    pytest.importorskip("pyspark")
    from anabranch.apps import Balancing
    from anabranch.apps.demo import Demo
    from anabranch.chain.spark import chain
    from anabranch.simulate import Settings
    from anabranch.spark import balance

    made = [
        signature(entry).parameters["n_workers"].default for entry in (balance, chain.chain, Settings, Balancing, Demo)
    ]
    assert made == [16] * 5
    for verb in ("simulate", "bound", "predictors", "run", "demo"):
        shown = " ".join(run(verb, "--help").out.partition("--workers N")[2].split())
        assert shown.partition("[default: ")[2].startswith("16]")


def commands() -> list[str]:
    """Commands of the documents and of the verbs' help, each on one line; VERSION and … are for readers to fill in."""
    root = Path(__file__).parents[2]
    files = [root / "README.md", *root.glob("docs/*.md"), *root.glob("src/anabranch/cli/*.py")]
    texts = [re.sub(r"\\\\?\n\s*", " ", file.read_text()) for file in files]
    found = [line for text in texts for line in re.findall(r"^ *anabranch ([a-z]+ .*)", text, re.MULTILINE)]
    return [line for line in found if "--help" not in line]


@pytest.mark.parametrize("command", commands())
def test_the_commands_of_the_documents_have_options_and_streams_that_exist(command):
    verb, *args = shlex.split(command, comments=True)
    context = get_command(app).commands[verb].make_context(verb, args)
    source = str(context.params.get("source"))
    if verb == "run" and source.startswith("generator:"):
        assert read(source.removeprefix("generator:"), "")[0] in streams.names()
    elif verb != "run" and context.params.get("stream"):
        STREAMS.sweep(context.params["stream"])
