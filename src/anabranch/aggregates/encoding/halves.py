"""Sums of integers and of long decimals in two columns that cannot overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.aggregates.aggregate import StateColumn
from anabranch.aggregates.encoding.sums import MAX_PRECISION, decimals_of, halves, integer_sums, quarters
from anabranch.aggregates.groups import Groups
from anabranch.arrays import I64
from anabranch.errors import InputError
from anabranch.printable import printable

# The lower column of a decimal has so many digits: room for 10^9 tuples in it, and as many in the upper one.
_DIGITS = 9
_BASE = 10**_DIGITS
_UPPER = pa.decimal128(MAX_PRECISION, 0)


@dataclass(frozen=True)
class IntegerHalves:
    """A sum of integers as low + high · 2^32, in bigint columns."""

    def columns(self) -> tuple[StateColumn, ...]:
        """Columns of the state."""
        return (StateColumn("sum_low", pa.int64(), "sum"), StateColumn("sum_high", pa.int64(), "sum"))

    def sum(self, groups: Groups, values: pa.Array) -> tuple[pa.Array, ...]:
        """State of each group; null where all values are null."""
        present, (column,) = groups.present(values)
        high, low = halves(present.codes, column.cast(pa.int64()).to_numpy(), groups.n)
        return self._state(groups, values, low, high)

    def merge(self, groups: Groups, low: pa.Array, high: pa.Array) -> tuple[pa.Array, ...]:
        """One state per group from partial states."""
        present, columns = groups.present(low, high)
        sums = (integer_sums(present.codes, column.to_numpy(), groups.n) for column in columns)
        return self._state(groups, low, *sums)

    def whole(self, low: pa.Array, high: pa.Array) -> pa.Array:
        """The sum, for an aggregate that is built on it; an InputError where it does not fit in an int64."""
        try:
            return pc.add_checked(low, pc.multiply_checked(high, pa.scalar(2**32)))
        except pa.ArrowInvalid:
            raise InputError(
                "a sum of integers must fit in 64 bits, got a larger one; cast the column to decimal or double"
            ) from None

    def sql(self, column: str) -> str:
        """The sum: where it has more than 64 bits an error under ANSI, else wrapped around, as Spark's is."""
        high = "({sum_high} + shiftright({sum_low}, 32))"
        total = f"({high} * 4294967296L + ({{sum_low}} & 4294967295L))"
        return _checked(f"{high} NOT BETWEEN -2147483648L AND 2147483647L", total, column, "in 64 bits")

    def _state(self, groups: Groups, values: pa.Array, low: I64, high: I64) -> tuple[pa.Array, ...]:
        return _blank(groups, values, pa.array(low & 0xFFFF_FFFF), pa.array(high + (low >> 32)))


@dataclass(frozen=True)
class DecimalHalves:
    """A sum of decimals' unscaled integers as low + high · 10^9, in a bigint and a decimal column."""

    def columns(self) -> tuple[StateColumn, ...]:
        """Columns of the state."""
        return (StateColumn("sum_low", pa.int64(), "sum"), StateColumn("sum_high", _UPPER, "sum"))

    def sum(self, groups: Groups, values: pa.Array) -> tuple[pa.Array, ...]:
        """State of each group; null where all values are null."""
        present, (column,) = groups.present(values)
        return self._state(groups, values, *_divided(quarters(present.codes, column, groups.n)))

    def merge(self, groups: Groups, low: pa.Array, high: pa.Array) -> tuple[pa.Array, ...]:
        """One state per group from partial states."""
        present, (lows, highs) = groups.present(low, high)
        carried, rest = np.divmod(integer_sums(present.codes, lows.to_numpy(), groups.n), _BASE)
        words = quarters(present.codes, highs, groups.n)
        words[:, 0] += carried
        return self._state(groups, low, words, rest)

    def sql(self, column: str, scale: int) -> str:
        """The sum: where it has more than 38 digits an error under ANSI, else null, as Spark's is.

        It is put together as text, because Spark's arithmetic would round a product of 38 digits.
        """
        high, low = f"({{sum_high}} + {{sum_low}} div {_BASE})", f"({{sum_low}} % {_BASE})"
        # Both parts of a number have its sign.
        borrows = f"({high} < 0 AND {low} > 0)"
        upper = f"CAST(abs({high} + IF({borrows}, 1, 0)) AS STRING)"
        lower = f"lpad(CAST(IF({borrows}, {_BASE} - {low}, {low}) AS STRING), {_DIGITS}, '0')"
        text = f"concat(IF({high} < 0, '-', ''), {upper}, {lower}, 'E-{scale}')"
        total = f"try_cast({text} AS DECIMAL({MAX_PRECISION}, {scale}))"
        return _checked(f"{{sum_high}} IS NOT NULL AND {total} IS NULL", total, column, f"in {MAX_PRECISION} digits")

    def _state(self, groups: Groups, values: pa.Array, words: I64, low: I64) -> tuple[pa.Array, ...]:
        return _blank(groups, values, pa.array(low), decimals_of(words, _UPPER))


def _blank(groups: Groups, values: pa.Array, *columns: pa.Array) -> tuple[pa.Array, ...]:
    """The columns, with null where all values are; rows are counted once for all of them."""
    first = groups.blank(columns[0], values)
    if not first.null_count:
        return columns
    return first, *(pc.if_else(first.is_valid(), column, pa.scalar(None, column.type)) for column in columns[1:])


def _divided(words: I64) -> tuple[I64, I64]:
    """Quotient and rest of integers of four words by 10^9, rounded down."""
    quotients, rest = np.empty_like(words), np.zeros(len(words), np.int64)
    for j in reversed(range(words.shape[1])):
        quotients[:, j], rest = np.divmod((rest << 32) + words[:, j], _BASE)
    return quotients, rest


def _checked(too_large: str, total: str, column: str, room: str) -> str:
    rule = f"the sum of {printable(column)} must fit {room}, got a larger one"
    remedy = "cast the column to double, or turn spark.sql.ansi.enabled off"
    return f"CASE WHEN {{ansi}} AND {too_large} THEN raise_error({_literal(f'{rule}; {remedy}')}) ELSE {total} END"


def _literal(text: str) -> str:
    """Text as SQL writes it, with its braces doubled, because state columns are in braces."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("{", "{{").replace("}", "}}") + "'"
