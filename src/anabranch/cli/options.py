"""Options that several verbs have, and how ``--help`` groups them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from anabranch.cli import values

STREAM = "The stream"
SIZES = "Workers, sources and windows"
# As many workers or sources as the simulator takes.
_MOST = 1_000_000
_SWEEPS = "Sweeps: z=1.0:2.0:0.5, or z=0.8,1.4."


class Grouped(TyperCommand):
    """A command whose help has a section per group of options; typer has that only with markup in help texts."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections, in the order in which their first option comes."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            default = "Arguments" if param.param_type_name == "argument" else "Options"
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(param, "rich_help_panel", None) or default, []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


def stream(more: str = "", default: str = "zipf") -> Any:
    """The option that says a synthetic stream."""
    help = f"Synthetic stream with its parameters: 'zipf(z=1.4, keys=100k)'; see anabranch streams. {more}"
    return typer.Option(help=f"{help.rstrip()}  [default: {default}]", metavar="STREAM", rich_help_panel=STREAM)


def json(per: str) -> Any:
    """The option of a file for records."""
    return typer.Option("--json", help=f"Write one record per {per}; - for stdout.", metavar="FILE")


Stream = Annotated[str | None, stream()]
SweptStream = Annotated[str | None, stream(_SWEEPS)]
Input = Annotated[
    Path | None,
    typer.Option(
        help="Replay a Parquet or CSV file, or a folder of them, instead.", metavar="FILE", rich_help_panel=STREAM
    ),
]
Key = Annotated[str | None, typer.Option(help="Key column of --input.", metavar="COLUMN", rich_help_panel=STREAM)]
Tuples = Annotated[
    int | None,
    values.option(
        "--tuples",
        values.whole,
        "Length of the stream.  [default: 1M, or all of --input]",
        panel=STREAM,
        at_least=1,
    ),
]
Workers = Annotated[
    Sequence[int],
    values.option("--workers", values.wholes, "Workers. Sweeps, as 16,32,64.", panel=SIZES, at_least=1, at_most=_MOST),
]
Sources = Annotated[
    Sequence[int], values.option("--sources", values.wholes, "Sources. Sweeps.", panel=SIZES, at_least=1, at_most=_MOST)
]
Window = Annotated[
    int | None,
    values.option(
        "--window",
        values.whole,
        "Tuples per window (a micro-batch).  [default: 10k per source]",
        panel=SIZES,
        at_least=1,
    ),
]


def seed(of: str) -> Any:
    """The option of the seed, and what it is the seed of."""
    return values.option("--seed", values.whole, f"Seed of {of}.", at_least=0)
