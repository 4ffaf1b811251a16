"""Workers: partial states of a micro-batch, vectorised over all keys of a worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.aggregates import ALL, Aggregate, Groups, StateColumn, Types, merge_states
from anabranch.errors import InputError
from anabranch.groupings import Report
from anabranch.hashing import hash_keys
from anabranch.spark.edges.packs import unpacked
from anabranch.spark.plans.ledger import KEPT_BATCHES, Ledger
from anabranch.spark.plans.unwritten import attempt, flagged
from anabranch.spark.settings import Settings
from anabranch.spark.task import Task
from anabranch.spark.workers.call import Call
from anabranch.spark.workers.own_aggregate import native_of, result_type_of

# Rows that are grouped at once: bounds a worker's memory by this and its distinct keys.
_CHUNK = 1 << 20
# Bytes that end a chunk earlier: offsets of Arrow's strings have 31 bits.
_CHUNK_BYTES = 1 << 28
# Heaviest keys that a worker reports.
_REPORTED = 1000
# Less than this measures the task's own overhead, which would make a worker with few rows look slow.
_MEASURABLE_S = 0.1
TUPLES = "__anabranch_tuples"


@dataclass(frozen=True)
class Bound:
    """An aggregate of a query: the name of its result, its state for the types at hand, and the columns it reads."""

    name: str
    aggregate: Aggregate
    columns: tuple[StateColumn, ...]
    # In the DataFrame, whose names may differ in case from those that the aggregate has; default: they do not.
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.reads:
            object.__setattr__(self, "reads", self.aggregate.inputs)

    @property
    def states(self) -> list[str]:
        """Names of the state columns in the DataFrame."""
        # A key may have any name but these.
        return [f"__anabranch_{self.name}__{column.name}" for column in self.columns]

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own aggregate, which is not taken at its word."""
        return type(self.aggregate) not in ALL

    def add(self, groups: Groups, table: pa.Table) -> tuple[pa.Array, ...]:
        """State of each group from tuples."""
        inputs = [array_of(table[name]) for name in self.reads]
        return self._states("add", groups.n, self.aggregate.add, groups, *inputs)

    def merge(self, groups: Groups, states: tuple[pa.Array, ...]) -> tuple[pa.Array, ...]:
        """State of each group from partial states."""
        return self._states("merge", groups.n, merge_states, self.aggregate, self.columns, groups, states)

    def result(self, states: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
        """What the user sees of these states, of this type."""
        if not self.is_own:
            return self.aggregate.result(*states)
        call = Call(self.name, self.aggregate, "result", len(states[0]))
        return call.array(call(self.aggregate.result, *states), self.name, kind)

    def _states(self, name: str, n: int, method: Callable[..., Any], *args: object) -> tuple[pa.Array, ...]:
        if not self.is_own:
            return tuple(method(*args))
        call = Call(self.name, self.aggregate, name, n)
        return call.states(call(method, *args), self.columns)


@dataclass(frozen=True)
class Summary:
    """From rows or partial states to partial states: what a worker and a merging task compute."""

    keys: tuple[str, ...]
    bounds: tuple[Bound, ...]
    # What states that outlive a batch are marked with; see `anabranch.spark.merging.fingerprint`.
    fingerprint: tuple[tuple[int, int], ...] = ()

    def add(self, table: pa.Table) -> pa.Table:
        """One row a key: its columns and the states of all aggregates."""
        groups, keys = Groups.of(normal(table, self.keys), self.keys)
        for bound in self.bounds:
            for name, state in zip(bound.states, bound.add(groups, table), strict=True):
                keys = keys.append_column(name, state)
        return keys.append_column(TUPLES, groups.count())

    def merge(self, partials: pa.Table) -> pa.Table:
        """One row a key from several."""
        groups, keys = Groups.of(partials, self.keys)
        for bound in self.bounds:
            states = tuple(array_of(partials[name]) for name in bound.states)
            for name, state in zip(bound.states, bound.merge(groups, states), strict=True):
                keys = keys.append_column(name, state)
        return keys.append_column(TUPLES, groups.sum(array_of(partials[TUPLES])))

    def warm_up(self, types: Types) -> None:
        """Compile the aggregates' kernels for these columns once, before many Python workers would.

        Ours get rows. A user's own may expect values that only real rows have, so they get none; a mistake that shows
        without rows ends the query here.
        """
        own = tuple(bound for bound in self.bounds if bound.is_own)
        ours = tuple(bound for bound in self.bounds if not bound.is_own)
        replace(self, bounds=ours)._try(types, 2)
        replace(self, bounds=own)._try(types, 0)

    def _try(self, types: Types, n: int) -> None:
        """Call all that tasks will call, with so many rows."""
        merged = self.merge(pa.concat_tables([self.add(_sample(types, n))] * 2))
        for bound in self.bounds:
            if native_of(bound.name, bound.aggregate, types, bound.columns) is None:
                states = [array_of(merged[name]) for name in bound.states]
                bound.result(states, result_type_of(bound.name, bound.aggregate, types))

    @property
    def columns(self) -> list[str]:
        """Names of the columns of partial states, in order."""
        return [*self.keys, *(name for bound in self.bounds for name in bound.states), TUPLES]

    @property
    def sorts(self) -> bool:
        """Whether the order of arrival would show in a state."""
        return any(bound.aggregate.order_sensitive for bound in self.bounds)

    @property
    def at_once(self) -> bool:
        """Whether it would show in a state how the rows were cut into tables."""
        return self.sorts or any(bound.aggregate.split_sensitive for bound in self.bounds)


def _sample(types: Types, n: int) -> pa.Table:
    """At most two rows of these types: numbers, and nulls for all else."""
    table = {}
    for name, kind in types.items():
        is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind)
        table[name] = pa.array([1, 2][:n]).cast(kind) if is_number else pa.nulls(n, kind)
    return pa.table(table)


