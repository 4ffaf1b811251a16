"""``anabranch groupings``: which groupings there are."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli.output import print_table, print_text, terminal_width

if TYPE_CHECKING:
    from anabranch.groupings import Grouping

_WIDE = 120
_NARROW_PAPER = 18


def groupings(
    name: Annotated[str | None, typer.Argument(help="Show the documentation of this grouping.")] = None,
) -> None:
    """List the groupings with one line each and their paper; with NAME, the documentation and defaults of one."""
    from rich.table import Table

    from anabranch.groupings import named, names

    if name is not None:
        print_text(_documentation(named(name)))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it does")
    # The sentence is what is read; beside it a narrow terminal leaves the paper two or three lines.
    width = terminal_width()
    table.add_column("paper", max_width=None if width is None or width >= _WIDE else _NARROW_PAPER)
    for listed in names():
        cls = named(listed)
        table.add_row(listed, cls.summary(), cls.paper)
    print_table(table)


def _documentation(cls: type[Grouping]) -> str:
    from anabranch.groupings.registry import settable

    summary, _, rest = f"{cls.name}: {inspect.cleandoc(cls.__doc__ or '')}".partition("\n\n")
    defaults = ", ".join(f"{parameter}={default!r}" for parameter, default in settable(cls).items())
    written = [f"With its defaults: {cls.name}({defaults})"] if defaults else []
    return "\n\n".join([summary, *written, rest])
