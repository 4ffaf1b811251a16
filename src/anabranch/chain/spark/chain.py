"""`chain`: operators in a row, each with its own key, whose correlated keys share servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType, _parse_datatype_string

from anabranch.aggregates import Aggregate, Types
from anabranch.chain.planning import PairCounts, Placement
from anabranch.chain.spark import steering
from anabranch.chain.spark.aggregator import BLOBS, MergeAll, Tag
from anabranch.chain.spark.edge import ROWS, Enter
from anabranch.chain.spark.operator import Operate
from anabranch.chain.spark.remember import Remember
from anabranch.chain.spark.settings import Function, Operator, Reconfiguration, TaskSettings, identity
from anabranch.chain.spark.step import Step, Update
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import TableGrouping
from anabranch.location import absolute
from anabranch.spark.balanced import types_of
from anabranch.spark.columns.keys import (
    check_collation,
    check_key,
    check_names,
    each_key,
    event_time,
    folding,
    quote,
    quoted,
)
from anabranch.spark.columns.types import arrow_of, spark_of
from anabranch.spark.edges.adaptive import load
from anabranch.spark.listener import listen
from anabranch.spark.merging import fingerprint
from anabranch.spark.merging.output_mode import running_totals
from anabranch.spark.merging.results import is_ansi, results_within
from anabranch.spark.merging.slots import on_slots
from anabranch.spark.merging.way import partial_schema
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.requirements import check_dataframe, check_state_store
from anabranch.spark.workers.own_aggregate import state_of
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates

OPERATOR = "operator"


def chain(
    df: DataFrame,
    n_workers: int = 16,
    *,
    ledger: str | None = None,
    flush_every: int = 1,
    seed: int = 0,
    reconfiguration: Reconfiguration | None = None,
    placement: Placement | None = None,
) -> Chain:
    """Send the rows of `df` through stateful operators in a row, each with its own key.

    Every operator has `n_workers` workers, which keep the states of their keys and pass tuples on to the next operator.
    With a ledger, the workers count which keys follow each other, and every so many batches a manager moves correlated
    keys to workers of the same host, so that fewer tuples cross the network. The answers stay those of plain `groupBy`.

    Parameters
    ----------
    df
        A streaming or batch DataFrame.
    n_workers
        Workers of each operator; see `anabranch.spark.balance` for the default.
    ledger
        Folder, reachable from all tasks, for what workers report and for the tables; without it nothing is learned.
    flush_every
        Batches that states stay with their worker before they are merged into the answers of a stream. Take 1 for a
        bounded query (`availableNow`): with more, the answers lack what was not flushed when it ended.
    seed
        Of the hash functions.
    reconfiguration
        When and how tables change.
    placement
        Tables to start with, planned beforehand for `n_workers` servers; default: every key by hash.

    Examples
    --------
    ``chain(posts, ledger="state/ledger").then("region", posts=Count()).then("tag", posts=Count()).answers()``

    References
    ----------
    Caneill et al., "Locality-aware routing in stateful streaming applications" (Middleware 2016). The paper hands the
    state of a key that moves from one worker to the other. In a micro-batch there is no way back from one worker to
    another: aggregates merge the state into the answers and start anew, and only the state of a stateful step travels,
    from one batch to the next.
    """
    check_dataframe(df)
    if reconfiguration is not None and ledger is None:
        raise ConfigError("reconfiguration needs a ledger, without which nothing is learned; name a folder for it")
    settings = TaskSettings(
        # `answers` counts them.
        2,
        n_workers,
        # Tasks run in folders of their own.
        ledger and absolute(ledger),
        flush_every,
        seed,
        reconfiguration or Reconfiguration(),
    )
    return Chain(df, settings, placement)


@dataclass(frozen=True)
class _Stage:
    """One `then`, and the maps after it."""

    name: str
    partial_states: PartialStates
    types: Types
    schema: StructType
    maps: tuple[tuple[Function, StructType], ...] = ()
    step: Step | None = None
    steps_to: StructType | None = None

    @property
    def meaning(self) -> list[Any]:
        """What its states mean, for their fingerprint."""
        keys = {key: arrow_of(self.schema[key].dataType) for key in self.partial_states.keys}
        kept = (
            [] if self.step is None else [[each.name, spark_of(each.type).simpleString()] for each in self.step.states]
        )
        return [self.name, fingerprint.of_states(self.partial_states, {**self.types, **keys}, str), kept]

    @property
    def sends(self) -> StructType:
        """Schema of the tuples that leave it."""
        return self.maps[-1][1] if self.maps else self.steps_to or self.schema


@dataclass(frozen=True)
class Chain:
    """Operators in a row; made by `chain`. Add operators with `then` and steps with `map`, and take the `answers`."""

    df: DataFrame
    settings: TaskSettings
    placement: Placement | None = None
    stages: tuple[_Stage, ...] = field(default=())

    def then(self, key: str | Sequence[str], operator: str | None = None, /, **aggregates: Aggregate) -> Chain:
        """Add an operator that aggregates.

        Parameters
        ----------
        key
            Its key column or columns.
        operator
            Name of its answers; default: its key columns.
        **aggregates
            What it computes for each key, as in `Balanced.aggregate`.
        """
        schema = self.stages[-1].sends if self.stages else self.df.schema
        keys = _keys(schema, key)
        types, reads = types_of(schema, keys, aggregates, folding(self.df.sparkSession))
        bounds = tuple(
            BoundAggregate(each, one, state_of(each, one, types), reads[each]) for each, one in aggregates.items()
        )
        name = operator or "_".join(keys)
        check_names([read for names in reads.values() for read in names])
        return self._with(_Stage(name, PartialStates(keys, bounds), types, schema))

    def map_with_state(
        self,
        key: str | Sequence[str],
        func: Update,
        schema: StructType | str,
        *,
        state: StructType | str,
        order_by: str | Sequence[str] = (),
        operator: str | None = None,
    ) -> Chain:
        """Add a stateful step: what becomes of a tuple depends on the tuples of its key before it.

        The state of a key, such as a model, is on one worker at any time. Where new tables move the key, its state
        travels: for this operator they take effect a batch later, and the new worker has the state before it sees a
        tuple. A step has no answers of its own.

        Parameters
        ----------
        key
            Its key column or columns.
        func
            From (states, tuples) to (states, tuples), all tables. It gets the states of those keys of the tuples that
            have one, and returns the states to keep, at most one per key, and the tuples that go on. It must depend on
            nothing else: Spark may run it again.
        schema
            Of the tuples that `func` returns; the key columns must be among it.
        state
            Columns of a state, besides the key.
        order_by
            Columns by which the tuples of a batch are ordered; ties, by all columns, so that the order in which Spark
            delivers rows does not show.
        operator
            Its name in reports; default: its key columns and "state".
        """
        before = self.stages[-1].sends if self.stages else self.df.schema
        keys = _keys(before, key)
        kept, sends = _table(state), _table(schema)
        _check_keys(keys, sends)
        check_names([*kept.names, *before.names])
        order_by = (order_by,) if isinstance(order_by, str) else tuple(order_by)
        for name in {*keys} & {*kept.names}:
            raise ConfigError(f"state has the key's columns without being told; leave {name} out of state")
        for name in {*order_by} - {*before.names}:
            raise InputError(f"order_by has column {name}, which is not there; there are {', '.join(before.names)}")
        for name in order_by:
            check_collation(f"column {name} of order_by", before[name].dataType)
        for one in before:
            if isinstance(one.dataType, ArrayType | MapType | StructType):
                raise ConfigError(
                    f"column {one.name} of a stateful step cannot be ordered; leave it out, or flatten it"
                )
        states = _arrow(StructType([*(before[name] for name in keys), *kept]))
        step = Step(func, states, _arrow(sends), order_by)
        name = operator or "_".join([*keys, "state"])
        return self._with(_Stage(name, PartialStates(keys, ()), {}, before, step=step, steps_to=sends))

    def _with(self, stage: _Stage) -> Chain:
        name, keys = stage.name, stage.partial_states.keys
        fold = folding(self.df.sparkSession)
        if fold(name) in (OPERATOR, *(fold(stage.name) for stage in self.stages)):
            raise ConfigError(f"operator {name} has a name that is taken; give it another: then(key, name, …)")
        check_names([name, *keys])
        if event_time(stage.schema, keys):
            raise ConfigError(f"key {', '.join(keys)} carries a watermark, which does not reach states on workers")
        return replace(self, stages=(*self.stages, stage))

    def map(self, func: Function, schema: StructType | str) -> Chain:
        """Add a stateless step: the workers of the operator before run it on tuples before they send them on.

        Parameters
        ----------
        func
            From a table of tuples to a table of tuples. What becomes of a tuple must not depend on the others.
        schema
            Of what `func` returns; the key columns of the operator before must be among it.
        """
        if not self.stages:
            raise ConfigError("map comes after an operator; before the first one, transform the DataFrame itself")
        last, parsed = self.stages[-1], _table(schema)
        _check_keys(last.partial_states.keys, parsed)
        return replace(self, stages=(*self.stages[:-1], replace(last, maps=(*last.maps, (func, parsed)))))

    def answers(self) -> DataFrame:
        """Rows of all operators: ``operator`` says whose a row is, and the column of that name holds it as a struct.

        Of a stream, the rows that a micro-batch changed: it is one query, with one checkpoint, in update mode.
        `answers_of` gives those of one operator.
        """
        # A batch DataFrame has no later batch for states to stay for.
        flush_every = self.settings.flush_every if self.df.isStreaming else 1
        operators = self._operators()
        settings = replace(
            self.settings, n_operators=len(self.stages), placement=self.placement, flush_every=flush_every
        )
        if self.df.isStreaming:
            settings = replace(settings, steps=tuple(i for i, one in enumerate(operators) if one.step is not None))
        check_state_store(self.df.sparkSession)
        if settings.ledger is not None:
            Ledger(settings.ledger).claim(identity(settings, operators))
        self._warm_up(settings)
        rows = steering.behind_tables(self.df.select(*map(quoted, operators[0].columns)), settings)
        rows = rows.mapInArrow(Enter(operators[0], settings).__call__, ROWS)
        for number in range(len(operators)):
            worker = Operate if operators[number].step is None else Remember
            rows = on_slots(rows, worker(operators, number, settings), ROWS)
        merged = running_totals(on_slots(rows, MergeAll(operators), BLOBS))
        return self._results(merged)

    def _operators(self) -> tuple[Operator, ...]:
        """With the columns that each has to get: its own, and what later ones need."""
        if self.stages and (self.stages[-1].maps or self.stages[-1].step):
            raise ConfigError(
                "a map must come before an operator, and here it is the last; leave it out, or add .then(…)"
            )
        operators: list[Operator] = []
        later: tuple[str, ...] = ()
        marks: fingerprint.Digits = ()
        if self.df.isStreaming:
            listen(self.df.sparkSession)
            marks = fingerprint.digits([stage.meaning for stage in self.stages])
        for stage in reversed(self.stages):
            inputs = [name for bound in stage.partial_states.bounds for name in bound.reads]
            needed = {*stage.partial_states.keys, *inputs, *(stage.schema.names if stage.maps or stage.step else later)}
            later = tuple(name for name in stage.schema.names if name in needed)
            check_names(later)
            between = tuple((func, _arrow(schema)) for func, schema in stage.maps)
            partial_states = replace(stage.partial_states, fingerprint=marks)
            operators.append(Operator(stage.name, partial_states, later, between, stage.step))
        return tuple(reversed(operators))

    def _warm_up(self, settings: TaskSettings) -> None:
        """Compile kernels once, here: on one machine all Python workers then find them compiled."""
        load(TableGrouping(np.arange(4, dtype=np.uint64), np.zeros(4, np.int32)), settings.n_workers)
        PairCounts(4).update(*np.zeros((2, 4), dtype=np.uint64))
        for stage in self.stages:
            keys = {key: arrow_of(stage.schema[key].dataType) for key in stage.partial_states.keys}
            if stage.step is None:
                stage.partial_states.warm_up({**stage.types, **keys})
        if settings.ledger is not None:
            steering.warm_up(settings)

    def _results(self, merged: DataFrame) -> DataFrame:
        answering = {i: stage for i, stage in enumerate(self.stages) if stage.step is None}
        stages = list(answering.values())
        partials = [partial_schema(stage.schema, stage.partial_states) for stage in stages]
        fields = [StructField(stage.name, kind) for stage, kind in zip(stages, partials, strict=True)]
        schema = StructType([StructField(OPERATOR, StringType()), *fields])
        columns = {number: at for at, number in enumerate(answering, start=1)}
        tagged = merged.mapInArrow(Tag(_arrow(schema), columns).__call__, schema)
        ansi = is_ansi(merged.sparkSession)
        results = [results_within(stage.name, stage.partial_states, stage.types, ansi) for stage in stages]
        return tagged.select(quoted(OPERATOR), *results)


def answers_of(rows: DataFrame, operator: str) -> DataFrame:
    """Answers of one operator, as columns: what `groupBy(key).agg(…)` would give."""
    names = rows.columns[1:]
    if operator not in names:
        raise ConfigError(f"operator must be one that has answers, {', '.join(names)}, got {operator!r}")
    return rows.where(F.col(OPERATOR) == operator).select(f"{quote(operator)}.*")


def _keys(schema: StructType, key: str | Sequence[str]) -> tuple[str, ...]:
    """Key columns, checked; expressions are not allowed, because later operators read Arrow tables."""
    names = []
    for name in each_key(key):
        if isinstance(name, Column):
            raise ConfigError(f"key {name} must be text that names a column; make it a column before the chain")
        if name not in schema.names:
            raise InputError(f"key {name} is not a column; there are {', '.join(schema.names)}")
        check_key(name, schema[name].dataType)
        names.append(name)
    return tuple(names)


def _table(schema: StructType | str) -> StructType:
    parsed = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed, StructType):
        raise ConfigError(f"schema must name columns, as in 'mean double', got {schema!r}")
    return parsed


def _check_keys(keys: tuple[str, ...], schema: StructType) -> None:
    missing = [key for key in keys if key not in schema.names]
    if missing:
        raise ConfigError(
            f"schema must hold the key columns of the operator before, for pairs of keys are counted; "
            f"{', '.join(missing)} is missing"
        )


def _arrow(schema: StructType) -> pa.Schema:
    return pa.schema([(each.name, arrow_of(each.dataType)) for each in schema])
