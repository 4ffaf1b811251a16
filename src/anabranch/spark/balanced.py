"""`balance`: a skewed keyed DataFrame becomes a balanced one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from anabranch import groupings
from anabranch.aggregates import Aggregate, Count, Types
from anabranch.errors import ConfigError, InputError, UnknownMethodError
from anabranch.groupings import Grouping, Spillway
from anabranch.location import absolute
from anabranch.spark import explain
from anabranch.spark.advice import meant
from anabranch.spark.columns.keys import (
    Key,
    check_collation,
    check_names,
    folding,
    quoted,
    restore_metadata,
    with_keys,
)
from anabranch.spark.columns.names import plain, read_by, shown
from anabranch.spark.columns.types import arrow_of
from anabranch.spark.edges.adaptive import pack_adaptively, route_adaptively, warm_up
from anabranch.spark.edges.planned import route_by_plan
from anabranch.spark.listener import listen, observe_hot_keys
from anabranch.spark.merging import fingerprint
from anabranch.spark.merging.choose import merging_of
from anabranch.spark.merging.results import results
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.plans.unwritten import mapped
from anabranch.spark.requirements import check_dataframe
from anabranch.spark.settings import WORKER, Edge, QuerySettings, Regime
from anabranch.spark.upstream import run_again
from anabranch.spark.whole_keys import with_whole_keys
from anabranch.spark.workers.own_aggregate import inputs_of, state_of
from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates
from anabranch.spark.workers.per_worker import PerWorker


def balance(
    df: DataFrame,
    key: Key,
    grouping: Grouping | str | None = None,
    n_workers: int = 16,
    *,
    edge: Edge | None = None,
    ledger: str | None = None,
    regime: Regime = "batch",
    flush_every: int = 1,
    seed: int = 0,
    row_id: str | Sequence[str] = (),
) -> Balanced:
    """Spread the rows of `df` over workers so that no hot key holds up the others.

    Parameters
    ----------
    df
        A streaming or batch DataFrame.
    key
        Key column or columns. A string names a column as it is, dots and all; where there is none it is read as Spark
        reads it. Of any type that Spark can group by, except collated strings and intervals of months (year-month or
        calendar), which have to be cast; nulls are a key of their own. An expression such as
        ``F.window("time", "1 minute")`` is a key too.
    grouping
        How to spread, as an object or by name, such as ``Fish()``, "fish" or "partial-key(choices=3)"; default
        `Spillway`.
    n_workers
        Tasks that the keyed work is spread over. The default is that of the command line and the simulator, so that a
        program goes on from its checkpoint on any machine; on a cluster, name as many as it runs tasks at once.
    edge
        "adaptive": routers in Python, every grouping, the default for streams. "planned": native, from a table made of
        the batch before (a stream; needs a ledger) or of an exact count of the data (a batch DataFrame). That count
        reads a batch DataFrame once more, so planned is the default there only where nothing of yours would run twice:
        no Python, no function of your own, nothing that is not deterministic. "local": no exchange; partial states
        where the rows are.
    ledger
        Folder, reachable from all tasks, in which what is learned in one micro-batch is kept for the next. Each query
        needs its own.
    regime
        "batch": partial states live for one micro-batch. "resident": they stay on their worker, and are merged every
        `flush_every` batches.
    seed
        Of the hash functions.
    row_id
        Columns that together tell rows apart, such as Kafka's ``["partition", "offset"]``. On the planned edge the rows
        of a split key are then dealt out by them, not by their numbers within their tasks. A batch that is replayed
        then routes as it did the first time even where the order of the rows is not fixed (behind a join), and over
        Spark Connect, where rows have no numbers. The answer is the same either way.
    """
    check_dataframe(df)
    df, keys = _plain(*with_keys(df, key))
    asked = frozenset(name for name, given in [("edge", edge), ("grouping", grouping)] if given is not None)
    grouping = _grouping(grouping)
    edge, why = (edge, "") if edge else _default_edge(df, grouping, regime)
    settings = QuerySettings(
        grouping,
        n_workers,
        edge,
        # Tasks run in folders of their own.
        ledger and absolute(ledger),
        regime,
        flush_every,
        seed,
        keys=keys,
        row_id=_row_id(df, row_id),
    )
    _check(df, settings)
    if settings.ledger is not None:
        Ledger(settings.ledger).claim(settings.identity())
    return Balanced(df, settings, asked, why)


def _plain(df: DataFrame, keys: tuple[str, ...]) -> tuple[DataFrame, tuple[str, ...]]:
    """The DataFrame and its keys with names that Spark can hand to Python; answers get the user's names back."""
    if any(plain(name) != name for name in df.columns):
        df = df.select(*(quoted(name).alias(plain(name)) for name in df.columns))
    return df, tuple(map(plain, keys))


