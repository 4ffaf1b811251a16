"""Hot keys of a native edge: observed by Spark's own sketches, brought to the ledger by one listener a session."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from anabranch.groupings import Report
from anabranch.spark.keys import quoted
from anabranch.spark.ledger import Ledger
from anabranch.spark.settings import Settings

_PREFIX = "anabranch "
_HOT_KEYS, _TRACKED = 1000, 10_000
_listening: WeakSet[SparkSession] = WeakSet()


def observe_hot_keys(df: DataFrame, settings: Settings) -> DataFrame:
    """Have Spark count the rows and find the hot keys on the way, for the plan of the next batch."""
    _listen(df.sparkSession)
    hashed = F.xxhash64(*(quoted(key) for key in settings.keys))
    top = F.call_function("approx_top_k", hashed, F.lit(_HOT_KEYS), F.lit(_TRACKED))
    return df.observe(_PREFIX + str(settings.ledger), F.count(F.lit(1)).alias("tuples"), top.alias("top"))


def _listen(spark: SparkSession) -> None:
    if spark not in _listening:
        spark.streams.addListener(_Listener())
        _listening.add(spark)


class _Listener(StreamingQueryListener):
    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        pass

    def onQueryProgress(self, event: Any) -> None:
        """Leave what was observed in the ledger that the observation names."""
        progress = event.progress
        for name, row in progress.observedMetrics.items():
            if name.startswith(_PREFIX):
                report = as_report(row)
                Ledger(name.removeprefix(_PREFIX)).write_report(
                    str(progress.id), progress.batchId, "observed-0", report
                )


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
