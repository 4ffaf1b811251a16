"""What the pictures show, as data: a panel knows its axes and series, and nothing of a plotting library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from anabranch import metrics
from anabranch.arrays import F64
from anabranch.report.headline import headline, value_text
from anabranch.report.units import number
from anabranch.simulate.sweeps import Cell

MAX_POINTS = 1000
MAX_BARS = 64
MAX_PANELS_PER_METRIC = 6
LOWEST_LOAD = 0.1
_TALLEST_LOAD = 50.0
# A log axis over less than this ratio has hardly a labelled tick.
_LOG_RATIO = 8.0
_LOWEST_LATENCY_S = 1e-9
_FIRST_SHARE = 0.999
_SWEPT_METRICS = (
    ("makespan", "Makespan", None),
    ("replication", "Replication", None),
    ("latency_p99", "Latency p99", "s"),
)


@dataclass(frozen=True)
class Axis:
    """One axis.

    `unit` is None for plain numbers; otherwise ticks carry the prefixes k, M, m, µ and the unit, which may be empty.
    `ticks` are positions with labels, where only some positions mean something.
    """

    label: str
    log: bool = False
    unit: str | None = None
    ticks: tuple[tuple[float, str], ...] = ()
    from_zero: bool = False


@dataclass(frozen=True, eq=False)
class Series:
    """Values of one grouping.

    `spread` is the standard deviation of `y` over the repeats; `note` is a remark to stand beside the name.
    """

    name: str
    x: F64
    y: F64
    spread: F64 | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Panel:
    """One picture: "bar" has a bar at each x, "step" is its outline, and "line" joins the points."""

    title: str
    x: Axis
    y: Axis
    kind: Literal["bar", "line", "step"]
    series: tuple[Series, ...]


def panels(cells: Sequence[Cell]) -> list[Panel]:
    """Panels that suit the cells: those of a sweep if the parameters vary, those of a single run if not."""
    if is_sweep(cells):
        return sweep_panels(cells)
    return [loads(cells), imbalance_over_time(cells), latency_over_time(cells), latency_distribution(cells)]


def heading(cells: Sequence[Cell]) -> str:
    """Line above the panels; it says so if some combinations of a sweep are not shown."""
    text = headline([result for cell in cells for result in cell.results])
    if is_sweep(cells) and len(shown_combinations(cells)) < len(all_combinations(cells)):
        text += f" · {len(shown_combinations(cells))} of {len(all_combinations(cells))} combinations shown"
    return text


def is_sweep(cells: Sequence[Cell]) -> bool:
    """Whether any swept parameter has more than one value."""
    return any(cell.swept != cells[0].swept for cell in cells)


def loads(cells: Sequence[Cell]) -> Panel:
    """Load per worker relative to the mean, the most loaded worker first."""
    series = []
    for cell in cells:
        relative = _mean_over_repeats([_relative(result.loads) for result in cell.results])
        note = f"makespan {number(cell.mean('makespan'))} · replication {number(cell.mean('replication'))}"
        series.append(Series(cell.grouping, np.arange(1.0, len(relative) + 1), relative, note=note))
    kind: Literal["bar", "step"] = "bar" if max(len(s.y) for s in series) <= MAX_BARS else "step"
    # Under a taller tower an even load would be too low to be seen at all.
    log = max(float(s.y.max()) for s in series) > _TALLEST_LOAD
    y = Axis("load / mean load (log scale)" if log else "load / mean load", log=log)
    return Panel("Load per worker", Axis("workers, most loaded first"), y, kind, tuple(series))


def imbalance_over_time(cells: Sequence[Cell]) -> Panel:
    """Imbalance I(t) / t at the end of each window; what is below one tuple in the whole stream is shown as one."""
    floor = 1.0 / max(1, max(result.tuples for cell in cells for result in cell.results))
    series = _over_time(cells, "imbalance", floor)
    return Panel(
        "Imbalance over time",
        Axis("tuples", unit="", from_zero=True),
        Axis("imbalance I(t) / t", log=True),
        "line",
        series,
    )


def latency_over_time(cells: Sequence[Cell]) -> Panel:
    """Mean latency of the tuples of each window."""
    series = _over_time(cells, "latency_mean", _LOWEST_LATENCY_S)
    y = Axis("mean latency in the window", log=True, unit="s")
    return Panel("Latency over time", Axis("tuples", unit="", from_zero=True), y, "line", series)


def latency_distribution(cells: Sequence[Cell]) -> Panel:
    """Share of tuples whose latency is x or longer, over all repeats; groupings without latencies are left out.

    The curve starts where the first thousandth of the tuples is done: before that it is flat.
    """
    edges = metrics.latency_edges()
    series = []
    for cell in cells:
        histogram = np.sum([result.latency_histogram for result in cell.results], axis=0)
        used = np.flatnonzero(histogram)
        if len(used):
            above = np.cumsum(histogram[::-1])[::-1] / histogram.sum()
            bins = slice(np.flatnonzero(above >= _FIRST_SHARE)[-1], used[-1] + 1)
            series.append(Series(cell.grouping, edges[bins], above[bins]))
    x = Axis("latency", log=True, unit="s")
    return Panel("Latency distribution", x, Axis("share of tuples above", log=True), "line", tuple(series))


def sweep_panels(cells: Sequence[Cell]) -> list[Panel]:
    """Makespan, replication and p99 latency over the first swept number, for each combination of the other parameters.

    With more than six combinations, six are taken at equal steps, among them the first and the last.
    """
    along = _along(cells)
    made = []
    for others in shown_combinations(cells):
        chosen = [cell for cell in cells if _others(cell, along) == others]
        where = "".join(f", {name} = {value_text(value)}" for name, value in others.items())
        for metric, title, unit in _SWEPT_METRICS:
            # Over all cells, so that one metric has one kind of scale in all its panels.
            log = unit == "s" or _is_wide(np.array([cell.mean(metric) for cell in cells]))
            y = Axis(title.lower(), log=log, unit=unit)
            x = _along_axis(cells, along)
            made.append(Panel(title + where, x, y, "line", _along_series(chosen, along, metric)))
    return made


def shown_combinations(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Combinations of the parameters other than the one on the x axis that get panels of their own."""
    every = all_combinations(cells)
    at = np.linspace(0, len(every) - 1, min(len(every), MAX_PANELS_PER_METRIC)).round().astype(int)
    return [every[i] for i in at]


