"""The command line: thin modules, one a verb."""

from anabranch.cli.main import main

__all__ = ["main"]
