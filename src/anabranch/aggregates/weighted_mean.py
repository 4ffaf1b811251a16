"""The average where some tuples count more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.aggregates.aggregate import Aggregate, StateColumn, Types
from anabranch.aggregates.binned import FixedPoint, quotients
from anabranch.aggregates.groups import Groups
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class WeightedMean(Aggregate):
    """Averages a column by weight: Σ value·weight / Σ weight.

    When to use it
    --------------
    For the volume-weighted average price of a trade, the mean rating by votes, and the like.

    Guarantees
    ----------
    Equals Spark's ``try_divide(sum(value * weight), sum(weight))`` over the tuples in which neither is null, up to the
    rounding that Spark does there and this class does not: products and sums are exact, and the quotient is rounded
    once, while weights are between 2^-75 (3e-23) and 2^128 (3e38) and products between 2^-86 (1e-26) and 2^127 (2e38).

    Parameters
    ----------
    value
        Column of integers or floats.
    weight
        Column of integers or floats. Where the weights sum to 0 the result is null.

    Examples
    --------
    >>> groups, _ = Groups.of(pa.table({"key": [1, 1]}), ["key"])
    >>> vwap = WeightedMean("price", "volume")
    >>> vwap.result(*vwap.add(groups, pa.array([10.0, 20.0]), pa.array([3, 1]))).to_pylist()
    [12.5]
    """

    value: str
    weight: str
    _products: ClassVar[FixedPoint] = FixedPoint("product", unit=-192, n_limbs=10)
    _weights: ClassVar[FixedPoint] = FixedPoint("weight")

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.value, self.weight)

    def state(self, types: Types) -> tuple[StateColumn, ...]:
        self.result_type(types)
        return (*self._products.columns(), *self._weights.columns())

    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        present, (values, weights) = groups.present(*columns)
        return (*self._products.sum_products(present, values, weights), *self._weights.sum(present, weights))

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        products, weights = states[: self._products.width], states[self._products.width :]
        return (*self._products.merge(groups, products), *self._weights.merge(groups, weights))

    def result(self, *states: pa.Array) -> pa.Array:
        products, weights = states[: self._products.width], states[self._products.width :]
        totals = self._weights.totals(weights)
        divisors = self._weights.integers(weights)
        divisors[divisors == 0] = 1
        exponent = self._products.unit - self._weights.unit
        means = quotients(self._products.integers(products), divisors, exponent)
        exact = (self._products.beyond(products) == 0) & (self._weights.beyond(weights) == 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(exact, means, self._products.totals(products) / totals)
        return pa.array(means, mask=totals == 0)

    def result_type(self, types: Types) -> pa.DataType:
        for column in self.inputs:
            if not (pa.types.is_signed_integer(types[column]) or pa.types.is_floating(types[column])):
                rule = "WeightedMean needs columns of integers or floats"
                raise ConfigError(f"{rule}, '{column}' is {types[column]}; cast it to double")
        return pa.float64()
