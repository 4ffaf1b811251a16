"""The comparison table, for a terminal and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import rich.table
from rich import box
from rich.cells import cell_len
from rich.console import Console  # noqa: TID251 (measures only)
from rich.measure import Measurement
from rich.text import Text

from anabranch.printable import printable
from anabranch.report import units
from anabranch.report.headline import value_text
from anabranch.simulate.sweeps import Cell


@dataclass(frozen=True)
class Entry:
    """Text of one table cell; `best` where no other grouping is better under the same parameters."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Row:
    """One row; `opens` where the swept parameters differ from the row before."""

    entries: tuple[Entry, ...]
    opens: bool


@dataclass(frozen=True)
class _Metric:
    header: str
    name: str
    text: Callable[[float], str]
    short: str
    spread: bool = False
    best: bool = False


_METRICS = (
    _Metric("makespan", "makespan", units.number, "\nmakespan", spread=True, best=True),
    _Metric("imbalance", "imbalance", units.fraction, "\nimbalance", spread=True),
    _Metric("replication", "replication", units.number, "\nreplication", spread=True, best=True),
    _Metric("latency mean", "latency_mean", units.duration, "latency\nmean"),
    _Metric("latency p99", "latency_p99", units.duration, "latency\np99"),
    _Metric("saturation tuples/s", "saturation_rate", units.rate, "saturation\ntuples/s"),
    _Metric("router M tuples/s", "tuples_per_second", units.millions, "router\nM tuples/s"),
    _Metric("router bytes", "router_bytes", units.size, "router\nbytes"),
)
# What a terminal can do without, first what goes first.
_HIDDEN_FIRST = ("router_bytes", "tuples_per_second", "saturation_rate", "latency_mean")
# A name longer than the longest bare one breaks before its parameters, and long parameters between them.
_LONGEST_NAME = 18
_LONGEST_PARAMETERS = 28


def headers(cells: Sequence[Cell]) -> list[str]:
    """Column headers: the grouping, the swept parameters, the metrics."""
    return ["grouping", *cells[0].swept, *(metric.header for metric in _METRICS)]


def rows(cells: Sequence[Cell]) -> list[Row]:
    """Rows with what can be compared side by side: all groupings under the first parameters, then under the next."""
    made = []
    for point in _points(cells):
        together = [cell for cell in cells if cell.swept == point]
        best = {metric.name: _best(together, metric) for metric in _METRICS if metric.best}
        made += [Row(_entries(cell, best), opens=cell is together[0]) for cell in together]
    return made


def table(cells: Sequence[Cell], width: int | None = None) -> rich.table.Table:
    """Comparison table for a terminal: one row per cell, the best makespan and replication in green.

    With repeats, makespan, imbalance and replication are mean ± standard deviation.

    Parameters
    ----------
    cells
        At least one.
    width
        Characters in a line. If they are too few, columns move closer and spreads go below their means, then some
        metrics are left out, which a note below the table says; a name is never cut off. Without it the table is as
        wide as it needs to be.
    """
    body = rows(cells)
    wraps = (False, True) if _repeated(cells) else (False,)
    for n_hidden, wrap, gap in product(range(len(_HIDDEN_FIRST) + 1), wraps, (1, 0)):
        shown = [metric for metric in _METRICS if metric.name not in _HIDDEN_FIRST[:n_hidden]]
        made = _built(cells, body, shown, gap, wrap=wrap)
        needed = _narrowest(made)
        if width is None or needed <= width:
            return _with_note(made, n_hidden)
    # Too long for its line it can still be read; squeezed by rich it could not.
    made.width = needed
    return _with_note(made, n_hidden)


def markdown(cells: Sequence[Cell]) -> str:
    """Comparison table as GitHub Markdown, the best makespan and replication in bold."""
    head = headers(cells)
    lines = [_markdown_line(head), _markdown_line(["---", *["---:"] * (len(head) - 1)])]
    for row in rows(cells):
        lines.append(_markdown_line([f"**{e.text}**" if e.best else e.text for e in row.entries]))
    return "\n".join(lines) + "\n"


