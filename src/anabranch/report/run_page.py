"""The interactive page: one HTML file that works offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from anabranch.errors import ConfigError
from anabranch.printable import printable
from anabranch.report import interactive
from anabranch.report.comparison import Row, headers, rows
from anabranch.report.headline import later_workers, speeds_text, stream_text, value_text
from anabranch.report.palette import styles
from anabranch.report.panel import Panel, heading, is_sweep, panels
from anabranch.report.units import count, duration
from anabranch.simulate.result import Result
from anabranch.simulate.sweeps import Cell

# The policy lets the page load nothing from anywhere: what it needs is in it.
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
"""

_STYLE = """
body { font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #262626;
  background: #fff; margin: 0 auto; padding: 24px 28px 48px; max-width: 1400px; }
h1 { font-size: 21px; margin: 0 0 4px; }
p.made { color: #6b6b6b; margin: 0 0 18px; }
dl { display: flex; flex-wrap: wrap; gap: 6px 28px; margin: 0 0 18px; }
dl div { display: flex; gap: 8px; }
dt { color: #6b6b6b; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; margin: 22px 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { color: #6b6b6b; font-weight: 600; text-align: right; vertical-align: bottom; padding: 4px 12px;
  border-bottom: 2px solid #d0d0d0; max-width: 7em; }
td { text-align: right; padding: 4px 12px; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr.opens td { border-top: 1px solid #d0d0d0; }
td.best { color: #00704f; font-weight: 700; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-right: 8px; }
.legend { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 6px; padding: 8px 0;
  background: #fff; }
.legend button { font: inherit; font-size: 13px; color: inherit; background: #f5f5f5; border: 1px solid #dcdcdc;
  border-radius: 14px; padding: 3px 12px; cursor: pointer; }
.legend button[aria-pressed="false"] { opacity: 0.4; text-decoration: line-through; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(380px, 100%), 1fr)); gap: 18px; }
.wide { grid-column: 1 / -1; }
.panels > div { min-width: 0; }
"""

# The first panels are drawn before the others have narrowed the grid, so each follows the size of its place.
_SWITCH = """
const follow = new ResizeObserver(places => {
  for (const place of places) Plotly.Plots.resize(place.target.querySelector(".plotly-graph-div"));
});
for (const place of document.querySelectorAll(".panels > div")) follow.observe(place);
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    for (const plot of document.querySelectorAll(".line .plotly-graph-div")) {
      const traces = plot.data.map((_, at) => at).filter(at => plot.data[at].name === button.dataset.name);
      if (traces.length) Plotly.restyle(plot, { visible: shown }, traces);
    }
  });
}
"""


def page(cells: Sequence[Cell]) -> str:
    """HTML of the whole page: the run's parameters, the comparison table and the panels.

    It holds plotly's script and refers to nothing outside itself. A click on a grouping hides its lines.
    """
    if not cells:
        raise ConfigError("a page needs at least one result, got none; run a simulation first")
    blocks = [_table(cells), pictures([cell.grouping for cell in cells], panels(cells))]
    if is_sweep(cells):
        # Its table is long; the lines say first what is in it.
        blocks.reverse()
    return document(heading(cells), _made(cells), [_parameters(cells), *blocks])


def document(title: str, made: str, blocks: Iterable[str]) -> str:
    """A page that holds plotly's script and refers to nothing outside itself.

    Parameters
    ----------
    title, made
        Texts of the heading and of the line below it.
    blocks
        HTML of the rest, as `facts`, `rows_table` and `pictures` make it.
    """
    script = interactive.script()
    title = _html(title)
    return "".join(
        (
            _HEAD,
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n<script>{script}</script>\n</head>\n<body>\n",
            f"<h1>{title}</h1>\n<p class='made'>{_html(made)}</p>\n",
            *blocks,
            f"<script>{_SWITCH}</script>\n</body>\n</html>\n",
        )
    )


def _html(text: str) -> str:
    """HTML that shows the text as it stands."""
    return escape(printable(text))


