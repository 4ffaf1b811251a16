"""Prices of trades, averaged by volume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.aggregates import Aggregate, Count, Sum, WeightedMean
from anabranch.apps.app import App, Field


@dataclass(frozen=True)
class Vwap(App):
    """Per symbol: the volume-weighted average price, the trades and the volume.

    When to use it: for trades with a symbol, a price and a quantity; a few symbols have most of a day's trades.

    Guarantees
    ----------
    ``trades`` and ``volume`` are exact. ``vwap`` is Σ price·quantity / Σ quantity, summed exactly and rounded once, so
    that it does not depend on the grouping nor on the order in which trades come.
    """

    name: ClassVar[str] = "vwap"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("symbol", "string", aliases=("key", "ticker"), key=True),
        Field("price", "double", aliases=("value",)),
        Field("quantity", "bigint", aliases=("qty", "volume", "size")),
    )
    key: ClassVar[str] = "symbol"
    heaviest: ClassVar[str] = "trades"

    def read(self, rows: DataFrame, columns: Mapping[str, str] | None = None) -> DataFrame:
        return super().read(rows, columns).where(F.col("symbol").isNotNull())

    def aggregates(self, columns: list[str]) -> dict[str, Aggregate]:
        return {"vwap": WeightedMean("price", "quantity"), "trades": Count(), "volume": Sum("quantity")}
