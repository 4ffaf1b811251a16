"""Pictures of a run: the file's ending says which kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anabranch.errors import ConfigError
from anabranch.report import static
from anabranch.report.panel import heading, loads, panels
from anabranch.report.run_page import page
from anabranch.simulate.result import Result
from anabranch.simulate.sweeps import Cell

ENDINGS = (*static.ENDINGS, ".html")


def plot(cells: Sequence[Cell], path: str | Path) -> None:
    """Draw the cells into a file.

    Parameters
    ----------
    cells
        At least one.
    path
        ``.png``, ``.svg`` and ``.pdf`` give a picture, ``.html`` an interactive page that works offline. Missing
        folders are made.
    """
    target = _checked(cells, path, ENDINGS)
    if target.suffix.lower() == ".html":
        text = page(cells)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    else:
        static.draw(panels(cells), heading(cells), target)


def plot_loads(results: Sequence[Result], path: str | Path, title: str) -> None:
    """Draw the load per worker alone, as ``.png``, ``.svg`` or ``.pdf``: one axis a grouping, all on one scale."""
    target = _checked(results, path, static.ENDINGS)
    static.draw_loads(loads([Cell({}, (result,)) for result in results]), title, target)


def check_path(path: str | Path, endings: Sequence[str] = ENDINGS) -> Path:
    """See that the ending is one that can be drawn: to be called before a long run, not after it."""
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise ConfigError(f"a picture's file must end in {', '.join(endings)}, got {str(path)!r}; change the ending")
    return target


def _checked(drawn: Sequence[object], path: str | Path, endings: Sequence[str]) -> Path:
    if not drawn:
        raise ConfigError("a picture needs at least one result, got none; run a simulation first")
    return check_path(path, endings)