def all_combinations(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Combinations of the parameters other than the one on the x axis, in order of appearance."""
    along = _along(cells)
    every: list[dict[str, Any]] = []
    for cell in cells:
        if (others := _others(cell, along)) not in every:
            every.append(others)
    return every


def _relative(load: F64) -> F64:
    mean = load.mean()
    ordered: F64 = np.sort(load)[::-1]
    return ordered / mean if mean else np.zeros(len(load))


def _mean_over_repeats(repeats: Sequence[F64]) -> F64:
    length = min(len(values) for values in repeats)
    mean: F64 = np.mean([values[:length] for values in repeats], axis=0)
    return mean


def _over_time(cells: Sequence[Cell], metric: str, floor: float) -> tuple[Series, ...]:
    series = []
    for cell in cells:
        y = _mean_over_repeats([getattr(result.windows, metric) for result in cell.results])
        x = cell.results[0].windows.tuples[: len(y)].astype(np.float64)
        # NaN passes through the maximum: a window without tuples is a gap in the line.
        series.append(
            Series(cell.grouping, _thinned(x, lambda part: part[-1]), _thinned(np.maximum(y, floor), np.mean))
        )
    return tuple(series)


def _thinned(values: F64, keep: Callable[[F64], Any]) -> F64:
    """At most MAX_POINTS values, each made by `keep` from a run of neighbours."""
    if len(values) <= MAX_POINTS:
        return values
    return np.array([keep(part) for part in np.array_split(values, MAX_POINTS)], dtype=np.float64)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _along(cells: Sequence[Cell]) -> str:
    """Parameter on the x axis: the first that varies and is a number, else the first that varies."""
    varying = [name for name, value in cells[0].swept.items() if any(cell.swept[name] != value for cell in cells)]
    numeric = [name for name in varying if all(_is_number(cell.swept[name]) for cell in cells)]
    return (numeric or varying)[0]


def _others(cell: Cell, along: str) -> dict[str, Any]:
    return {name: value for name, value in cell.swept.items() if name != along}


def _positions(cells: Sequence[Cell], along: str) -> dict[Any, float]:
    """Place on the x axis of each value of the parameter: the number itself, or its rank of appearance."""
    values = list(dict.fromkeys(cell.swept[along] for cell in cells))
    if all(_is_number(value) for value in values):
        return {value: float(value) for value in sorted(values)}
    return {value: float(rank) for rank, value in enumerate(values)}


def _along_axis(cells: Sequence[Cell], along: str) -> Axis:
    positions = _positions(cells, along)
    x = np.array(list(positions.values()))
    log = all(_is_number(value) for value in positions) and _is_wide(x)
    return Axis(along, log=log, ticks=tuple((place, value_text(value)) for value, place in positions.items()))


def _along_series(cells: Sequence[Cell], along: str, metric: str) -> tuple[Series, ...]:
    positions = _positions(cells, along)
    series = []
    for grouping in dict.fromkeys(cell.grouping for cell in cells):
        own = [cell for cell in cells if cell.grouping == grouping]
        own.sort(key=lambda cell: positions[cell.swept[along]])
        x = np.array([positions[cell.swept[along]] for cell in own])
        y = np.array([cell.mean(metric) for cell in own])
        repeated = any(len(cell.results) > 1 for cell in own)
        spread = np.array([cell.spread(metric) for cell in own]) if repeated else None
        series.append(Series(grouping, x, y, spread))
    return tuple(series)


def _is_wide(values: F64) -> bool:
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and bool(finite.min() > 0) and bool(finite.max() >= _LOG_RATIO * finite.min())
