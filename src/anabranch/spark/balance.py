"""`balance`: a skewed keyed DataFrame becomes a balanced one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from anabranch import groupings
from anabranch.aggregates import Aggregate, Count
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import DistributionAwareKeyGrouping, Grouping, OfflineGreedy, Spillway
from anabranch.spark import aggregator, explain, resident
from anabranch.spark.apply import Apply
from anabranch.spark.edge import pack_adaptively, route_adaptively, warm_up
from anabranch.spark.keys import (
    Key,
    check_collation,
    check_names,
    event_time,
    folding,
    quoted,
    restore_metadata,
    with_keys,
)
from anabranch.spark.ledger import Ledger
from anabranch.spark.listener import observe_hot_keys
from anabranch.spark.location import absolute
from anabranch.spark.planned_edge import route_by_plan
from anabranch.spark.requirements import check_spark, parallelism
from anabranch.spark.settings import WORKER, Settings
from anabranch.spark.types import arrow_of
from anabranch.spark.worker import Bound, Summary, Worker


def balance(
    df: DataFrame,
    key: Key,
    grouping: Grouping | str | None = None,
    n_workers: int | None = None,
    *,
    edge: str | None = None,
    ledger: str | None = None,
    regime: str = "batch",
    flush_every: int = 1,
    seed: int = 0,
    work_us: float = 0.0,
    deal_by: str | Sequence[str] = (),
) -> Balanced:
    """Spread the rows of `df` over workers so that no hot key holds up the others.

    Parameters
    ----------
    df
        A streaming or batch DataFrame.
    key
        Key column or columns, of any type that Spark can group by, but for strings of a collation and intervals of
        months (year-month or calendar), which have to be cast; nulls are a key of their own. An expression such as
        ``F.window("time", "1 minute")`` is a key too.
    grouping
        How to spread, as an object or by name, such as ``Fish()``, "fish" or "partial-key(choices=3)"; default
        `Spillway`.
    n_workers
        Tasks that the keyed work is spread over; default: as many as the session runs at once.
    edge
        "adaptive": routers in Python, every grouping, the default for streams. "planned": native, from a table made of
        the batch before (a stream; needs a ledger) or of an exact count of the data (a batch DataFrame, where it is the
        default for groupings that have a table). "local": no exchange; partial states where the rows are.
    ledger
        Folder, reachable from all tasks, in which what is learned in one micro-batch is kept for the next; one a query.
    regime
        "batch": partial states live for one micro-batch. "resident": they stay on their worker, and are merged every
        `flush_every` batches.
    seed
        Of the hash functions.
    work_us
        Emulated work a row in microseconds, for trials: a delay.
    deal_by
        Columns that together tell rows apart, such as Kafka's ``["partition", "offset"]``. On the planned edge the rows
        of a split key are then dealt out by them, not by their numbers within their tasks. A batch that is replayed
        then routes as it did the first time even where the order of the rows is not fixed (behind a join), and over
        Spark Connect, where rows have no numbers. The answer is the same either way.
    """
    check_spark(df.sparkSession)
    df, keys = with_keys(df, key)
    grouping = _grouping(grouping)
    n_workers = parallelism(df.sparkSession) if n_workers is None else n_workers
    edge = edge or ("planned" if not df.isStreaming and grouping.has_table() and regime == "batch" else "adaptive")
    dealt_by = _deal_by(df, deal_by)
    # Tasks run in folders of their own.
    ledger = ledger and absolute(ledger)
    settings = Settings(grouping, n_workers, edge, ledger, regime, flush_every, seed, work_us, keys, dealt_by)
    _check(df, settings)
    if ledger is not None:
        Ledger(ledger).claim(settings.identity())
    return Balanced(df, settings)


def _grouping(given: Grouping | str | None) -> Grouping:
    if isinstance(given, str):
        return groupings.parse(given)
    if given is not None and not isinstance(given, Grouping):
        raise ConfigError(f"grouping must be one such as groupings.Fish() or its name, got {given!r}")
    return given or Spillway()


def _deal_by(df: DataFrame, names: str | Sequence[str]) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if name not in df.columns:
            raise InputError(f"deal_by names column {name}, which is not there; there are {', '.join(df.columns)}")
    return given


def _check(df: DataFrame, settings: Settings) -> None:
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
    """Rows on their way to workers; say what the workers do. Made by `balance`."""

    df: DataFrame
    settings: Settings

    def aggregate(self, *unnamed: Aggregate, **aggregates: Aggregate) -> DataFrame:
        """Key columns and one column an aggregate: what `groupBy(key).agg(…)` would give.

        Examples
        --------
        ``balance(trades, "symbol").aggregate(trades=Count(), vwap=WeightedMean("price", "qty"))``
        """
        if unnamed:
            raise ConfigError(f"an aggregate needs a name for its column, such as n={unnamed[0]!r}")
        keys, schema = self.settings.keys, self.df.schema
        types = types_of(schema, keys, aggregates, folding(self.df.sparkSession))
        bounds = tuple(Bound(name, one, one.state(types)) for name, one in aggregates.items())
        summary = Summary(keys, bounds)
        warm_up(self.settings)
        summary.warm_up(types | {key: arrow_of(schema[key].dataType) for key in keys})
        columns = list(dict.fromkeys([*keys, *(name for one in aggregates.values() for name in one.inputs)]))
        check_names(columns)
        routed = self._exchange(columns)
        opaque = not aggregator.merges_natively(summary)
        windowed = self.df.isStreaming and event_time(schema, keys)
        if windowed and self.settings.regime == "resident":
            raise ConfigError(
                "the resident regime does not know event time, because the watermark does not reach states that stay "
                "on their worker; use the batch regime with windows"
            )
        if self.df.isStreaming and not windowed and (opaque or self.settings.regime == "resident"):
            merged = resident.merge(routed, schema, summary, self.settings)
            return aggregator.results(merged, summary, types)
        states = aggregator.partial_schema(schema, summary)
        partials = routed.mapInArrow(Worker(summary, self.settings).__call__, states)
        if opaque and windowed:
            merged = aggregator.merge_windows(partials, schema, summary)
        elif opaque:
            merged = aggregator.merge_in_python(partials, summary, states)
        else:
            merged = aggregator.merge_natively(partials, schema, summary)
        return aggregator.results(merged, summary, types)

    def applyInArrow(
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
            Its rows must not depend on the order of its input.
        schema
            Of what `func` returns; the key columns must be among it.
        merge
            Spark's aggregate function for each other column, such as ``{"n": "sum", "last": "max"}``; one of
            `anabranch.aggregates.MERGES`, which give the same whether a key was split or not.
        whole_keys
            For a function whose output cannot be merged: place every key whole on one worker, heaviest first. A key
            that has more than a worker's share then stays the bottleneck. On a stream the placement is learned in the
            first batch, and the function sees the rows of one micro-batch at a time.
        """
        if merge is None and not whole_keys:
            raise ConfigError(
                "a function whose output cannot be merged must see every key whole, and splitting hot keys is how this "
                "library balances; declare merge={column: function}, or pass whole_keys=True for whole-key placement"
            )
        if merge is not None and whole_keys:
            raise ConfigError("merge is for split keys, whole_keys=True for whole ones; pass one of them")
        if self.settings.regime == "resident":
            raise ConfigError("applyInArrow keeps no states, so there are none to stay resident; use the batch regime")
        check_names(self.df.columns)
        balanced = self._with_whole_keys() if whole_keys else self
        apply = Apply(func, schema, balanced.settings, self.df.schema)
        out = balanced._exchange(self.df.columns).mapInArrow(apply.__call__, apply.schema)
        out = restore_metadata(out, self.df.schema, self.settings.keys)
        if merge is None:
            return out
        return out.groupBy(*(quoted(key) for key in self.settings.keys)).agg(*apply.merges(merge))

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
        return routed.repartitionById(self.settings.n_workers, F.col("worker"))

    def explain(self) -> None:
        """Print in plain words which edge and grouping run, what is shuffled and what is merged."""
        print(explain.describe(self.df, self.settings))

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
        needed = dict.fromkeys([*names, *self.settings.deal_by])
        routed = self._route(self.df.select(*(quoted(name) for name in needed))).select(*columns, WORKER)
        return routed.repartitionById(self.settings.n_workers, F.col(WORKER)).drop(WORKER)

    def _with_whole_keys(self) -> Balanced:
        if not self.df.isStreaming:
            settings = replace(self.settings, grouping=OfflineGreedy(), edge="planned")
        elif self.settings.ledger is None:
            raise ConfigError("whole keys on a stream are placed by what the first batch teaches; pass ledger=…")
        else:
            settings = replace(self.settings, grouping=DistributionAwareKeyGrouping(), edge="planned")
        return replace(self, settings=settings)


def types_of(
    schema: StructType, keys: tuple[str, ...], aggregates: Mapping[str, Aggregate], fold: Callable[[str], str]
) -> dict[str, pa.DataType]:
    """Arrow types of the columns that the aggregates read; refuses names that clash and columns that are not there."""
    if not aggregates:
        raise ConfigError("aggregate needs at least one aggregate, such as count=Count()")
    types, taken = {}, {fold(key): f"{key} is a key column" for key in keys}
    for name, one in aggregates.items():
        if fold(name) in taken:
            raise ConfigError(f"{taken[fold(name)]}, and to Spark {name} is the same; give the aggregate another name")
        taken[fold(name)] = f"{name} is an aggregate"
        if not isinstance(one, Aggregate):
            raise ConfigError(f"{name} must be an aggregate such as aggregates.Count(), got {one!r}")
        for column in one.inputs:
            if column not in schema.names:
                raise InputError(
                    f"{name} reads column {column}, which is not there; there are {', '.join(schema.names)}"
                )
            if not isinstance(one, Count):
                check_collation(f"column {column} of {name}", schema[column].dataType)
            types[column] = arrow_of(schema[column].dataType)
    return types
