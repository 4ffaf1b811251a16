"""The comparison table, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import rich.table
from rich import box
from rich.text import Text

from anabranch.report import units
from anabranch.report.headline import value_text
from anabranch.simulate.sweep import Cell


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
    _Metric("router M tuples/s", "tuples_per_second", units.millions, "router\nM/s"),
    _Metric("router bytes", "router_bytes", units.size, "router\nbytes"),
)
# A name longer than the longest bare one breaks before its parameters.
_LONGEST_NAME = 18


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


def table(cells: Sequence[Cell]) -> rich.table.Table:
    """Comparison table for a terminal: one row a cell, the best makespan and replication in green.

    With repeats, makespan, imbalance and replication are mean ± standard deviation.
    """
    # What is not needed to tell columns apart is left to the columns: all of them must fit into 100 characters.
    gap = 0 if _repeated(cells) or cells[0].swept else 1
    made = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0), show_edge=False)
    made.add_column("\ngrouping", no_wrap=True)
    for name in cells[0].swept:
        made.add_column(f"\n{name}", justify="right", no_wrap=True)
    for metric in _METRICS:
        wraps = metric.spread and _repeated(cells)
        made.add_column(metric.short, justify="right", no_wrap=not wraps, min_width=max(map(len, metric.short.split())))
    body = rows(cells)
    sections = len(body) > len(_points(cells))
    for at, row in enumerate(body):
        closes = sections and at + 1 < len(body) and body[at + 1].opens
        first = Text(_broken(row.entries[0].text))
        rest = [Text(entry.text, style="bold green" if entry.best else "") for entry in row.entries[1:]]
        made.add_row(first, *rest, end_section=closes)
    return made


def markdown(cells: Sequence[Cell]) -> str:
    """Comparison table as GitHub Markdown, the best makespan and replication in bold."""
    head = headers(cells)
    lines = [_markdown_line(head), _markdown_line(["---", *["---:"] * (len(head) - 1)])]
    for row in rows(cells):
        lines.append(_markdown_line([f"**{e.text}**" if e.best else e.text for e in row.entries]))
    return "\n".join(lines) + "\n"


def _broken(grouping: str) -> str:
    return grouping if len(grouping) <= _LONGEST_NAME else grouping.replace("(", "\n(", 1)


def _markdown_line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


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
