"""Aggregates: summaries of a key's tuples whose partial states can be merged in any order.

One of your own is a frozen dataclass that names its inputs, the columns of its state and how Spark merges each, and
works on whole Arrow arrays with one entry per group:

>>> from dataclasses import dataclass
>>> import pyarrow as pa
>>> import pyarrow.compute as pc
>>> from anabranch.aggregates import Aggregate, Groups, StateColumn
>>> @dataclass(frozen=True)
... class Spread(Aggregate):
...     value: str
...
...     @property
...     def inputs(self):
...         return (self.value,)
...
...     def state(self, types):
...         return StateColumn("low", types[self.value], "min"), StateColumn("high", types[self.value], "max")
...
...     def add(self, groups, values):
...         return groups.min(values), groups.max(values)
...
...     def result(self, low, high):
...         return pc.subtract(high, low)
...
...     def result_type(self, types):
...         return types[self.value]
>>> trades = pa.table({"symbol": ["NABIL", "NTC", "NABIL"], "price": [500.0, 890.0, 512.5]})
>>> groups, keys = Groups.of(trades, ["symbol"])
>>> spread = Spread("price")
>>> spread.result(*spread.add(groups, trades["price"].combine_chunks())).to_pylist()
[12.5, 0.0]

`Groups` has `count`, `sum`, `min` and `max`, one entry per group; for anything else it says which group each row is in
(`codes`, `n`). What Spark merges states with is one of `MERGES`. A state that Spark cannot merge has None there, and
its class a method `merge(groups, *states)` that gives one state per group from partial states.
"""

from anabranch.aggregates.aggregate import MERGES, Aggregate, StateColumn, Types, check_merge, merge_states
from anabranch.aggregates.collect_n import CollectN
from anabranch.aggregates.count import Count
from anabranch.aggregates.distinct_count import DistinctCount
from anabranch.aggregates.extremes import Max, Min
from anabranch.aggregates.groups import Groups
from anabranch.aggregates.mean import Mean
from anabranch.aggregates.quantiles import Quantiles
from anabranch.aggregates.sum import Sum
from anabranch.aggregates.top_k import TopK
from anabranch.aggregates.variance import Variance
from anabranch.aggregates.weighted_mean import WeightedMean

# Every aggregate of the package, in the order in which documents list them.
ALL: tuple[type[Aggregate], ...] = (
    Count,
    Sum,
    Mean,
    WeightedMean,
    Variance,
    Min,
    Max,
    CollectN,
    TopK,
    DistinctCount,
    Quantiles,
)

__all__ = [
    "ALL",
    "MERGES",
    "Aggregate",
    "CollectN",
    "Count",
    "DistinctCount",
    "Groups",
    "Max",
    "Mean",
    "Min",
    "Quantiles",
    "StateColumn",
    "Sum",
    "TopK",
    "Types",
    "Variance",
    "WeightedMean",
    "check_merge",
    "merge_states",
]


def __dir__() -> list[str]:
    return sorted(__all__)
