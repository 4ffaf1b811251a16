"""``anabranch groupings`` and ``anabranch streams``: what there is, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from anabranch.cli.output import print_table, print_text, terminal_width

_WIDE = 120
_NARROW_PAPER = 18


def groupings(
    name: Annotated[str | None, typer.Argument(help="Show the documentation of this grouping.")] = None,
) -> None:
    """List the groupings with one line each and their paper; with NAME, the documentation and defaults of one."""
    from anabranch.groupings import named, names

    if name is not None:
        print_text(_documentation(name, named(name)))
        return
    # The sentence is what is read; beside it a narrow terminal leaves the paper two or three lines.
    width = terminal_width()
    _list(
        [(listed, named(listed), named(listed).paper) for listed in names()], "paper", width is None or width >= _WIDE
    )


def streams(
    name: Annotated[str | None, typer.Argument(help="Show the documentation of this stream.")] = None,
) -> None:
    """List the synthetic streams with one line each and their parameters; with NAME, the documentation of one."""
    from anabranch.streams import named, names

    if name is not None:
        print_text(_documentation(name, named(name)))
        return
    _list([(listed, named(listed), _parameters(named(listed))) for listed in names()], "parameters", True)


def _list(rows: list[tuple[str, Callable[..., Any], str]], heading: str, wide: bool) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it does")
    table.add_column(heading, max_width=None if wide else _NARROW_PAPER)
    for name, entry, last in rows:
        table.add_row(name, inspect.cleandoc(entry.__doc__ or "").partition("\n")[0], last)
    print_table(table)


def _parameters(entry: Callable[..., Any]) -> str:
    from anabranch.names import parameters_of

    return ", ".join(f"{name}={parameter.default!r}" for name, parameter in parameters_of(entry).items())


def _documentation(name: str, entry: Callable[..., Any]) -> str:
    summary, _, rest = f"{name}: {inspect.cleandoc(entry.__doc__ or '')}".partition("\n\n")
    parameters = _parameters(entry)
    written = [f"With its defaults: {name}({parameters})"] if parameters else []
    return "\n\n".join([summary, *written, rest])
