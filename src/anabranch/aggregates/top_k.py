"""The values seen most often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.aggregates.aggregate import StateColumn, Types
from anabranch.aggregates.column import ColumnAggregate
from anabranch.aggregates.encoding.lists import explode, leading
from anabranch.aggregates.encoding.order import ordered
from anabranch.aggregates.encoding.sums import integer_sums
from anabranch.aggregates.factorise import factorise, first_rows
from anabranch.aggregates.groups import Groups
from anabranch.arrays import I64
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class TopK(ColumnAggregate):
    """Finds the k most frequent values of a column, with their counts.

    When to use it
    --------------
    For trending hashtags a country or the usual pages of a visitor: a key's values repeat, and few of them matter.

    Guarantees
    ----------
    Heaviest first; of equal counts, the smaller value first. Exact while a key has at most `capacity` distinct values.
    Where it has more, each partial state drops its lightest: counts are then lower bounds, and depend on how the tuples
    were split over states.

    Parameters
    ----------
    value
        Column of numbers, times, strings, binaries or booleans; nulls are left out.
    k
        Number of values in the result, at least 1.
    capacity
        Most values that a state holds; None means 10 k, and at least 100.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"country": ["np", "np", "np"]}), ["country"])
    >>> top = TopK("tag", k=1)
    >>> top.result(*top.add(groups, pa.array(["dashain", "tihar", "tihar"]))).to_pylist()
    [[{'value': 'tihar', 'count': 2}]]
    """

    k: int
    capacity: int | None = None
    split_sensitive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"k must be at least 1, got {self.k}; use Count where no value is needed")
        if self.capacity is not None and self.capacity < self.k:
            rule = f"capacity must be at least k = {self.k}"
            raise ConfigError(f"{rule}, got {self.capacity}; leave it out for 10 k")

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        return (StateColumn("heaviest", self.result_type(types)),)

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        present, (values,) = groups.present(*columns)
        return (self._heaviest(present, values, np.ones(len(values), np.int64)),)

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        codes, pairs = explode(groups, states[0])
        values, counts = pairs.flatten()
        return (self._heaviest(Groups(codes, groups.n), values, counts.to_numpy()),)

    def result(self, *states: pa.Array) -> pa.Array:
        return pc.list_slice(states[0], 0, self.k)

    def result_type(self, types: Types) -> pa.DataType:
        type_ = self.orderable(types)
        return pa.list_(pa.struct([("value", type_), ("count", pa.int64())]))

    def _heaviest(self, groups: Groups, values: pa.Array, weights: I64) -> pa.Array:
        integers, back = ordered(values)
        pairs, n_pairs = factorise([pa.array(groups.codes), pa.array(integers)], len(values))
        counts, rows = integer_sums(pairs, weights, n_pairs), first_rows(pairs, n_pairs)
        codes, integers = groups.codes[rows], integers[rows]
        order = np.lexsort((integers, -counts, codes))
        chosen, offsets = leading(codes[order], groups.n, self.capacity or max(100, 10 * self.k))
        kept = order[chosen]
        columns = [back(integers[kept]), pa.array(counts[kept])]
        return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(columns, names=["value", "count"]))
