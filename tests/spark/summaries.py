"""Every aggregate beside the plain Spark expression that it must equal, and tuples to try them on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.aggregates import (
    Aggregate,
    CollectN,
    Count,
    DistinctCount,
    Max,
    Mean,
    Min,
    Quantiles,
    Sum,
    TopK,
    Variance,
    WeightedMean,
)

from .running import Rows, double_of, rows_of


@dataclass(frozen=True)
class Case:
    """An aggregate and its like in SQL: `plain` over the rows of a key, then `finish` over what that gave.

    `exact`: Spark's arithmetic has no rounding on these tuples, so the two must agree to the last bit.
    """

    name: str
    aggregate: Aggregate
    plain: str
    finish: str = ""
    exact: bool = True


_START = dt.datetime(2026, 1, 1)
_HEAVIER = "IF(a.count != b.count, IF(a.count > b.count, -1, 1), IF(a.value < b.value, -1, 1))"
_TIMES = "CAST(size(filter(top, u -> u = v)) AS BIGINT)"
_TALLY = f"transform(array_distinct(top), v -> struct(v AS value, {_TIMES} AS count))"
_TOP = f"slice(array_sort({_TALLY}, (a, b) -> {_HEAVIER}), 1, 2)"
_DECILES = f"array({', '.join(f'percentile_disc({p}) WITHIN GROUP (ORDER BY x)' for p in (0.1, 0.5, 0.9))})"

_QUANTILES = (
    Case("deciles", Quantiles("x", (0.1, 0.5, 0.9), k=2000), _DECILES, "IF(deciles[0] IS NULL, NULL, deciles)"),
)
NATIVE = (
    Case("n", Count(), "count(1)"),
    Case("n_q", Count("q"), "count(q)"),
    Case("sum_q", Sum("q"), "sum(q)"),
    Case("sum_v", Sum("v"), "sum(v)"),
    Case("sum_x", Sum("x"), "sum(x)", exact=False),
    Case("sum_d", Sum("d"), "sum(d)"),
    Case("sum_odd", Sum("odd"), "sum(odd)"),
    Case("mean_q", Mean("q"), "avg(q)"),
    Case("mean_x", Mean("x"), "avg(x)", exact=False),
    Case("mean_d", Mean("d"), "avg(d)"),
    Case("vwap", WeightedMean("x", "q"), "try_divide(sum(x * q), sum(IF(x IS NULL, NULL, q)))", exact=False),
    Case("var_x", Variance("x"), "var_samp(x)", exact=False),
    Case("low_odd", Min("odd"), "min(odd)"),
    Case("high_odd", Max("odd"), "max(odd)"),
    Case("low_s", Min("s"), "min(s)"),
    Case("high_s", Max("s"), "max(s)"),
    Case("low_d", Min("d"), "min(d)"),
    Case("last_t", Max("t"), "max(t)"),
    Case("last_wall", Max("wall"), "max(wall)"),
    Case("day", Min("day"), "min(day)"),
    Case("ever", Max("flag"), "max(flag)"),
    Case("tags", DistinctCount("s"), "hll_sketch_estimate(hll_sketch_agg(s, 12))"),
    *(_QUANTILES if hasattr(F, "kll_merge_agg_double") else ()),
)
OPAQUE = (
    Case("few", CollectN("x", 3), "slice(sort_array(collect_list(x)), 1, 3)"),
    Case("top", TopK("s", 2), "collect_list(s)", _TOP),
    # Before 4.2 Spark has no function that merges such sketches.
    *(() if hasattr(F, "kll_merge_agg_double") else _QUANTILES),
)
# Enough to see that nothing was lost, doubled or added in another order.
FEW = tuple(case for case in NATIVE if case.name in ("n", "sum_q", "sum_x", "mean_x", "high_odd"))


def aggregates_of(cases: Sequence[Case]) -> dict[str, Aggregate]:
    """What `Balanced.aggregate` takes."""
    return {case.name: case.aggregate for case in cases}


def plain(df: DataFrame, keys: Sequence[str], cases: Sequence[Case]) -> DataFrame:
    """The answer of a plain `groupBy`."""
    summed = df.groupBy(*keys).agg(*(F.expr(case.plain).alias(case.name) for case in cases))
    finished = [F.expr(case.finish or case.name).alias(case.name) for case in cases]
    return summed.select(*(F.col(key) for key in keys), *finished)


def assert_plain(found: DataFrame, df: DataFrame, keys: Sequence[str], cases: Sequence[Case]) -> Rows:
    """Assert that a batch DataFrame holds what a plain `groupBy` gives, types too; return it by its bits."""
    wanted = plain(df, keys, cases)
    assert [(f.name, f.dataType.simpleString()) for f in found.schema] == [
        (f.name, f.dataType.simpleString()) for f in wanted.schema
    ]
    rows = rows_of(found.toArrow(), len(keys))
    assert_rows(rows, rows_of(wanted.toArrow(), len(keys)), cases)
    return rows


def assert_rows(found: Rows, wanted: Rows, cases: Sequence[Case]) -> None:
    """The same keys; the same bits where Spark's arithmetic is exact, else doubles within 1e-12."""
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        for case, value, other in zip(cases, found[key], row, strict=True):
            if case.exact or other is None:
                assert value == other, (key, case)
            else:
                assert double_of(value) == pytest.approx(double_of(other), rel=1e-12, abs=0), (key, case)


def trades(seed: int, rows: int, keys: int = 40) -> pa.Table:
    """Skewed tuples of many types, each column with nulls; keys with nulls, the empty string and beyond ASCII."""
    rng = np.random.default_rng(seed)
    names = [None, "", "hot", "हिमाल", "𝄞", "É", "E\u0301", *(f"k{i}" for i in range(keys))]
    at = np.minimum(rng.zipf(1.4, rows), len(names) - 1) if rows else np.zeros(0, int)
    x, q = rng.random(rows) * 100, rng.integers(0, 1000, rows)
    odd = rng.choice([0.0, np.nan, np.inf, -1.5, 2.25], rows, p=[0.3, 0.02, 0.02, 0.33, 0.33])
    columns = {
        "key": pa.array([names[(i + 2) % len(names)] for i in at], pa.string()),
        "x": _with_nulls(rng, x, pa.float64()),
        "v": _with_nulls(rng, np.round(x * 4) / 4, pa.float64()),
        "odd": _with_nulls(rng, odd, pa.float64()),
        "q": _with_nulls(rng, q, pa.int32()),
        "d": _with_nulls(rng, [Decimal(int(i)).scaleb(-2) for i in q - 500], pa.decimal128(10, 2)),
        "s": _with_nulls(rng, [f"#{i % 7}" for i in q], pa.string()),
        "t": _with_nulls(rng, [_START + dt.timedelta(seconds=int(i)) for i in q], pa.timestamp("us", "UTC")),
        "wall": _with_nulls(rng, [_START + dt.timedelta(hours=int(i)) for i in q], pa.timestamp("us")),
        "day": _with_nulls(rng, [_START.date() + dt.timedelta(days=int(i)) for i in q], pa.date32()),
        "flag": _with_nulls(rng, (q % 2 == 0).tolist(), pa.bool_()),
    }
    return pa.table(columns)


def _with_nulls(rng: np.random.Generator, values: Sequence[object] | np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(list(values), kind, mask=rng.random(len(values)) < 0.1)