def _default_edge(df: DataFrame, grouping: Grouping, regime: Regime) -> tuple[Edge, str]:
    """The edge of those who chose none, and why, where that is not plain."""
    if df.isStreaming or not grouping.has_table() or regime != "batch":
        return "adaptive", ""
    again = run_again(df) if grouping.learns and not grouping.needs_counts else None
    if again is None:
        return "planned", ""
    return "adaptive", f"chosen because the count for the planned edge would run {again} a second time"


def _grouping(given: Grouping | str | None) -> Grouping:
    if isinstance(given, str):
        return groupings.parse(given)
    if given is not None and not isinstance(given, Grouping):
        raise ConfigError(f"grouping must be one such as groupings.Fish() or its name, got {given!r}")
    return given or Spillway()


def _row_id(df: DataFrame, names: str | Sequence[str]) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    there = [shown(name) for name in df.columns]
    for name in given:
        if name not in there:
            raise InputError(f"row_id names column {name}, which is not there; there are {', '.join(there)}")
    return tuple(map(plain, given))


def _check(df: DataFrame, settings: QuerySettings) -> None:
    if df.isStreaming and settings.needs_plan and settings.ledger is None:
        raise ConfigError(
            f"{settings.grouping.name} on the planned edge of a stream needs a ledger to learn from: without one it "
            'would be key grouping in disguise; pass ledger="…", or use edge="adaptive"'
        )
    if settings.edge == "adaptive" and settings.grouping.needs_counts:
        raise ConfigError(
            f'{settings.grouping.name} needs all counts beforehand; use edge="planned" on a batch DataFrame'
        )
    if settings.grouping.needs_counts and df.isStreaming:
        raise ConfigError(f"{settings.grouping.name} needs all counts beforehand, which a stream does not have")
    if settings.regime == "resident" and not df.isStreaming:
        raise ConfigError("the resident regime keeps states between micro-batches; a batch DataFrame has none")


