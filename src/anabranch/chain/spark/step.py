"""A stateful step of a chain: what it computes from the state of a key and its tuples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.aggregates import Groups
from anabranch.errors import InputError
from anabranch.spark.columns.types import array_of, canonical
from anabranch.spark.workers.declared import declared

Update = Callable[[pa.Table, pa.Table], tuple[pa.Table, pa.Table]]


@dataclass(frozen=True)
class Step:
    """What a stateful step does; see `Chain.map_with_state`.

    Parameters
    ----------
    func
        From the states of keys and their tuples to their new states and the tuples that go on.
    states
        Schema of states: key columns, then what `func` keeps of each.
    sends
        Schema of the tuples that go on.
    order_by
        Columns by which tuples of a batch are ordered first.
    """

    func: Update
    states: pa.Schema
    sends: pa.Schema
    order_by: tuple[str, ...] = ()

    def ordered(self, tuples: pa.Table) -> pa.Table:
        """In an order that does not depend on how they arrived: a task that runs again must repeat itself."""
        columns = {f"o{i}": tuples[name] for i, name in enumerate(self.order_by)}
        # To a sort both zeros are equal, and so are all NaNs: their bits are not.
        columns |= {f"c{i}": _bits(array_of(column)) for i, column in enumerate(tuples.columns)}
        return tuples.take(pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns]))

    def __call__(self, keys: tuple[str, ...], states: pa.Table, tuples: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Run `func`, and hold it to what it says of itself."""
        what = f"the stateful step by {', '.join(keys)}"
        made = self.func(states, tuples)
        if not isinstance(made, tuple) or len(made) != 2:
            raise InputError(f"{what} must return two tables, states and tuples, got {type(made).__name__}")
        new, sent = declared(made[0], self.states, f"{what}, as states,"), made[1]
        n = Groups.of(tuples, keys)[0].n
        parts = [canonical(tuples.select(list(keys))), new.select(list(keys))]
        both, _ = Groups.of(pa.concat_tables(parts), keys)
        codes = both.codes[tuples.num_rows :]
        if both.n > n or len(np.unique(codes)) < len(codes):
            raise InputError(
                f"a stateful step must return one state per key of its tuples, got {len(codes)} for {n} keys"
            )
        return new, declared(sent, self.sends, f"{what}, as tuples,")


def _bits(column: pa.Array) -> pa.Array:
    if pa.types.is_floating(column.type):
        return column.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[column.type.bit_width])
    return column
