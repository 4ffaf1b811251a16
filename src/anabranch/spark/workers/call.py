"""A call of a user's aggregate, whose mistakes become one line that names the aggregate and its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anabranch.aggregates import Aggregate, StateColumn
from anabranch.errors import InputError
from anabranch.spark.advice import type_of


@dataclass(frozen=True)
class Call:
    """A method of an aggregate, called for `n` groups.

    Parameters
    ----------
    name
        Of the aggregate's result.
    aggregate
        Whose method it is.
    method
        Its name.
    n
        Number of groups; none where the aggregate is tried on no rows.
    """

    name: str
    aggregate: Aggregate
    method: str
    n: int

    def __str__(self) -> str:
        columns = ", ".join(self.aggregate.inputs) or "no column"
        return f"aggregate {self.name} ({type(self.aggregate).__name__} of {columns}): {self.method}"

    def __call__(self, method: Callable[..., Any], *args: object) -> Any:
        """What the method returns; what it raises has this call in front."""
        try:
            return method(*args)
        except Exception as error:  # whatever a user's code raises
            remedy = "" if self.n else "; it is tried on no rows before a query starts, and must give no states then"
            raise InputError(f"{self} raised {type(error).__name__}: {error}{remedy}") from error

    def states(self, made: object, columns: Sequence[StateColumn]) -> tuple[pa.Array, ...]:
        """What the method returned, as the columns of a state."""
        if not isinstance(made, tuple | list) or len(made) != len(columns):
            got = f"{len(made)}" if isinstance(made, tuple | list) else type_of(made)
            names = ", ".join(column.name for column in columns)
            raise InputError(f"{self} must return a tuple with an array for each state column, {names}, got {got}")
        return tuple(self.array(one, column.name, column.type) for one, column in zip(made, columns, strict=True))

    def array(self, made: object, name: str, kind: pa.DataType) -> pa.Array:
        """What the method returned, as one array of this type with an entry a group."""
        if isinstance(made, pa.ChunkedArray):
            made = made.combine_chunks()
        if not isinstance(made, pa.Array):
            raise InputError(
                f"{self} must return {name} as a pyarrow.Array, got {type_of(made)}; make one by pyarrow.array(…)"
            )
        if len(made) != self.n:
            raise InputError(f"{self} must return {name} with one entry per group, {self.n} here, got {len(made)}")
        try:
            return made if made.type == kind else made.cast(kind)
        except pa.ArrowException as error:
            raise InputError(f"{self} must return {name} as {kind}, got {made.type}: {error}") from None
