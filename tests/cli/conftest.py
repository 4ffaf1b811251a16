from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from anabranch.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run the command line in this process: `run("simulate", "--workers", 4)`."""
    # Colours and a terminal's width would come from the environment of whoever runs the tests.
    for name in ("FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def run_main(*args: object) -> Done:
        monkeypatch.setattr("sys.argv", ["anabranch", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        return Done(0 if code is None else int(code), printed.out, printed.err)

    return run_main


@pytest.fixture
def on_terminal(run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run a command on a terminal of this width; gives the lines on stdout without colours and spaces at the end."""

    def run_wide(width: int, *args: object) -> list[str]:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(width))
        done = run(*args)
        assert done.code == 0, done
        return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", done.out).splitlines()]

    return run_wide


@pytest.fixture
def fails(run: Callable[..., Done]) -> Callable[..., str]:
    """Run a command that must fail with this exit code; gives the line on stderr without its ``Error:``."""

    def run_failing(code: int, *args: object) -> str:
        done = run(*args)
        assert done.code == code, done
        assert done.out == ""
        assert done.err.startswith("Error: ")
        assert done.err.count("\n") == 1
        assert done.err.endswith("\n")
        return done.err.removeprefix("Error: ").rstrip("\n")

    return run_failing
