"""``anabranch groupings``: which groupings there are."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer


def groupings(
    name: Annotated[str | None, typer.Argument(help="Show the documentation of this grouping.")] = None,
) -> None:
    """List the groupings with one line each and their paper; with NAME, the documentation of one."""
    from rich.console import Console
    from rich.table import Table

    from anabranch.groupings import named, names
    from anabranch.groupings.named import settable

    if name is not None:
        cls = named(name)
        typer.echo(f"{cls.name}: {inspect.cleandoc(cls.__doc__ or '')}")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("name", "what it does", "paper", "parameters"):
        table.add_column(column, no_wrap=column in ("name", "paper"))
    for listed in names():
        cls = named(listed)
        parameters = ", ".join(f"{parameter}={default}" for parameter, default in settable(cls).items())
        table.add_row(listed, cls.summary(), cls.paper, parameters)
    Console(soft_wrap=not Console().is_terminal, width=None if Console().is_terminal else 500).print(table)
