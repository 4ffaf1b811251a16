"""Pictures for documents, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anabranch.errors import MissingExtraError
from anabranch.report.palette import Style, styles
from anabranch.report.panels import Axis, Panel, Series

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
_TITLE_HEIGHT = 0.45
_LEGEND_ROW = 0.26
_COLUMNS = 3
_LOAD_COLUMNS = 6

_SETTINGS = {
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
        rows = [(_LOADS_HEIGHT, count) for panel in bars for count in _load_rows(len(panel.series))]
        rows += [(_PANEL_HEIGHT, _COLUMNS) for _ in range(math.ceil(len(lines) / _COLUMNS))]
        head = _TOP + _TITLE_HEIGHT + legend + 0.65
        height = head + sum(high for high, _ in rows) + _ROW_GAP * (len(rows) - 1) + _BOTTOM
        figure = Figure(figsize=(_WIDTH, height))
        slots = _slots(figure, rows, head)
        figure.text(_LEFT / _WIDTH, 1 - _TOP / height, title, fontsize=13, fontweight="bold", va="top")
        for panel in bars:
            _loads(panel, [next(slots) for _ in panel.series], style)
        for panel in lines:
            _lines(next(slots), panel, style)
        _legend(figure, style, 1 - (_TOP + _TITLE_HEIGHT) / height, with_lines=bool(lines))
        _save(figure, path)


def draw_loads(panel: Panel, title: str, path: Path) -> None:
    """Draw the loads alone, one axis a grouping, side by side on one scale."""
    with _matplotlib(path):
        from matplotlib.figure import Figure

        style = styles([series.name for series in panel.series])
        rows = [(2.6, count) for count in _load_rows(len(panel.series))]
        width = _LEFT + _RIGHT + max(7.0, 3.1 * max(count for _, count in rows))
        head = _TOP + _TITLE_HEIGHT + 0.65
        height = head + sum(high for high, _ in rows) + _ROW_GAP * (len(rows) - 1) + _BOTTOM
        figure = Figure(figsize=(width, height))
        figure.text(_LEFT / width, 1 - _TOP / height, title, fontsize=13, fontweight="bold", va="top")
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
    figure.savefig(path, facecolor="white", metadata=_METADATA[path.suffix.lower()])


def _load_rows(n: int) -> list[int]:
    """Axes in each row, as even as can be."""
    n_rows = math.ceil(n / _LOAD_COLUMNS)
    return [math.ceil(n / n_rows)] * n_rows


def _slots(figure: Figure, rows: Sequence[tuple[float, int]], head: float) -> Iterator[Axes]:
    """Axes row by row; a slot that is not asked for stays empty."""
    width, height = figure.get_size_inches()
    top = height - head
    for row_height, n in rows:
        gap = 0.7 if n == _COLUMNS and row_height == _PANEL_HEIGHT else 0.3
        each = (width - _LEFT - _RIGHT - gap * (n - 1)) / n
        for at in range(n):
            left = _LEFT + at * (each + gap)
            yield figure.add_axes((left / width, (top - row_height) / height, each / width, row_height / height))
        top -= row_height + _ROW_GAP


def _loads(panel: Panel, axes: Sequence[Axes], style: dict[str, Style]) -> None:
    highest = max(1.0, max(float(series.y.max()) for series in panel.series))
    first_of_row = {min(a.get_position().x0 for a in axes)}
    for at, (series, drawn) in enumerate(zip(panel.series, axes, strict=True)):
        _load_bars(drawn, panel, series, style[series.name].colour)
        drawn.set_ylim(0, 1.15 * highest)
        drawn.grid(axis="y", color=_GRID, linewidth=0.8)
        drawn.set_xlabel(panel.x.label)
        if drawn.get_position().x0 in first_of_row:
            drawn.set_ylabel(panel.y.label)
        else:
            drawn.tick_params(axis="y", labelleft=False, length=0)
        if at == 0:
            note = {"xy": (1.0, 1.0), "xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
            drawn.annotate("mean", xytext=(0, 2), ha="right", fontsize=7.5, color=_SOFT, **note)


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
    drawn.set_title(series.name, color=colour, pad=20, fontsize=11)
    drawn.annotate(
        series.note, (0, 1), xycoords="axes fraction", xytext=(0, 7), textcoords="offset points", fontsize=8, color=_SOFT
    )
    drawn.annotate(
        f"{series.y[0]:.2f}×" if series.y[0] < 100 else f"{series.y[0]:.0f}×",
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
            yerr=series.spread,
            color=look.colour,
            linestyle=(0, look.dash) if look.dash else "-",
            linewidth=1.7,
            elinewidth=0.9,
            marker="o" if few else None,
            markersize=3.5,
        )
    drawn.set_title(panel.title)
    drawn.grid(color=_GRID, linewidth=0.8)
    drawn.set_xlabel(panel.x.label)
    drawn.set_ylabel(panel.y.label)
    if not any(np.isfinite(series.y).any() for series in panel.series):
        drawn.text(0.5, 0.5, "no values", transform=drawn.transAxes, ha="center", color=_SOFT)
        drawn.set_xticks([])
        drawn.set_yticks([])
        return
    _scale(drawn.xaxis, panel.x)
    _scale(drawn.yaxis, panel.y)


def _scale(axis: DrawnAxis, spec: Axis) -> None:
    from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    if spec.log:
        axis._set_axes_scale("log")  # type: ignore[attr-defined]
    if spec.ticks:
        places, labels = zip(*spec.ticks, strict=True)
        axis.set_major_locator(FixedLocator(list(places)))
        axis.set_minor_locator(NullLocator())
        axis.set_ticklabels(list(labels))
        return
    if spec.log:
        low, high = axis.get_view_interval()
        narrow = high < 300 * low
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,), numticks=12))
        axis.set_minor_formatter(NullFormatter())
        if spec.unit is None and narrow:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if spec.unit is not None:
        axis.set_major_formatter(EngFormatter(unit=spec.unit))


def _legend_columns(style: dict[str, Style]) -> int:
    longest = max(len(name) for name in style)
    return max(1, min(len(style), int((_WIDTH - _LEFT - _RIGHT) / (0.75 + 0.075 * longest))))


def _legend(figure: Figure, style: dict[str, Style], top: float, *, with_lines: bool) -> None:
    if not with_lines:
        return
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=look.colour, linestyle=(0, look.dash) if look.dash else "-", linewidth=2.4, label=name)
        for name, look in style.items()
    ]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=((_LEFT - 0.1) / _WIDTH, top),
        ncols=_legend_columns(style),
        frameon=False,
        fontsize=9,
        handlelength=2.6,
        columnspacing=1.4,
    )
