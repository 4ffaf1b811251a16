"""``anabranch bound``: what no grouping can beat on a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

from anabranch.cli import options, streams, values
from anabranch.cli.output import check_writable, console, print_table, print_text, terminal_width, write_records
from anabranch.errors import ConfigError
from anabranch.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

    from anabranch.simulate import LowerBound, Settings
    from anabranch.streams import Stream

# In a narrower terminal streams go over several lines.
_WIDE = 120
_EDGE = ("n_workers", "n_sources")


def _makespans(text: str, option: str) -> list[float]:
    listed = values.numbers(text, option)
    if min(listed) < 1:
        raise ConfigError(f"{option} must be at least 1, got {text!r}; 1 is perfect balance")
    return listed


def bound(
    stream: options.SweptStream = None,
    input: options.Input = None,
    key: options.Key = None,
    tuples: options.Tuples = None,
    workers: options.Workers = (16,),
    sources: options.Sources = (5,),
    window: options.Window = None,
    makespan: Annotated[
        Sequence[float],
        options.OTHER.read("--makespan", _makespans, "Makespans to bound the replication at, as 1.01,1.05.", "NUMBER"),
    ] = (1.05,),
    seed: Annotated[int, options.seed("the stream")] = 0,
    json_: Annotated[str | None, options.json("row")] = None,
) -> None:
    """Say what no grouping can beat on a stream: the least makespan, and the least replication at a makespan.

    A worker has at least ⌈window / workers⌉ tuples of a window: that is the least makespan. A key with more tuples than
    a worker may have in a window is on several: that is the least replication, "every window" where each window keeps
    to the makespan, "mean" where only the mean over windows does, which is what simulate gives (--json also has what
    the most demanding window alone needs then). A grouping of simulate that is close to both cannot be improved much.
    The bounds may be below what can be had: the best is a combinatorial problem, and no grouping knows the future.

    Try:

      anabranch bound --stream 'zipf(z=1.4)' --workers 16,32,64

      anabranch bound --input words.parquet --key word --makespan 1.01,1.05,1.2
    """
    if json_ not in (None, "-"):
        check_writable(json_ or "")
    make_stream, of_stream = streams.choose(stream, tuples, input, key)
    vary = {**of_stream, "n_workers": workers, "n_sources": sources}
    fixed = {"window": window, "limit": tuples, "seed": seed}
    with console(stderr=True).status("reading the stream"):
        bounds = list(_bounds(make_stream, vary, fixed, makespan))
    _show(bounds, json_)


def _bounds(
    make_stream: Callable[..., Stream],
    vary: Mapping[str, Sequence[Any]],
    fixed: Mapping[str, Any],
    makespans: Sequence[float],
) -> Iterator[LowerBound]:
    from anabranch.simulate import Settings, bound

    for combination in product(*vary.values()):
        chosen = dict(zip(vary, combination, strict=True))
        size = {name: chosen.pop(name) for name in _EDGE}
        settings: Settings = Settings(**size, **fixed)
        yield bound(make_stream(**chosen), settings, makespans=makespans)


def _show(bounds: Sequence[LowerBound], json_file: str | None) -> None:
    records = json.dumps([found.record() for found in bounds], indent=1)
    if json_file == "-":
        print_text(records)
        return
    print_table(_table(bounds, terminal_width()))
    if json_file is not None:
        write_records(records, json_file)


def _table(bounds: Sequence[LowerBound], width: int | None) -> Table:
    """One row per bound; on a narrow terminal streams go over several lines, and no figure is cut off."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2 if width is None else 1, 0, 0))
    narrow = width is not None and width < _WIDE
    rows = [_row(found, narrow=narrow) for found in bounds]
    for at, heading in enumerate(_headings(bounds[0])):
        column = [heading, *(row[at] for row in rows)]
        longest = max(len(part) for text in column for part in text.split("\n" if at else None))
        table.add_column(heading, justify="right" if at else "left", no_wrap=at > 0, min_width=longest)
    for row in rows:
        table.add_row(*row)
    if width is not None:
        # Too long for its line it can still be read; squeezed by rich it could not.
        needed = sum((column.min_width or 0) + 1 for column in table.columns)
        table.width = needed if needed > width else None
    return table


def _headings(found: LowerBound) -> list[str]:
    headings = ["\n\nstream", "\n\nworkers", "\n\nsources", "tuples/\nworker/\nwindow", "\n\nkeys"]
    headings += ["\nmakespan\nat least", "replication\nat least,\nat that"]
    for at in found.replications[1:]:
        headings += [f"at {at.makespan:g}\nin every\nwindow", f"at {at.makespan:g}\nin the\nmean"]
    return headings


def _row(found: LowerBound, *, narrow: bool) -> list[str]:
    from anabranch.report.units import count

    least, *others = found.replications
    figures = [found.makespan, least.replication]
    figures += [figure for at in others for figure in (at.replication, at.replication_total)]
    sizes = (found.workers, found.sources, found.share, found.keys)
    name = _stream_text(found)
    # Few keys are split, so that replication differs from 1 in the fourth place or later.
    shown = (f"{figure:.5f}" for figure in figures)
    return [name.replace("(", "\n(") if narrow else name, *map(count, sizes), *shown]


def _stream_text(found: LowerBound) -> str:
    """The stream's parameters, or the name of a file."""
    from anabranch.report.headline import value_text

    shown = {name: value for name, value in found.stream_parameters.items() if name != "n_tuples"}
    if "path" in shown:
        return f"{value_text(shown['path'])}, key {printable(shown['key'])}"
    listed = ", ".join(f"{name}={value_text(value)}" for name, value in shown.items())
    return f"{found.stream}({listed})" if listed else found.stream
