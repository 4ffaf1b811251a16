"""What a run has to say to its user, a line at a time."""

from __future__ import annotations

from collections.abc import Callable

Note = Callable[[str], object]
"""Takes a line."""


def silent(_: str) -> None:
    """Say nothing."""
    return None
