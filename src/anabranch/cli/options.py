"""Options that several verbs have, and how ``--help`` groups them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from anabranch.cli.values import Section

STREAM = Section("The stream")
SIZES = Section("Workers, sources and windows")
OTHER = Section()
# As many workers or sources as the simulator takes.
_MOST = 1_000_000


class Grouped(TyperCommand):
    """A command whose help has a section per group of options; typer has that only with markup in help texts."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections in the order in which their first option comes, and last what has no section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            default = "Arguments" if param.param_type_name == "argument" else "Options"
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(param, "rich_help_panel", None) or default, []).append(record)
        for name, records in sorted(sections.items(), key=lambda section: section[0] == "Options"):
            with formatter.section(name):
                formatter.write_dl(records)


def stream(more: str = "", default: str = "zipf") -> Any:
    """The option that says a synthetic stream."""
    help = f"Synthetic stream with its parameters: 'zipf(z=1.4, keys=100k)'; see anabranch streams. {more}"
    return STREAM.text(f"{help.rstrip()}  [default: {default}]", "STREAM")


def json(per: str) -> Any:
    """The option of a file for records."""
    return typer.Option("--json", help=f"Write one record per {per}; - for stdout.", metavar="FILE")


def seed(of: str) -> Any:
    """The option of the seed, and what it is the seed of."""
    return OTHER.whole("--seed", f"Seed of {of}.", at_least=0)


Stream = Annotated[str | None, stream()]
SweptStream = Annotated[str | None, stream("Sweeps: z=1.0:2.0:0.5, or z=0.8,1.4.")]
Input = Annotated[Path | None, STREAM.text("Replay a Parquet or CSV file, or a folder of them, instead.", "FILE")]
Key = Annotated[str | None, STREAM.text("Key column of --input.", "COLUMN")]
Tuples = Annotated[int | None, STREAM.whole("--tuples", "Length of the stream.  [default: 1M, or all of --input]")]
Workers = Annotated[Sequence[int], SIZES.wholes("--workers", "Workers. Sweeps, as 16,32,64.", at_most=_MOST)]
Sources = Annotated[Sequence[int], SIZES.wholes("--sources", "Sources. Sweeps.", at_most=_MOST)]
Window = Annotated[int | None, SIZES.whole("--window", "Tuples per window (a micro-batch).  [default: 10k per source]")]
