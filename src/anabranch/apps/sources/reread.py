"""What is found when a batch is read again for its malformed rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Reread:
    """The malformed rows of a batch that was read again.

    Parameters
    ----------
    rows
        With ``reason``, ``value``, ``key`` and where each is from; a batch DataFrame.
    gone
        What of the batch is not there any more, in words; nothing where all is.
    most
        Rows that are gone, at most; None where that is not known.
    """

    rows: DataFrame
    gone: str = ""
    most: int | None = None