@dataclass(frozen=True)
class Balanced:
    """Rows on their way to workers; say what the workers do. Made by `balance`.

    Parameters
    ----------
    df, settings
        The rows, and how they are spread.
    asked
        Names of the settings that the caller has chosen.
    why_edge
        Why the edge is what it is, where that is not plain.
    """

    df: DataFrame
    settings: QuerySettings
    asked: frozenset[str] = frozenset()
    why_edge: str = ""

    if not TYPE_CHECKING:  # a type checker finds unknown names by itself

        def __getattr__(self, name: str) -> NoReturn:
            """Called for names that are not there: those of a DataFrame or of groupBy are tried first."""
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if name in ("applyInArrow", "applyInPandas"):
                raise UnknownMethodError(
                    f"Balanced has no {name}, because Spark calls its function once per key; use .per_worker(…), whose "
                    "function gets the rows of many keys at once"
                )
            raise UnknownMethodError(
                f"Balanced has no {name}; say first what the workers do, by .aggregate(…), .per_worker(…) "
                "or .routed(), each of which gives a DataFrame"
            )

    def aggregate(self, *unnamed: Aggregate, **aggregates: Aggregate) -> DataFrame:
        """Key columns and one column per aggregate: what `groupBy(key).agg(…)` would give.

        The answers of a stream are written in update mode. Complete mode works as well where Spark merges all states.
        It does not merge those of `TopK` and `CollectN`, nor state columns that name no merge: Spark then refuses
        complete mode, because it finds "no streaming aggregations". Every mode works with an event-time window as a
        key.

        Examples
        --------
        ``balance(trades, "symbol").aggregate(trades=Count(), vwap=WeightedMean("price", "qty"))``
        """
        if unnamed:
            _refuse_unnamed(unnamed[0])
        keys, schema = self.settings.keys, self.df.schema
        types, reads = types_of(schema, keys, aggregates, folding(self.df.sparkSession))
        known = types | {key: arrow_of(schema[key].dataType) for key in keys}
        partial_states = self._partial_states(aggregates, known, reads)
        merging = merging_of(self.df, partial_states, self.settings)
        warm_up(self.settings)
        partial_states.warm_up(known)
        columns = list(dict.fromkeys([*keys, *(name for names in reads.values() for name in names)]))
        routed = replace(self, df=merging.before(self.df))._exchange(columns)
        answers = results(merging.merged(routed), partial_states, types)
        return answers.select(*map(_as_shown, keys), *map(quoted, aggregates))

    def _partial_states(
        self, aggregates: Mapping[str, Aggregate], types: Types, reads: Mapping[str, tuple[str, ...]]
    ) -> PartialStates:
        """What workers compute; states lie in an order that does not depend on how aggregates are written."""
        fold = folding(self.df.sparkSession)
        named = sorted(aggregates.items(), key=lambda item: fold(item[0]))
        bounds = tuple(BoundAggregate(name, one, state_of(name, one, types), reads[name]) for name, one in named)
        partial_states = PartialStates(self.settings.keys, bounds)
        if not self.df.isStreaming:
            return partial_states
        listen(self.df.sparkSession)
        return replace(
            partial_states, fingerprint=fingerprint.digits(fingerprint.of_states(partial_states, types, fold))
        )

    def per_worker(
        self,
        func: Callable[[pa.Table], pa.Table],
        schema: StructType | str,
        merge: Mapping[str, str] | None = None,
        *,
        whole_keys: bool = False,
    ) -> DataFrame:
        """Run `func` over all rows of a worker at once, and merge what it returns for split keys.

        Parameters
        ----------
        func
            From a table with the rows of many keys to a table with the key columns and whatever else `schema` names.
            It has to tell the keys apart itself, unlike a function of Spark's ``groupBy(…).applyInArrow``, which gets
            one key at a time. Its rows must not depend on the order of its input.
        schema
            Of what `func` returns; the key columns must be among it.
        merge
            Spark's aggregate function for each other column, such as ``{"n": "sum", "last": "max"}``; one of
            `anabranch.aggregates.MERGES`, which give the same whether a key was split or not.
        whole_keys
            For a function whose output cannot be merged: place every key whole on one worker, heaviest first. A key
            that has more than a worker's share then stays the bottleneck. On a stream the placement is learned in the
            first batch, and the function sees the rows of one micro-batch at a time. A batch DataFrame is read twice,
            because its keys are counted first. The grouping is then `OfflineGreedy` (of a stream,
            `DistributionAwareKeyGrouping`) on the planned edge; a grouping or an edge that `balance` was given must
            not split keys.
        """
        if merge is None and not whole_keys:
            raise ConfigError(
                "a function whose output cannot be merged must see every key whole, and splitting hot keys is how this "
                "library balances; declare merge={column: function}, or pass whole_keys=True for whole-key placement"
            )
        if merge is not None and whole_keys:
            raise ConfigError("merge is for split keys, whole_keys=True for whole ones; pass one of them")
        if self.settings.regime == "resident":
            raise ConfigError("per_worker keeps no states, so there are none to stay resident; use the batch regime")
        check_names([shown(name) for name in self.df.columns])
        balanced = replace(self, settings=self._whole()) if whole_keys else self
        worker = PerWorker(func, schema, balanced.settings, self.df.schema)
        exchanged = balanced._exchange(self.df.columns)
        out = mapped(exchanged, worker.__call__, worker.schema, self.settings.ledger)
        out = restore_metadata(out, self.df.schema, self.settings.keys)
        if merge is None:
            return out
        grouped = out.groupBy(*(quoted(key) for key in self.settings.keys))
        marks: fingerprint.Digits = ()
        if out.isStreaming:
            listen(out.sparkSession)
            marks = fingerprint.digits(worker.meaning(merge))
        merged = fingerprint.aggregated(grouped, worker.merges(merge), marks)
        return merged.select(*(quoted(name) for name in [*self.settings.keys, *worker.answers]))

    def routed(self) -> DataFrame:
        """The rows, one partition a worker, with the worker's number in the column `worker`."""
        if "worker" in map(folding(self.df.sparkSession), self.df.columns):
            raise ConfigError("the DataFrame has a column named worker already; rename it first")
        if self.settings.edge == "local":
            raise ConfigError("the local edge sends rows nowhere; use the adaptive or the planned edge")
        df = self.df
        if self.settings.needs_plan and df.isStreaming:
            df = observe_hot_keys(df, self.settings)
        routed = self._route(df).withColumnRenamed(WORKER, "worker")
        if any(shown(name) != name for name in df.columns):
            routed = routed.select(*map(_as_shown, routed.columns))
        return routed.repartitionById(self.settings.n_workers, F.col("worker"))

    def explain(self, *, whole_keys: bool = False) -> None:
        """Print in plain words which edge and grouping run, what is shuffled and what is merged.

        Parameters
        ----------
        whole_keys
            Tell what runs for ``per_worker(…, whole_keys=True)``, which places keys in its own way.
        """
        if whole_keys:
            print(explain.describe_whole_keys(self.df, self._whole()))
        else:
            print(explain.describe(self.df, self.settings, self.why_edge, whole_keys_differ=self._whole_differs()))

    def _route(self, df: DataFrame) -> DataFrame:
        routes = {"adaptive": route_adaptively, "planned": route_by_plan}
        return routes[self.settings.edge](df, self.settings)

    def _exchange(self, names: Sequence[str]) -> DataFrame:
        """These columns, one partition a worker; packed where the adaptive edge routes."""
        columns = [quoted(name) for name in names]
        if self.settings.edge == "local":
            return self.df.select(*columns)
        if self.settings.edge == "adaptive":
            packed = pack_adaptively(self.df.select(*columns), self.settings)
            return packed.repartitionById(self.settings.n_workers, F.col(WORKER)).drop(WORKER)
        needed = dict.fromkeys([*names, *self.settings.row_id])
        routed = self._route(self.df.select(*(quoted(name) for name in needed))).select(*columns, WORKER)
        return routed.repartitionById(self.settings.n_workers, F.col(WORKER)).drop(WORKER)

    def _whole(self) -> QuerySettings:
        """Settings under which no key is split."""
        return with_whole_keys(self.settings, self.asked, streaming=self.df.isStreaming)

    def _whole_differs(self) -> bool:
        """Whether whole keys can be had, and are placed otherwise than `explain` tells."""
        with suppress(ConfigError):
            whole = self._whole()
            moved = whole.grouping is not self.settings.grouping or whole.edge != self.settings.edge
            return moved and self.settings.regime == "batch"
        return False


