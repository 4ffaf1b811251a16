"""The command line: thin modules, one per verb."""

from anabranch.cli.entry import main

__all__ = ["main"]


def __dir__() -> list[str]:
    return sorted(__all__)
