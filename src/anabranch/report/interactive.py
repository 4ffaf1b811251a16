"""Panels as plotly figures, ready to stand in a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.arrays import F64
from anabranch.errors import MissingExtraError
from anabranch.printable import printable
from anabranch.report.palette import Style, styles
from anabranch.report.panel import LOWEST_LOAD, Axis, Panel, Series
from anabranch.report.units import axis_number, times

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_INK = "#262626"
_SOFT = "#6B6B6B"
_GRID = "#E8E8E8"
_FONT = {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", "size": 12}
_CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtons": [["toImage", "resetScale2d"]]}
_LOAD_COLUMNS = 6
_MAX_TICKS = 6
# Over a shorter range, 1, 2 and 5 times a power of ten may mean no tick at all.
_FEW_TICKS = 5.0


def script() -> str:
    """Text of plotly's own script, to be put into the page."""
    return str(_plotlyjs()())


def _plotlyjs() -> Callable[[], str]:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingExtraError(
            "a .html page needs plotly, which is not installed; install anabranch[report]"
        ) from None
    found: Callable[[], str] = get_plotlyjs
    return found


def divisions(panels: Sequence[Panel]) -> list[str]:
    """HTML of each panel; it expects `script` to be loaded before."""
    _plotlyjs()
    style = styles(list(dict.fromkeys(series.name for panel in panels for series in panel.series)))
    made = []
    for at, panel in enumerate(panels):
        figure = _lines(panel, style) if panel.kind == "line" else _loads(panel, style)
        html = figure.to_html(full_html=False, include_plotlyjs=False, config=_CONFIG, div_id=f"panel-{at}")
        made.append(str(html))
    return made


def _layout(figure: Figure, title: str, height: int) -> None:
    figure.update_layout(
        title={"text": plain(title), "x": 0, "xref": "paper", "font": {"size": 15, "color": _INK, "weight": "bold"}},
        font={**_FONT, "color": _SOFT},
        height=height,
        margin={"l": 70, "r": 16, "t": 48, "b": 52},
        showlegend=False,
        plot_bgcolor="white",
        paper_bgcolor="white",
        hovermode="closest",
        bargap=0.15,
    )


def _loads(panel: Panel, style: dict[str, Style]) -> Figure:
    from plotly.subplots import make_subplots

    n_rows = math.ceil(len(panel.series) / _LOAD_COLUMNS)
    columns = math.ceil(len(panel.series) / n_rows)
    figure = make_subplots(
        n_rows, columns, shared_yaxes="all", horizontal_spacing=0.02, vertical_spacing=0.8 / (n_rows + 1)
    )
    for at, series in enumerate(panel.series):
        row, column = at // columns + 1, at % columns + 1
        figure.add_trace(_load_trace(panel, series, style[series.name].colour), row, column)
        side = max(0.7, (5 - len(series.x)) / 2)
        ticks = sorted({1, len(series.x)})
        figure.update_xaxes(range=[1 - side, len(series.x) + side], tickvals=ticks, row=row, col=column)
        figure.add_hline(1.0, line={"color": _INK, "width": 1, "dash": "dash"}, row=row, col=column)
        _load_texts(figure, panel, series, style[series.name].colour, (row, column))
    _layout(figure, panel.title, 130 + 210 * n_rows + 60 * (n_rows - 1))
    figure.update_layout(margin={"t": 110}, title={"y": 1, "yanchor": "top", "pad": {"t": 12}})
    figure.update_xaxes(showgrid=False, linecolor="#B0B0B0")
    figure.update_xaxes(title=plain(panel.x.label), row=n_rows)
    figure.update_yaxes(gridcolor=_GRID, zeroline=False, **_load_range(panel))
    figure.update_yaxes(title=plain(panel.y.label), col=1)
    return figure


def _load_range(panel: Panel) -> dict[str, Any]:
    highest = max(1.0, max(float(series.y.max()) for series in panel.series))
    if not panel.y.log:
        return {"range": [0, 1.15 * highest]}
    return {"type": "log", "range": [math.log10(LOWEST_LOAD), math.log10(3 * highest)], "dtick": 1}


