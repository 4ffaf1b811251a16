"""What aggregates of one column share: its name, and which types it may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from anabranch.aggregates.aggregate import Aggregate, Types
from anabranch.aggregates.encoding.order import is_orderable
from anabranch.errors import ConfigError


@dataclass(frozen=True)
class ColumnAggregate(Aggregate):
    """An aggregate of the column `value`."""

    value: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.value,)

    def checked(self, types: Types, accepts: Callable[[pa.DataType], bool], kinds: str, remedy: str) -> pa.DataType:
        """Type of the column, for which `accepts` must hold; `kinds` and `remedy` go into the error."""
        type_ = types[self.value]
        if not accepts(type_):
            rule = f"{type(self).__name__} needs a column of {kinds}"
            raise ConfigError(f"{rule}, '{self.value}' is {type_}; {remedy}")
        return type_

    def orderable(self, types: Types) -> pa.DataType:
        """Type of the column, whose values must have an order."""
        kinds = "numbers, times, strings, binaries or booleans"
        return self.checked(types, is_orderable, kinds, "name one of its fields")

    def integers_or_floats(self, types: Types) -> pa.DataType:
        """Type of the column, whose values must be integers or floats."""
        return self.checked(types, is_integer_or_float, "integers or floats", "cast it to double")


def is_integer_or_float(type_: pa.DataType) -> bool:
    """Whether it is one of Spark's own integers, which are signed, or a float."""
    return bool(pa.types.is_signed_integer(type_) or pa.types.is_floating(type_))
