"""The median and its like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.encoding.kll import Kll
from anabranch.aggregates.groups import Groups
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class Quantiles(ColumnAggregate):
    """Estimates quantiles of a column, with a KLL sketch.

    When to use it
    --------------
    For medians and tail latencies a key. Needs Spark 4.1.2 or later, whose ``kll_merge_agg_double`` merges the
    sketches and whose ``kll_sketch_get_quantile_double`` computes the result.

    Guarantees
    ----------
    Exact, as ``percentile_disc``, while a key has at most k values in all. Where it has more, ranks are off by about
    n/k; the sketch of a worker is the same whenever it is computed from the same values, but Spark merges large
    sketches at random, so that the last digits of a result may differ from run to run.

    Parameters
    ----------
    value
        Column of integers or floats. Nulls and NaN are left out; where nothing is left the result is null.
    probabilities
        Which quantiles: 0 is the smallest value, 0.5 the median, 1 the largest.
    k
        Accuracy, 8 to 65535: a sketch takes up to about 8 k bytes.

    Examples
    --------
    >>> Quantiles("latency", (0.5, 0.99)).native_result({"latency": pa.float64()})
    'CASE WHEN kll_sketch_get_n_double({sketch}) > 0
     THEN kll_sketch_get_quantile_double({sketch}, array(0.5D, 0.99D)) END'
    """

    probabilities: tuple[float, ...] = (0.5,)
    k: int = 200
    split_sensitive: ClassVar[bool] = True
    result_only: ClassVar[tuple[str, ...]] = ("probabilities",)

    def __post_init__(self) -> None:
        if not self.probabilities or not all(0 <= p <= 1 for p in self.probabilities):
            raise ConfigError(f"probabilities must be from 0 to 1, got {self.probabilities}; use (0.5,) for the median")
        if not 8 <= self.k <= 65535:
            raise ConfigError(f"k must be from 8 to 65535, got {self.k}; 200 has ranks right to about 1 %")

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        self.result_type(types)
        return (StateColumn("sketch", pa.binary(), "kll_merge_agg_double"),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        present, (values,) = groups.present(*columns)
        doubles = values.cast(pa.float64(), safe=False).to_numpy()
        number = ~np.isnan(doubles)
        return (Kll(self.k).of(Groups(present.codes[number], groups.n), doubles[number]),)

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        return (Kll(self.k).merge(groups, states[0]),)

    def native_result(self, types: Types) -> str | None:
        ranks = ", ".join(f"{float(p)!r}D" for p in self.probabilities)
        quantiles = f"kll_sketch_get_quantile_double({{sketch}}, array({ranks}))"
        return f"CASE WHEN kll_sketch_get_n_double({{sketch}}) > 0 THEN {quantiles} END"

    def result_type(self, types: Types) -> pa.DataType:
        self.integers_or_floats(types)
        return pa.list_(pa.float64())
