"""What a command prints, and files that it writes its results to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anabranch.errors import InputError
from anabranch.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
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
    say(f"records: {path}")


def say(line: object) -> None:
    """Print one line to stderr: progress, a note or an error."""
    typer.echo(printable(line), err=True)


def print_text(text: str, *, err: bool = False) -> None:
    """Print text of several lines to stdout, or to stderr."""
    typer.echo(printable(text, lines=True), err=err)


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that shows text as it stands: ``[red]`` is not read as markup, nor ``:tiger:`` as a picture."""
    from rich.console import Console

    return Console(stderr=stderr, width=width, markup=False, emoji=False)


def terminal_width() -> int | None:
    """Characters in a line of the terminal; None where stdout is a file or a pipe."""
    out = console()
    return out.width if out.is_terminal else None


def print_table(table: Table) -> None:
    """Print to stdout; into a file or a pipe as wide as need be and without spaces at the ends of lines."""
    if terminal_width() is not None:
        console().print(_Printable(table), crop=False)
        return
    out = console(width=_ENDLESS)
    with out.capture() as capture:
        out.print(_Printable(table))
    print_text("\n".join(line.rstrip() for line in capture.get().splitlines()))


@dataclass(frozen=True)
class _Printable:
    """A table whose texts command nothing; only rich itself sets colours."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self.table, options):
            yield part if part.control else part._replace(text=printable(part.text, lines=True))
