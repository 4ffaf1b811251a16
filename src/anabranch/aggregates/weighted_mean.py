"""The average where some tuples count more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.aggregates.aggregate import Aggregate, StateColumn, Types
from anabranch.aggregates.encoding.binned import FixedPoint, finite_or, quotients
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
    Others are summed as `Sum` does. A product that is itself beyond doubles is infinite.

    Parameters
    ----------
    value
        Column of numbers. The mean is a double; decimals are read as the nearest doubles.
    weight
        Column of numbers. Where the weights sum to 0 the result is null.

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
        numerators, product_unit = self._products.exact(products)
        divisors, weight_unit = self._weights.exact(weights)
        special, weight = self._products.special(products), self._weights.special(weights)
        empty = (divisors == 0) & (weight == 0)
        divisors[divisors == 0] = 1
        means = quotients(numerators, divisors, product_unit - weight_unit)
        with np.errstate(divide="ignore", invalid="ignore"):
            infinite = finite_or(special, means) / finite_or(weight, np.sign(divisors).astype(np.float64))
        return pa.array(np.where((special == 0) & (weight == 0), means, infinite), mask=empty)

    def result_type(self, types: Types) -> pa.DataType:
        for column in self.inputs:
            checks = (pa.types.is_signed_integer, pa.types.is_floating, pa.types.is_decimal)
            if not any(check(types[column]) for check in checks):
                rule = "WeightedMean needs columns of numbers"
                raise ConfigError(f"{rule}, '{column}' is {types[column]}; cast it to double")
        return pa.float64()
