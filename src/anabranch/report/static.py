"""Pictures for documents, drawn with matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.arrays import F64
from anabranch.errors import MissingExtraError
from anabranch.printable import printable
from anabranch.report.palette import Style, styles
from anabranch.report.panel import LOWEST_LOAD, Axis, Panel, Series
from anabranch.report.units import axis_number, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as DrawnAxis
    from matplotlib.figure import Figure

_INK = "#262626"
_SOFT = "#6B6B6B"
_GRID = "#E4E4E4"

# All lengths are inches: text has a fixed size, so the room around it must not scale with the picture.
_WIDTH = 13.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.8, 0.3, 0.3, 0.65
_PANEL_HEIGHT, _LOADS_HEIGHT = 2.7, 2.0
_ROW_GAP = 1.05
_TITLE_HEIGHT = 0.32
_TITLE_LINE, _TITLE_LETTER = 0.24, 0.118
_LEGEND_ROW = 0.22
_HEAD_GAP = 0.72
_PANEL_GAP, _LOADS_GAP = 0.95, 0.3
_NOTE_WIDTH = 2.3
_COLUMNS = 3
_LOAD_COLUMNS = 6

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": _INK,
    "axes.edgecolor": "#B0B0B0",
    "axes.labelcolor": _SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "savefig.dpi": 160,
    # The same results give the same bytes, so that committed pictures change only when their numbers do.
    "svg.hashsalt": "anabranch",
}
# A dollar sign in a file's name is not mathematics.
_AS_IT_IS: Any = {"parse_math": False}
_METADATA: dict[str, dict[str, None]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
ENDINGS = tuple(_METADATA)


def draw(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Draw all panels into one picture with one legend."""
    with _matplotlib(path):
        from matplotlib.figure import Figure

        bars = [panel for panel in panels if panel.kind != "line"]
        lines = [panel for panel in panels if panel.kind == "line"]
        style = styles(list(dict.fromkeys(series.name for panel in panels for series in panel.series)))
        legend = _LEGEND_ROW * math.ceil(len(style) / _legend_columns(style))
        rows = [(_LOADS_HEIGHT, count, taken) for p in bars for count, taken in _load_rows(len(p.series))]
        rows += [(_PANEL_HEIGHT, _COLUMNS, _COLUMNS) for _ in range(math.ceil(len(lines) / _COLUMNS))]
        title = _wrapped(title, _WIDTH)
        above_legend = _TOP + _TITLE_HEIGHT + _TITLE_LINE * title.count("\n")
        head = above_legend + legend + _HEAD_GAP
        height = head + sum(high for high, _, _ in rows) + _ROW_GAP * (len(rows) - 1) + _BOTTOM
        figure = Figure(figsize=(_WIDTH, height))
        slots = _slots(figure, rows, head)
        _title(figure, title)
        for panel in bars:
            _loads(panel, [next(slots) for _ in panel.series], style)
        for panel in lines:
            _lines(next(slots), panel, style)
        _legend(figure, style, 1 - above_legend / height, with_lines=bool(lines))
        _save(figure, path)


def draw_loads(panel: Panel, title: str, path: Path) -> None:
    """Draw the loads alone, one axis a grouping, side by side on one scale."""
    with _matplotlib(path):
        from matplotlib.figure import Figure

        style = styles([series.name for series in panel.series])
        rows = [(2.4, count, taken) for count, taken in _load_rows(len(panel.series))]
        width = _LEFT + _RIGHT + max(6.0, 2.8 * max(count for _, count, _ in rows))
        title = _wrapped(title, width)
        head = _TOP + _TITLE_LINE * title.count("\n") + _HEAD_GAP + 0.2
        height = head + sum(high for high, _, _ in rows) + _ROW_GAP * (len(rows) - 1) + _BOTTOM
        figure = Figure(figsize=(width, height))
        _title(figure, title)
        slots = _slots(figure, rows, head)
        _loads(panel, [next(slots) for _ in panel.series], style)
        _save(figure, path)


@contextmanager
def _matplotlib(path: Path) -> Iterator[None]:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise MissingExtraError(
            f"a {path.suffix} picture needs matplotlib, which is not installed; install anabranch[report]"
        ) from None
    with matplotlib.rc_context(_SETTINGS):
        yield