class Worker:
    """The function that `mapInArrow` runs once a worker and batch.

    Parameters
    ----------
    summary
        What to compute.
    settings
        Of the query.
    """

    def __init__(self, summary: Summary, settings: Settings) -> None:
        self.summary = summary
        self.settings = settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Partial states of everything that this worker received."""
        task = Task.current()
        partial, tuples, seconds = self.summarise(batches)
        states = iter([]) if partial is None else iter(partial.drop([TUPLES]).to_batches())
        if self.settings.ledger is not None:
            states = flagged(states, lambda: self.report(task, partial, tuples, seconds))
        yield from states

    def summarise(self, batches: Iterator[pa.RecordBatch]) -> tuple[pa.Table | None, int, float]:
        """Partial states, tuples, and the seconds spent on them; waiting for input does not count."""
        partials: list[pa.Table] = []
        tuples, seconds = 0, 0.0
        for table in chunks(batches, None if self.summary.at_once else _CHUNK):
            if not tuples:
                # Loading or compiling kernels in a new Python process is not the worker's speed.
                self.summary.add(table.slice(0, 1))
            began = time.perf_counter()
            if self.settings.work_us:
                time.sleep(table.num_rows * self.settings.work_us * 1e-6)
            if self.summary.sorts:
                table = table.take(pc.sort_indices(table, [(name, "ascending") for name in _sortable(table)]))
            partials.append(self.summary.add(table))
            if len(partials) > 1 and sum(p.num_rows for p in partials) > _CHUNK:
                partials = [self.summary.merge(pa.concat_tables(partials))]
            tuples += table.num_rows
            seconds += time.perf_counter() - began
        if not partials:
            return None, 0, 0.0
        began = time.perf_counter()
        merged = self.summary.merge(pa.concat_tables(partials)) if len(partials) > 1 else partials[0]
        return merged, tuples, seconds + time.perf_counter() - began

    def report(self, task: Task, partial: pa.Table | None, tuples: int, seconds: float) -> int:
        """Leave in the ledger what this worker counted and measured; how many reports could not be written: 0 or 1."""
        return attempt(str(self.settings.ledger), lambda: self._report(task, partial, tuples, seconds))

    def _report(self, task: Task, partial: pa.Table | None, tuples: int, seconds: float) -> None:
        """The report also names the heaviest keys."""
        n = self.settings.n_workers if self.settings.edge != "local" else task.partition + 1
        worker_tuples, worker_seconds = np.zeros(n, dtype=np.int64), np.zeros(n)
        worker_tuples[task.partition] = tuples
        worker_seconds[task.partition] = seconds if seconds >= _MEASURABLE_S else 0.0
        keys, counts = _heaviest(partial, self.summary.keys)
        report = Report(
            tuples=tuples,
            worker_tuples=worker_tuples,
            worker_seconds=worker_seconds,
            hot_keys=keys,
            hot_counts=counts,
            partials=0 if partial is None else partial.num_rows,
        )
        ledger = Ledger(str(self.settings.ledger))
        ledger.write_report(task.query, task.batch, f"worker-{task.partition:06d}", report)
        if task.partition == 0:
            # Not every query has a plan task to do it.
            ledger.forget(task.query, task.batch - KEPT_BATCHES)


def chunks(batches: Iterator[pa.RecordBatch], rows: int | None) -> Iterator[pa.Table]:
    """What a worker received as tables of at least so many rows, or many bytes; as one where `rows` is None."""
    held: list[pa.RecordBatch] = []
    n = n_bytes = 0
    for batch in unpacked(batches):
        if batch.num_rows:
            held.append(batch)
            n += batch.num_rows
            n_bytes += batch.nbytes
        if rows is not None and (n >= rows or n_bytes >= _CHUNK_BYTES):
            yield pa.Table.from_batches(held)
            held, n, n_bytes = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def leaves(table: pa.Table, names: tuple[str, ...]) -> list[pa.Array]:
    """The columns with structs taken apart, as Spark hashes them: field by field."""
    out: list[pa.Array] = []
    for name in names:
        pending = [array_of(table[name])]
        while pending:
            array = pending.pop(0)
            if pa.types.is_struct(array.type):
                pending = [*array.flatten(), *pending]
            else:
                out.append(array)
    return out


def _heaviest(partial: pa.Table | None, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    none = Report()
    if partial is None:
        return none.hot_keys, none.hot_counts
    counts = partial[TUPLES].to_numpy()
    at = np.argpartition(-counts, _REPORTED)[:_REPORTED] if len(counts) > _REPORTED else np.arange(len(counts))
    top = partial.select(list(keys)).take(pa.array(at))
    try:
        hashes = hash_keys(*leaves(top, keys))
    except InputError:  # a type that only the JVM hashes: the edge goes without reports of its hot keys
        return none.hot_keys, none.hot_counts
    order = np.lexsort((hashes, -counts[at]))
    return hashes[order], counts[at][order]


def normal(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """The table with one zero and one NaN in its key columns, however deep: to Spark they are one key."""
    for key in keys:
        if _has_floats(table.schema.field(key).type):
            at = table.schema.get_field_index(key)
            table = table.set_column(at, table.schema.field(at), _normal(array_of(table[key])))
    return table


def _normal(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_floats(kind):
        return array
    if pa.types.is_floating(kind):
        positive = pc.add(array, pa.scalar(0.0, kind))
        return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), kind), positive)
    if pa.types.is_struct(kind):
        fields = [_normal(array.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    # A list: its offsets stay those of all its values, whatever part of them it shows.
    own = array.buffers()[: kind.num_buffers]
    return pa.Array.from_buffers(kind, len(array), own, offset=array.offset, children=[_normal(array.values)])


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))


def _sortable(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if not pa.types.is_nested(field.type)]


def array_of(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