def _made(cells: Sequence[Cell]) -> str:
    repeats = max(len(cell.results) for cell in cells)
    averaged = f", averages of {repeats} repeats" if repeats > 1 else ""
    return f"Stream groupings compared by anabranch {cells[0].results[0].version}{averaged}"


def _parameters(cells: Sequence[Cell]) -> str:
    """Every parameter of the run with all its values, and those of each grouping."""
    results = [result for cell in cells for result in cell.results]
    listed = {"stream": stream_text(results)}
    listed["workers"] = _distinct(count(result.workers) + later_workers(result) for result in results)
    for name in ("sources", "tuples", "keys", "window", "rate", "seed"):
        listed[name] = _distinct(count(getattr(result, name)) for result in results)
    listed |= _settings(results)
    for cell in cells:
        own = ", ".join(f"{name}={value_text(value)}" for name, value in cell.results[0].parameters.items())
        if own:
            listed.setdefault(cell.grouping, own)
    return facts(listed)


def facts(listed: Mapping[str, str]) -> str:
    """HTML of names with their values."""
    items = "".join(f"<div><dt>{_html(k)}</dt><dd>{_html(v)}</dd></div>\n" for k, v in listed.items())
    return f"<dl>\n{items}</dl>\n"


def _settings(results: Sequence[Result]) -> dict[str, str]:
    """What the clocks and the workers were set to; nothing of what was not asked for."""
    listed = {"speeds": _distinct(speeds_text(result) for result in results)}
    listed["changes"] = _distinct(", ".join(result.settings.get("changes") or ()) for result in results)
    for name in ("service_s", "merge_s", "report_s"):
        times = [result.settings[name] for result in results if result.settings.get(name) is not None]
        listed[name.removesuffix("_s")] = _distinct(duration(seconds) for seconds in times)
    for name in ("report_noise", "source_key", "reset_loads", "edge"):
        given = [result.settings[name] for result in results if result.settings.get(name)]
        listed[name.replace("_", " ")] = _distinct("yes" if value is True else value_text(value) for value in given)
    return {name: text for name, text in listed.items() if text}


def _distinct(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _table(cells: Sequence[Cell]) -> str:
    return rows_table(headers(cells), rows(cells))


def rows_table(heads: Sequence[str], body: Sequence[Row]) -> str:
    """HTML of a table whose first column names the grouping."""
    style = styles([row.entries[0].text for row in body])
    head = "".join(f"<th>{_html(header)}</th>" for header in heads)
    lines = []
    for row in body:
        colour = style[row.entries[0].text].colour
        first = f"<td><span class='swatch' style='background:{colour}'></span>{_html(row.entries[0].text)}</td>"
        rest = "".join(f"<td{' class=best' if e.best else ''}>{_html(e.text)}</td>" for e in row.entries[1:])
        lines.append(f"<tr{' class=opens' if row.opens else ''}>{first}{rest}</tr>\n")
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>"
    return f"<div class='scroll'><table>\n{inner}</table></div>\n"


def pictures(groupings: Sequence[str], shown: Sequence[Panel]) -> str:
    """HTML of the panels, under a legend in which a click on a grouping hides its lines."""
    return _legend(groupings) + _panels(shown)


def _legend(groupings: Sequence[str]) -> str:
    style = styles(groupings)
    buttons = "".join(
        f"<button type='button' aria-pressed='true' data-name='{_html(interactive.plain(name))}'>"
        f"<span class='swatch' style='background:{look.colour}'></span>{_html(name)}</button>\n"
        for name, look in style.items()
    )
    return f"<div class='legend'>\n{buttons}</div>\n"


def _panels(shown: Sequence[Panel]) -> str:
    parts = zip(shown, interactive.divisions(shown), strict=True)
    blocks = "".join(f"<div class='{'line' if p.kind == 'line' else 'wide'}'>{html}</div>\n" for p, html in parts)
    return f"<div class='panels'>\n{blocks}</div>\n"