def _save(figure: Figure, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor="white", metadata=_METADATA[path.suffix.lower()])


def _wrapped(title: str, width: float) -> str:
    return textwrap.fill(printable(title), int((width - _LEFT - _RIGHT) / _TITLE_LETTER))


def _title(figure: Figure, title: str) -> None:
    width, height = figure.get_size_inches()
    figure.text(_LEFT / width, 1 - _TOP / height, title, fontsize=13, fontweight="bold", va="top", **_AS_IT_IS)


def _load_rows(n: int) -> list[tuple[int, int]]:
    """Width of each row in axes, as even as can be, and how many of them are taken."""
    n_rows = math.ceil(n / _LOAD_COLUMNS)
    width = math.ceil(n / n_rows)
    return [(width, min(width, n - width * row)) for row in range(n_rows)]


def _slots(figure: Figure, rows: Sequence[tuple[float, int, int]], head: float) -> Iterator[Axes]:
    """Axes row by row: height, width in axes, and how many of them are taken; the others stay empty."""
    width, height = figure.get_size_inches()
    top = height - head
    for row_height, n, taken in rows:
        gap = _PANEL_GAP if row_height == _PANEL_HEIGHT else _LOADS_GAP
        each = (width - _LEFT - _RIGHT - gap * (n - 1)) / n
        for at in range(taken):
            left = _LEFT + at * (each + gap)
            yield figure.add_axes((left / width, (top - row_height) / height, each / width, row_height / height))
        top -= row_height + _ROW_GAP


def _loads(panel: Panel, axes: Sequence[Axes], style: dict[str, Style]) -> None:
    highest = max(1.0, max(float(series.y.max()) for series in panel.series))
    first_of_row = {min(a.get_position().x0 for a in axes)}
    for at, (series, drawn) in enumerate(zip(panel.series, axes, strict=True)):
        _load_bars(drawn, panel, series, style[series.name].colour)
        if panel.y.log:
            drawn.set_yscale("log")
            drawn.set_ylim(LOWEST_LOAD, 3 * highest)
            _ticks(drawn.yaxis, panel.y)
            drawn.tick_params(axis="y", which="minor", left=False)
        else:
            drawn.set_ylim(0, 1.15 * highest)
        drawn.grid(axis="y", color=_GRID, linewidth=0.8)
        drawn.set_xlabel(printable(panel.x.label), **_AS_IT_IS)
        if drawn.get_position().x0 in first_of_row:
            drawn.set_ylabel(printable(panel.y.label), **_AS_IT_IS)
        else:
            drawn.tick_params(axis="y", labelleft=False, length=0)
            drawn.spines["left"].set_visible(False)
        if at == 0:
            drawn.annotate(
                "mean",
                (1.0, 1.0),
                xycoords=("axes fraction", "data"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="right",
                fontsize=7.5,
                color=_SOFT,
            )


def _load_bars(drawn: Axes, panel: Panel, series: Series, colour: str) -> None:
    n = len(series.x)
    if panel.kind == "bar":
        drawn.bar(series.x, series.y, width=0.8, color=colour, linewidth=0)
    else:
        drawn.stairs(series.y, np.arange(n + 1) + 0.5, fill=True, color=colour, linewidth=0)
    # One worker alone would fill the axis from side to side.
    side = max(0.02 * n + 0.6, (5 - n) / 2)
    drawn.set_xlim(1 - side, n + side)
    drawn.set_xticks(sorted({1, n}))
    drawn.axhline(1.0, color=_INK, linewidth=0.9, linestyle=(0, (4, 3)))
    drawn.set_title(printable(series.name), color=colour, pad=20, fontsize=11, **_AS_IT_IS)
    narrow = drawn.get_window_extent().width < _NOTE_WIDTH * drawn.figure.dpi
    drawn.annotate(
        series.note,
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7),
        textcoords="offset points",
        fontsize=7 if narrow else 8.5,
        color=_SOFT,
    )
    drawn.annotate(
        times(series.y[0]),
        (series.x[0] - (0.4 if panel.kind == "bar" else 0.0), series.y[0]),
        xytext=(0, 3),
        textcoords="offset points",
        fontweight="bold",
        fontsize=9,
        color=_INK,
    )


