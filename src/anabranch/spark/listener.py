"""One listener a session, for what is observed on native edges and for queries that must not go on."""

from __future__ import annotations

import logging
from typing import Any
from weakref import WeakSet

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from anabranch.groupings import Report
from anabranch.spark.columns.keys import quoted
from anabranch.spark.merging.fingerprint import refusal
from anabranch.spark.merging.output_mode import end_appending
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.plans.unwritten import attempt
from anabranch.spark.settings import QuerySettings

_PREFIX = "anabranch "
_HOT_KEYS, _TRACKED = 1000, 10_000
log = logging.getLogger(__name__)
_listening: WeakSet[SparkSession] = WeakSet()


def observe_hot_keys(df: DataFrame, settings: QuerySettings) -> DataFrame:
    """Have Spark count the rows and find the hot keys on the way, for the plan of the next batch."""
    listen(df.sparkSession)
    hashed = F.xxhash64(*(quoted(key) for key in settings.keys))
    top = F.call_function("approx_top_k", hashed, F.lit(_HOT_KEYS), F.lit(_TRACKED))
    return df.observe(_PREFIX + str(settings.ledger), F.count(F.lit(1)).alias("tuples"), top.alias("top"))


def listen(spark: SparkSession) -> None:
    """Have the session's queries listened to."""
    if spark not in _listening:
        listener = _Listener()
        listener.spark = spark
        spark.streams.addListener(listener)
        _listening.add(spark)


class _Listener(StreamingQueryListener):
    def onQueryStarted(self, event: Any) -> None:
        """Have no query append running totals."""
        if self.spark is not None:
            end_appending(self.spark, event)

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        """Say in one line what Spark takes many for: that a checkpoint is another query's."""
        why = refusal(event.exception or "")
        if why is not None:
            log.error("query %s was not started: %s", event.id, why)

    def onQueryProgress(self, event: Any) -> None:
        """Leave what was observed in the ledger that the observation names."""
        progress = event.progress
        for name, row in progress.observedMetrics.items():
            if name.startswith(_PREFIX):
                _leave(name.removeprefix(_PREFIX), str(progress.id), progress.batchId, as_report(row))


def _leave(ledger: str, query: str, batch: int, report: Report) -> None:
    attempt(ledger, lambda: Ledger(ledger).write_report(query, batch, "observed-0", report))


def as_report(row: Any) -> Report:
    """An observed row as a report. Over Spark Connect nested rows arrive as values with a schema of their own."""
    pairs = [_pair(item) for item in row["top"] or ()]
    return Report(
        tuples=int(row["tuples"]),
        hot_keys=np.array([key for key, _ in pairs], dtype=np.int64).view(np.uint64),
        hot_counts=np.array([count for _, count in pairs], dtype=np.int64),
    )


def _pair(item: Any) -> tuple[int, int]:
    values = item["values"] if "values" in getattr(item, "__fields__", ()) else item
    return int(values[0]), int(values[1])
