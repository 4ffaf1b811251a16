"""What a command prints, and files that it writes its results to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anabranch.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

# Wider than any table: lines in a file or a pipe need not end anywhere.
_ENDLESS = 10_000


def check_writable(path: str | Path) -> None:
    """See that a file can be written, before a long run and not after it; missing folders are made."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        existed = target.exists()
        with target.open("ab"):
            pass
        if not existed:
            target.unlink()
    except OSError as error:
        raise InputError(f"cannot write to {str(path)!r}: {error.strerror}; choose another file") from error


def write_records(records: str, path: str) -> None:
    """Write JSON to a file, and say so on stderr."""
    Path(path).write_text(records + "\n")
    typer.echo(f"records: {path}", err=True)


def terminal_width() -> int | None:
    """Characters in a line of the terminal; None where stdout is a file or a pipe."""
    from rich.console import Console

    console = Console()
    return console.width if console.is_terminal else None


def print_table(table: Table) -> None:
    """Print to stdout; into a file or a pipe as wide as need be and without spaces at the ends of lines."""
    from rich.console import Console

    if terminal_width() is not None:
        Console().print(table, crop=False)
        return
    console = Console(width=_ENDLESS)
    with console.capture() as capture:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))
