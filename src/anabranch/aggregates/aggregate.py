"""The contract: partial states that can be merged in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from anabranch.aggregates.groups import Groups
from anabranch.errors import ConfigError

Types = Mapping[str, pa.DataType]
# Merges that `Groups` and Spark do alike.
_ALGEBRAIC = ("sum", "min", "max")
# Aggregate functions of Spark that merge themselves: over the results for the parts they give that for the whole.
MERGES = (
    *_ALGEBRAIC,
    *("product", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "every", "some"),
    *("bitmap_and_agg", "bitmap_or_agg", "hll_union_agg", "theta_union_agg"),
    *("kll_merge_agg_bigint", "kll_merge_agg_float", "kll_merge_agg_double"),
    *("tuple_union_agg_double", "tuple_union_agg_integer"),
)


def check_merge(column: str, function: str) -> None:
    """Raise ConfigError for a function, such as avg or count, that gives another answer where a key is split."""
    if function not in MERGES:
        raise ConfigError(
            f"merge of {column}: {function} of the parts of a split key is not {function} of the whole; "
            f"it must be one of {', '.join(MERGES)}. An average is a sum and a count, divided in the end"
        )


@dataclass(frozen=True)
class StateColumn:
    """One column of a partial state.

    Parameters
    ----------
    name
        An identifier, unique within the aggregate.
    type
        Arrow type. Spark's sum of decimals is wider than its terms: who merges in Spark casts the column back to it.
    merge
        The aggregate function with which Spark merges states, one of `MERGES`: "sum", "min", "max", "bit_or",
        "hll_union_agg", …; None where only the aggregate's own `merge` can. Spark adds up doubles as they come, so that
        the last bits of a double merged by "sum" are not the same in every run.
    """

    name: str
    type: pa.DataType
    merge: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise ConfigError(f"the name of a state column must be an identifier, such as sum_low, got {self.name!r}")
        if not isinstance(self.type, pa.DataType):
            raise ConfigError(
                f"the type of state column {self.name} must be a pyarrow.DataType, got {self.type!r}; "
                "write one such as pa.int64()"
            )
        if self.merge is not None:
            check_merge(self.name, self.merge)


class Aggregate(ABC):
    """Summarises the tuples of a key in a state that can be split over workers and merged again.

    A concrete aggregate is a frozen dataclass that names its input columns. It works on whole Arrow arrays: `groups`
    says which group (key) each row belongs to, and every array that enters or leaves the state has one entry per group.

    Guarantees
    ----------
    The state of a group does not depend on the order in which its tuples came, nor on how they were split into partial
    states. A class that cannot promise that says so: `split_sensitive` ones get all rows of a worker in one `add`, and
    `order_sensitive` ones get them sorted as well.

    Notes
    -----
    On Spark the methods are called at these places:

    - In the driver, before the query starts: `inputs`, `state`, `result_type` and `native_result`. Then `add`, `merge`
      and `result` are tried on no rows, which compiles kernels and shows mistakes; they must return arrays without
      entries.
    - In the task of a worker, in every batch: `add` on the first row alone, to load what it needs (that state is not
      used), and then on all rows, about a million at a time. `merge` where there was more than one such part.
    - In a task of the aggregator, in every batch: `merge`, unless Spark merges the state, and `result`, unless
      `native_result` says how Spark computes it. In the resident regime Spark merges nothing.

    A task may run again, so the methods must not have side effects. What a class of a user's own raises, or returns
    wrongly, becomes an `InputError` that names the aggregate and its columns.
    """

    split_sensitive: ClassVar[bool] = False
    order_sensitive: ClassVar[bool] = False
    # Parameters that only `result` looks at: a query may go on from its checkpoint with other values.
    result_only: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of the input columns, in the order in which `add` takes them."""

    @abstractmethod
    def state(self, types: Types) -> tuple[StateColumn, ...]:
        """Columns of the state for inputs of these types. A type that cannot be aggregated is a ConfigError."""

    @abstractmethod
    def add(self, groups: Groups, *columns: pa.Array) -> tuple[pa.Array, ...]:
        """State of each group from the tuples; the first call for a group, so it starts at zero."""

    def merge(self, groups: Groups, *states: pa.Array) -> tuple[pa.Array, ...]:
        """One state per group from partial states; row i belongs to group ``groups.codes[i]``.

        Only needed where `state` names something else than sum, min and max, or where the merged state should have a
        form of its own; see `merge_states`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define merge: its state has other merges than {_ALGEBRAIC}"
        )

    def result(self, *states: pa.Array) -> pa.Array:
        """What the user sees, one entry per group. Not called where `native_result` says how Spark computes it."""
        if type(self).native_result is not Aggregate.native_result:
            raise NotImplementedError(
                f"only Spark computes the result of {type(self).__name__}; an aggregate that is built on it returns "
                f"the SQL of its native_result, or a part of it, from a native_result of its own"
            )
        raise NotImplementedError(f"{type(self).__name__} must define result or native_result")

    def native_result(self, types: Types) -> str | None:
        """A SQL expression with state columns in braces, as in "hll_sketch_estimate({sketch})"; None: use `result`.

        ``{ansi}`` is TRUE where the session's ``spark.sql.ansi.enabled`` is on, else FALSE.
        """
        columns = self.state(types)
        overridden = type(self).result is not Aggregate.result
        return f"{{{columns[0].name}}}" if len(columns) == 1 and not overridden else None

    @abstractmethod
    def result_type(self, types: Types) -> pa.DataType:
        """Arrow type of the result."""


def merge_states(
    aggregate: Aggregate, columns: tuple[StateColumn, ...], groups: Groups, states: tuple[pa.Array, ...]
) -> tuple[pa.Array, ...]:
    """Merge partial states in Python: by the aggregate's own `merge` where it has one, else as the columns say."""
    if type(aggregate).merge is not Aggregate.merge or any(column.merge not in _ALGEBRAIC for column in columns):
        return aggregate.merge(groups, *states)
    merges = {"sum": groups.sum, "min": groups.min, "max": groups.max}
    return tuple(
        # A sum of decimals has more digits than its terms.
        merges[str(column.merge)](state).cast(column.type)
        for column, state in zip(columns, states, strict=True)
    )
