"""What was measured, as a table, as pictures and as a page."""

from anabranch.report.comparison import markdown, table
from anabranch.report.panel import Axis, Panel, Series, panels
from anabranch.report.pictures import plot, plot_loads
from anabranch.report.run_page import page

__all__ = ["Axis", "Panel", "Series", "markdown", "page", "panels", "plot", "plot_loads", "table"]


def __dir__() -> list[str]:
    return sorted(__all__)
