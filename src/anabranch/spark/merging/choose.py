"""The one place that says how a query merges."""

from __future__ import annotations

from pyspark.sql import DataFrame

from anabranch.errors import ConfigError
from anabranch.spark.columns.keys import event_time
from anabranch.spark.merging.in_python import InPython
from anabranch.spark.merging.native import Natively, merges_natively
from anabranch.spark.merging.resident import Resident
from anabranch.spark.merging.slots import OnSlots
from anabranch.spark.merging.way import Merging
from anabranch.spark.merging.windows import InWindows
from anabranch.spark.settings import QuerySettings
from anabranch.spark.workers.partial_states import PartialStates


def merging_of(df: DataFrame, partial_states: PartialStates, settings: QuerySettings) -> Merging:
    """How the partial states of these rows are merged."""
    windowed = df.isStreaming and event_time(df.schema, partial_states.keys)
    if settings.regime == "resident" and windowed:
        raise ConfigError(
            "the resident regime does not know event time, because the watermark does not reach states that stay "
            "on their worker; use the batch regime with windows"
        )
    if settings.regime == "resident":
        way: type[Merging] = Resident
    elif merges_natively(partial_states):
        way = Natively
    elif windowed:
        way = InWindows
    else:
        way = OnSlots if df.isStreaming else InPython
    return way(df.schema, partial_states, settings)