def _load_trace(panel: Panel, series: Series, colour: str) -> Any:
    from plotly.graph_objects import Bar, Scatter

    hover = "worker %{x}<br>%{y:.3f} × mean"
    shared = {"x": series.x, "y": series.y, "name": plain(series.name), "hovertemplate": hover}
    if panel.kind == "bar":
        return Bar(marker={"color": colour, "line": {"width": 0}}, **shared)
    return Scatter(
        mode="lines", line={"shape": "hvh", "width": 0.5, "color": colour}, fill="tozeroy", fillcolor=colour, **shared
    )


def _load_texts(figure: Figure, panel: Panel, series: Series, colour: str, place: tuple[int, int]) -> None:
    """Name and note above the axis, and the highest load above its bar."""
    note = plain(series.note).replace(" · ", "<br>")
    title = f"<b style='color:{colour}'>{plain(series.name)}</b><br><span style='font-size:11px'>{note}</span>"
    at = {"xanchor": "left", "yanchor": "bottom", "align": "left", "showarrow": False, "row": place[0], "col": place[1]}
    figure.add_annotation(text=title, x=0, y=1, xref="x domain", yref="y domain", yshift=4, **at)
    top = math.log10(max(series.y[0], LOWEST_LOAD)) if panel.y.log else float(series.y[0])
    left = float(series.x[0]) - (0.4 if panel.kind == "bar" else 0.0)
    figure.add_annotation(text=f"<b>{times(series.y[0])}</b>", x=left, y=top, font={"color": _INK}, borderpad=0, **at)


def _lines(panel: Panel, style: dict[str, Style]) -> Figure:
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    few = max((len(series.x) for series in panel.series), default=0) <= 20
    for series in panel.series:
        look = style[series.name]
        figure.add_trace(
            Scatter(
                x=series.x,
                y=series.y,
                error_y=None if series.spread is None else {"array": series.spread, "thickness": 1},
                name=plain(series.name),
                mode="lines+markers" if few else "lines",
                line={"color": look.colour, "width": 2, "dash": ",".join(f"{d * 1.5}px" for d in look.dash) or "solid"},
            )
        )
    _layout(figure, panel.title, 340)
    figure.update_xaxes(**_axis(panel.x, [series.x for series in panel.series]))
    figure.update_yaxes(**_axis(panel.y, [series.y for series in panel.series]))
    if not any(np.isfinite(series.y).any() for series in panel.series):
        figure.add_annotation(text="no values", x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    return figure


def _axis(spec: Axis, values: Sequence[F64]) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "title": plain(spec.label),
        "gridcolor": _GRID,
        "zeroline": False,
        "linecolor": "#B0B0B0",
        "tickangle": 0,
    }
    ticks = spec.ticks or (_log_ticks(spec, values) if spec.log else ())
    if ticks:
        axis |= {"tickvals": [place for place, _ in ticks], "ticktext": [plain(label) for _, label in ticks]}
    if spec.log:
        axis |= {"type": "log", "exponentformat": "power"}
    if spec.from_zero:
        axis["rangemode"] = "tozero"
    if spec.unit is not None:
        axis |= {"tickformat": "~s", "ticksuffix": spec.unit, "hoverformat": ".3~s"}
    return axis


def _log_ticks(spec: Axis, values: Sequence[F64]) -> tuple[tuple[float, str], ...]:
    """Ticks at powers of ten, over a short range also at 2 and 5 times; plotly's own choice crowds small axes."""
    finite = np.concatenate([v[np.isfinite(v) & (v > 0)] for v in values]) if values else np.array([])
    if not len(finite) or finite.min() < finite.max() < _FEW_TICKS * finite.min():
        return ()
    low, high = math.floor(math.log10(finite.min())), math.ceil(math.log10(finite.max()))
    step = max(1, math.ceil((high - low) / _MAX_TICKS))
    digits = (1, 2, 5) if finite.max() < 300 * finite.min() else (1,)
    places = [float(f"{digit}e{power}") for power in range(low, high + 1, step) for digit in digits]
    return tuple((place, axis_number(place, spec.unit)) for place in places)


def plain(text: str) -> str:
    """Text that plotly shows as it stands: it reads some HTML tags in names and labels."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