def _lines(drawn: Axes, panel: Panel, style: dict[str, Style]) -> None:
    few = max((len(series.x) for series in panel.series), default=0) <= 20
    for series in panel.series:
        look = style[series.name]
        drawn.errorbar(
            series.x,
            series.y,
            yerr=_arms(panel, series),
            color=look.colour,
            linestyle=(0, look.dash) if look.dash else "-",
            linewidth=1.7,
            elinewidth=0.9,
            marker="o" if few else None,
            markersize=3.5,
        )
    drawn.set_title(printable(panel.title), **_AS_IT_IS)
    drawn.grid(color=_GRID, linewidth=0.8)
    drawn.set_xlabel(printable(panel.x.label), **_AS_IT_IS)
    drawn.set_ylabel(printable(panel.y.label), **_AS_IT_IS)
    if not any(np.isfinite(series.y).any() for series in panel.series):
        drawn.text(0.5, 0.5, "no values", transform=drawn.transAxes, ha="center", color=_SOFT)
        drawn.set_xticks([])
        drawn.set_yticks([])
        return
    drawn.set_xscale("log" if panel.x.log else "linear")
    drawn.set_yscale("log" if panel.y.log else "linear")
    if panel.x.from_zero:
        drawn.set_xlim(left=0)
    _ticks(drawn.xaxis, panel.x)
    _ticks(drawn.yaxis, panel.y)


def _arms(panel: Panel, series: Series) -> F64 | None:
    """Error bars below and above; on a log axis the lower ones are cut, or they would stretch it without end."""
    if series.spread is None or not panel.y.log:
        return series.spread
    lowest = 0.7 * min(float(np.nanmin(s.y)) for s in panel.series if np.isfinite(s.y).any())
    lower = np.minimum(series.spread, np.maximum(0.0, series.y - lowest))
    return np.array([lower, series.spread])


def _ticks(axis: DrawnAxis, spec: Axis) -> None:
    from matplotlib.ticker import (
        EngFormatter,
        FixedLocator,
        FuncFormatter,
        LogLocator,
        MaxNLocator,
        NullFormatter,
        NullLocator,
    )

    if spec.ticks:
        places, labels = zip(*spec.ticks, strict=True)
        axis.set_major_locator(FixedLocator(list(places)))
        axis.set_minor_locator(NullLocator())
        axis.set_ticklabels([printable(label) for label in labels], **_AS_IT_IS)
        return
    if spec.log:
        low, high = axis.get_view_interval()
        narrow = high < 300 * low
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=7))
        axis.set_minor_formatter(NullFormatter())
        if spec.unit is None and (narrow or low > 1e-3):
            axis.set_major_formatter(FuncFormatter(lambda value, _: axis_number(value)))
    else:
        axis.set_major_locator(MaxNLocator(5))
    if spec.unit is not None:
        axis.set_major_formatter(EngFormatter(unit=spec.unit))


def _legend_columns(style: dict[str, Style]) -> int:
    longest = max(len(name) for name in style)
    return max(1, min(len(style), int((_WIDTH - _LEFT - _RIGHT) / (0.75 + 0.06 * longest))))


def _legend(figure: Figure, style: dict[str, Style], top: float, *, with_lines: bool) -> None:
    if not with_lines:
        return
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=look.colour, linestyle=(0, look.dash) if look.dash else "-", linewidth=2.4)
        for look in style.values()
    ]
    columns = _legend_columns(style)
    # A legend fills column by column; read row by row, the groupings keep their order.
    by_row = [at for column in range(columns) for at in range(column, len(handles), columns)]
    names = [printable(name) for name in style]
    legend = figure.legend(
        handles=[handles[at] for at in by_row],
        labels=[names[at] for at in by_row],
        loc="upper left",
        bbox_to_anchor=((_LEFT - 0.1) / _WIDTH, top),
        ncols=columns,
        borderpad=0,
        frameon=False,
        fontsize=9,
        handlelength=2.6,
        columnspacing=1.4,
    )
    for text in legend.get_texts():
        text.set(**_AS_IT_IS)
