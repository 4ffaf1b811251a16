"""What was measured, as a table, as pictures and as a page."""

from anabranch.report.page import page
from anabranch.report.panels import Axis, Panel, Series, panels
from anabranch.report.plot import plot, plot_loads
from anabranch.report.table import markdown, table

__all__ = ["Axis", "Panel", "Series", "markdown", "page", "panels", "plot", "plot_loads", "table"]


def __dir__() -> list[str]:
    return sorted(__all__)
