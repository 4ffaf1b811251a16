"""Places and hashtags: two operators in a row, whose correlated keys come to share servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.aggregates import Aggregate, Count, DistinctCount, TopK
from anabranch.apps.app import App, Field
from anabranch.apps.balancing import DEFAULT_GROUPING, Balancing
from anabranch.chain import Manager, Reconfiguration, chain
from anabranch.chain.spark.metrics import chain_metrics
from anabranch.errors import ConfigError
from anabranch.spark.progress import BatchMetrics


@dataclass(frozen=True)
class GeoTrends(App):
    """Per location and then per hashtag: posts, how many of the others they come with, and those that lead.

    When to use it: for posts with a location and one row a hashtag. Posts go to the worker of their location and on to
    that of their hashtag; routing tables bring hashtags to the host of the location that uses them. Hot hashtags are on
    every host, and their posts stay where they are.

    Guarantees
    ----------
    ``posts`` is exact, and so is ``leading`` while a trend comes with at most a hundred others. ``others`` is an
    estimate (HyperLogLog). All of them are the same whatever the tables. A post without a location counts for the
    location ``unknown``, one without a hashtag not at all.

    Parameters
    ----------
    top
        Others to list, at least 1.
    every
        Batches from one decision about tables to the next.
    """

    name: ClassVar[str] = "geo-trends"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("location", "string", aliases=("state", "place", "country", "region")),
        Field("hashtag", "string", aliases=("tag", "key"), key=True),
    )
    key: ClassVar[str] = "trend"
    heaviest: ClassVar[str] = "posts"

    top: int = 3
    every: int = 10

    def __post_init__(self) -> None:
        if self.top < 1:
            raise ConfigError(f"top must be at least 1, got {self.top}")
        Reconfiguration(every=self.every)

    def read(self, rows: DataFrame, columns: Mapping[str, str] | None = None) -> DataFrame:
        found = super().read(rows, columns).where(F.col("hashtag").isNotNull())
        return found.withColumn("location", F.coalesce("location", F.lit("unknown")))

    def aggregates(self, columns: list[str]) -> dict[str, Aggregate]:
        """Those of hashtags; locations have the same, the other way round."""
        return _aggregates("location", self.top)

    def check(self, balancing: Balancing, *, once: bool = False) -> None:
        if balancing.grouping != DEFAULT_GROUPING or balancing.edge not in (None, "adaptive"):
            raise ConfigError(f"{self.name} routes by tables of its own; leave --grouping and --edge out")
        if balancing.work_us:
            raise ConfigError(f"{self.name} emulates no work; leave --work-us out")
        if once and balancing.flush_every > 1:
            raise ConfigError(
                f"a bounded run of {self.name} would leave states on its workers that are in no answer; with --once, "
                "leave --flush-every out"
            )

    def identity(self, balancing: Balancing) -> dict[str, Any]:
        """With the workers, which hold the states, and the seed, which says where."""
        return {**super().identity(balancing), "workers": balancing.n_workers, "seed": balancing.seed}

    def build(self, tuples: DataFrame, balancing: Balancing) -> DataFrame:
        """One row a location and one a hashtag, which ``trend`` tells apart: ``location NY``, ``hashtag jobs``."""
        self.check(balancing)
        begun = chain(
            tuples,
            balancing.n_workers,
            ledger=balancing.ledger,
            flush_every=balancing.flush_every,
            seed=balancing.seed,
            reconfiguration=None if balancing.ledger is None else self._reconfiguration(),
        )
        placed = begun.then("location", **_aggregates("hashtag", self.top))
        answers = placed.then("hashtag", **_aggregates("location", self.top)).answers()
        kinds = ("location", "hashtag")
        columns = ("posts", "others", "leading")
        either = [F.coalesce(*(F.col(f"{kind}.{name}") for kind in kinds)).alias(name) for name in columns]
        names = F.coalesce(*(F.col(f"{kind}.{kind}") for kind in kinds))
        return answers.select(F.concat_ws(" ", F.col("operator"), names).alias(self.key), *either)

    def _reconfiguration(self) -> Reconfiguration:
        return Reconfiguration(every=self.every, manager=Manager(1, method="greedy", split=True))

    def metrics(self, ledger: str, progress: Mapping[str, Any]) -> BatchMetrics | None:
        return chain_metrics(ledger, progress)


def _aggregates(other: str, top: int) -> dict[str, Aggregate]:
    return {"posts": Count(), "others": DistinctCount(other), "leading": TopK(other, top)}
