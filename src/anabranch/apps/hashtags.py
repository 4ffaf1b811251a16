"""Hashtags: how often, where and by how many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.aggregates import Aggregate, Count, DistinctCount, TopK
from anabranch.apps.app import App, Field
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class Hashtags(App):
    """Per hashtag: mentions, from how many states, the states that lead, and how many authors.

    When to use it: for posts with one row a hashtag, whose hot keys are news and change within hours.

    Guarantees
    ----------
    ``mentions`` is exact, and so is ``top_states`` while a hashtag comes from at most a hundred states. ``states`` and
    ``authors`` are estimates (HyperLogLog), the same whatever the grouping. There is no ``authors`` where the source
    has no column ``author``.

    Parameters
    ----------
    top
        States to list, at least 1.
    """

    name: ClassVar[str] = "hashtags"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("hashtag", "string", aliases=("key", "tag"), key=True),
        Field("state", "string", aliases=("place", "country")),
        Field("author", "string", aliases=("user", "member"), optional=True),
    )
    key: ClassVar[str] = "hashtag"
    heaviest: ClassVar[str] = "mentions"

    top: int = 3

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ConfigError(f"top must be at least 1, got {self.top}")

    def read(self, rows: DataFrame, columns: Mapping[str, str] | None = None) -> DataFrame:
        return super().read(rows, columns).where(F.col("hashtag").isNotNull())

    def aggregates(self, columns: list[str]) -> dict[str, Aggregate]:
        made: dict[str, Aggregate] = {
            "mentions": Count(),
            "states": DistinctCount("state"),
            "top_states": TopK("state", self.top),
        }
        return made | ({"authors": DistinctCount("author")} if "author" in columns else {})
