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
    spread: bool = False
    best: bool = False


def _millions(per_second: float) -> str:
    return units.number(per_second / 1e6)


_METRICS = (
    _Metric("makespan", "makespan", units.number, spread=True, best=True),
    _Metric("imbalance", "imbalance", units.fraction, spread=True),
    _Metric("replication", "replication", units.number, spread=True, best=True),
    _Metric("latency mean", "latency_mean", units.duration),
    _Metric("latency p99", "latency_p99", units.duration),
    _Metric("saturation tuples/s", "saturation_rate", units.rate),
    _Metric("router M tuples/s", "tuples_per_second", _millions),
    _Metric("router bytes", "router_bytes", units.size),
)


def headers(cells: Sequence[Cell]) -> list[str]:
    """Column headers: the grouping, the swept parameters, the metrics."""
    return ["grouping", *_swept_names(cells), *(metric.header for metric in _METRICS)]


def rows(cells: Sequence[Cell]) -> list[Row]:
    """Rows with what can be compared side by side: all groupings under the first parameters, then under the next."""
    made = []
    for point in _points(cells):
        together = [cell for cell in cells if cell.swept == point]
        best = {metric.name: _best(together, metric) for metric in _METRICS if metric.best}
        made += [Row(_entries(cell, cells, best), opens=cell is together[0]) for cell in together]
    return made


def table(cells: Sequence[Cell]) -> rich.table.Table:
    """Comparison table for a terminal: one row a cell, the best makespan and replication in green.

    With repeats, makespan, imbalance and replication are mean ± standard deviation.
    """
    made = rich.table.Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    wraps = {"grouping"} | ({m.header for m in _METRICS if m.spread} if _repeated(cells) else set())
    for header in headers(cells):
        left = header == "grouping"
        made.add_column(
            header.replace(" ", "\n", 1) if header not in _swept_names(cells) else header,
            justify="left" if left else "right",
            vertical="bottom" if left else "top",
            no_wrap=header not in wraps,
            overflow="fold",
        )
    body = rows(cells)
    for at, row in enumerate(body):
        last_of_point = at + 1 < len(body) and body[at + 1].opens and len(body) > len(_points(cells))
        texts = [Text(entry.text, style="bold green" if entry.best else "") for entry in row.entries]
        made.add_row(*texts, end_section=last_of_point)
    return made


def markdown(cells: Sequence[Cell]) -> str:
    """Comparison table as GitHub Markdown, the best makespan and replication in bold."""
    head = headers(cells)
    lines = [_markdown_line(head), _markdown_line(["---", *["---:"] * (len(head) - 1)])]
    for row in rows(cells):
        lines.append(_markdown_line([f"**{e.text}**" if e.best else e.text for e in row.entries]))
    return "\n".join(lines) + "\n"


def _markdown_line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _swept_names(cells: Sequence[Cell]) -> list[str]:
    return list(cells[0].swept)


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


def _entries(cell: Cell, cells: Sequence[Cell], best: dict[str, str | None]) -> tuple[Entry, ...]:
    swept = [Entry(value_text(cell.swept[name])) for name in _swept_names(cells)]
    return (Entry(cell.grouping), *swept, *(_entry(cell, metric, best.get(metric.name)) for metric in _METRICS))


def _entry(cell: Cell, metric: _Metric, best: str | None) -> Entry:
    text = metric.text(cell.mean(metric.name))
    with_spread = metric.spread and len(cell.results) > 1 and text != units.MISSING
    shown = f"{text} ± {units.spread(cell.spread(metric.name), beside=text)}" if with_spread else text
    return Entry(shown, best=text == best)