def _built(
    cells: Sequence[Cell], body: Sequence[Row], shown: Sequence[_Metric], gap: int, *, wrap: bool
) -> rich.table.Table:
    """Table with these metrics; to `wrap` lets a spread go to the line below its mean."""
    made = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0), show_edge=False)
    n_before = 1 + len(cells[0].swept)
    kept = [*range(n_before), *(n_before + _METRICS.index(metric) for metric in shown)]
    heads = ["\ngrouping", *(f"\n{printable(name)}" for name in cells[0].swept), *(metric.short for metric in shown)]
    spreads = [*[False] * n_before, *(metric.spread for metric in shown)]
    texts = [[_broken(row.entries[0].text), *(entry.text for entry in row.entries[1:])] for row in body]
    for at, head, spread in zip(kept, heads, spreads, strict=True):
        broken = wrap and spread
        column = (head, *(line[at] for line in texts))
        narrowest = max(cell_len(part) for text in column for part in text.split(None if broken else "\n"))
        made.add_column(head, justify="right" if at else "left", no_wrap=not broken, min_width=narrowest)
    sections = len(body) > len(_points(cells))
    for number, (row, line) in enumerate(zip(body, texts, strict=True)):
        closes = sections and number + 1 < len(body) and body[number + 1].opens
        made.add_row(
            *(Text(line[at], style="bold green" if row.entries[at].best else "") for at in kept), end_section=closes
        )
    return made


def _narrowest(made: rich.table.Table) -> int:
    endless = Console(width=100_000)
    return Measurement.get(endless, endless.options, made).minimum


def _with_note(made: rich.table.Table, n_hidden: int) -> rich.table.Table:
    if n_hidden:
        columns = "1 column" if n_hidden == 1 else f"{n_hidden} columns"
        made.caption = f"{columns} hidden; widen the terminal or use --json"
        made.caption_style = "dim"
        made.caption_justify = "left"
    return made


def _broken(grouping: str) -> str:
    grouping = printable(grouping)
    name, bracket, parameters = grouping.partition("(")
    if len(grouping) <= _LONGEST_NAME or not bracket:
        return grouping
    lines = textwrap.wrap(bracket + parameters, _LONGEST_PARAMETERS, break_long_words=False, break_on_hyphens=False)
    return "\n".join([name, *lines])


def _markdown_line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(printable(text).replace("|", "\\|") for text in texts) + " |"


def _points(cells: Sequence[Cell]) -> list[dict[str, object]]:
    """Combinations of swept parameters, in order of appearance."""
    points: list[dict[str, object]] = []
    for cell in cells:
        if cell.swept not in points:
            points.append(cell.swept)
    return points


def _repeated(cells: Sequence[Cell]) -> bool:
    return any(len(cell.results) > 1 for cell in cells)


def _best(together: Sequence[Cell], metric: _Metric) -> str | None:
    """Text of the lowest value; cells that show the same text are equally good."""
    values = [value for cell in together if (value := cell.mean(metric.name)) == value]
    return metric.text(min(values)) if len(values) > 1 else None


def _entries(cell: Cell, best: dict[str, str | None]) -> tuple[Entry, ...]:
    swept = [Entry(value_text(cell.swept[name])) for name in cell.swept]
    return (Entry(cell.grouping), *swept, *(_entry(cell, metric, best.get(metric.name)) for metric in _METRICS))


def _entry(cell: Cell, metric: _Metric, best: str | None) -> Entry:
    text = metric.text(cell.mean(metric.name))
    with_spread = metric.spread and len(cell.results) > 1 and text != units.MISSING
    shown = f"{text} ±{units.spread(cell.spread(metric.name), beside=text)}" if with_spread else text
    return Entry(shown, best=text == best)