def _as_shown(name: str) -> Column:
    """The column under the user's name for it."""
    return quoted(name) if shown(name) == name else quoted(name).alias(shown(name))


def _refuse_unnamed(given: object) -> NoReturn:
    if isinstance(given, Aggregate):
        raise ConfigError(f"an aggregate needs a name for its column, such as n={given!r}")
    name, one = meant(given)
    raise ConfigError(f"aggregate takes aggregates of anabranch with a name each, such as {name}={one}, got {given!r}")


def types_of(
    schema: StructType, keys: tuple[str, ...], aggregates: Mapping[str, Aggregate], fold: Callable[[str], str]
) -> tuple[dict[str, pa.DataType], dict[str, tuple[str, ...]]]:
    """Arrow types of the columns that aggregates read, by the names in both, and the columns that each reads.

    Refuses names that clash and columns that are not there.
    """
    if not aggregates:
        raise ConfigError("aggregate needs at least one aggregate, such as count=Count()")
    types, reads, taken = {}, {}, {fold(shown(key)): f"{shown(key)} is a key column" for key in keys}
    columns = {shown(name): name for name in schema.names}
    for name, one in aggregates.items():
        if fold(name) in taken:
            raise ConfigError(f"{taken[fold(name)]}, and to Spark {name} is the same; give the aggregate another name")
        taken[fold(name)] = f"{name} is an aggregate"
        if not isinstance(one, Aggregate):
            raise ConfigError(f"{name} must be an aggregate such as {meant(one).aggregate}, got {one!r}")
        inputs = inputs_of(name, one)
        reads[name] = read_by(name, inputs, columns, fold)
        for column, read in zip(inputs, reads[name], strict=True):
            if not isinstance(one, Count):
                check_collation(f"column {column} of {name}", schema[read].dataType)
            types[column] = types[read] = arrow_of(schema[read].dataType)
    return types, reads
