"""The command line as a process: exit codes, and which stream gets what."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import anabranch

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
