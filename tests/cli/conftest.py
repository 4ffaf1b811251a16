from __future__ import annotations

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
