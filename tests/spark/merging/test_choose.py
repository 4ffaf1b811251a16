"""Which way of merging a query takes, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from anabranch.aggregates import Aggregate, Count, TopK
from anabranch.errors import ConfigError
from anabranch.groupings import Spillway
from anabranch.spark.merging.choose import merging_of
from anabranch.spark.merging.in_python import InPython
from anabranch.spark.merging.native import Natively
from anabranch.spark.merging.resident import Resident
from anabranch.spark.merging.slots import OnSlots
from anabranch.spark.merging.way import Merging
from anabranch.spark.merging.windows import InWindows
from anabranch.spark.settings import QuerySettings, Regime
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates

NATIVE, OPAQUE = Count(), TopK("v", 2)
BATCH, STREAM, WINDOWS = "batch", "stream", "windows"


def merging(rows: str, one: Aggregate, regime: Regime) -> Merging:
    metadata = {"spark.watermarkDelayMs": 1} if rows == WINDOWS else {}
    df: Any = SimpleNamespace(
        isStreaming=rows != BATCH, schema=StructType([StructField("k", LongType(), metadata=metadata)])
    )
    states = PartialStates(("k",), (BoundAggregate("n", one, one.state({"v": pa.int64()})),))
    return merging_of(df, states, QuerySettings(Spillway(), 2, "adaptive", regime=regime, keys=("k",)))


@pytest.mark.parametrize(
    ("rows", "one", "regime", "way"),
    [
        (BATCH, NATIVE, "batch", Natively),
        (BATCH, OPAQUE, "batch", InPython),
        (STREAM, NATIVE, "batch", Natively),
        (STREAM, OPAQUE, "batch", OnSlots),
        (WINDOWS, NATIVE, "batch", Natively),
        (WINDOWS, OPAQUE, "batch", InWindows),
        (STREAM, NATIVE, "resident", Resident),
        (STREAM, OPAQUE, "resident", Resident),
    ],
)
def test_every_query_has_one_way(rows: str, one: Aggregate, regime: Regime, way: type[Merging]) -> None:
    assert type(merging(rows, one, regime)) is way


@pytest.mark.parametrize("one", [NATIVE, OPAQUE])
def test_windows_do_not_stay_on_workers(one: Aggregate) -> None:
    with pytest.raises(ConfigError, match=r"the resident regime does not know event time.*use the batch regime"):
        merging(WINDOWS, one, "resident")
