"""Spillway: our own grouping, which plans flows from overloaded to underloaded workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Report, Table
from anabranch.groupings.spillway import arcs, flows
from anabranch.groupings.spillway.flow_tables import pooled_flows, table_of, without_idle
from anabranch.groupings.spillway.router import SpillwayRouter


@dataclass(frozen=True)
class Spillway(Grouping):
    """Every key has one home; a worker above its share spills its heaviest keys into workers below theirs.

    When to use it: wherever keys are skewed. It balances like shuffle grouping and holds hardly more states than key
    grouping, from the first chunk on; with few keys for each worker it needs more (docs/spillway.md). It does not
    choose tuple by tuple: a chunk of tuples is counted, planned and then routed, so it wants tuples in chunks, as Spark
    and Arrow have them anyway.

    Guarantees
    ----------
    With exact counts (one source, a window that is one chunk, room in the table) no worker gets more than
    ⌈target × (1 + 2.5 tolerance)⌉ tuples, the target being its share of the chunk, if keys may have n_workers replicas.
    A source sends a key to at most `replicas` workers as long as it remembers it.
    A key whose home was never above its limit has one replica: its home.
    The state of a source has a fixed size: `capacity` split keys with four flows each, 2^16 counters, and a few
    numbers per worker.

    Parameters
    ----------
    tolerance
        A worker spills when it is above its target by more than this part. Half of it while replicas are cheap, up to
        2.5 times of it when `budget` is overdrawn four times.
    budget
        Replicas that may be added to balance, by all sources, as a part of the distinct keys; n_workers more are free.
    memory
        Chunks over which one of several sources without a plan evens out a worker that is above its target again and
        again.
    chunk
        Most tuples that are counted and planned at a time; default max(10 000, 100 n_workers). Fewer come in a call of
        fewer: what is routed tuple by tuple goes as with key grouping.
    replicas
        Most replicas that one source gives a key; default n_workers. Sources that do not talk may choose other ones.
    capacity
        Most split keys that a source remembers; default max(16384, 4 n_workers).
    speeds
        Relative speeds of the workers, repeated to their number, where they are known beforehand. Measured ones come
        from reports and plans.

    Examples
    --------
    >>> import numpy as np
    >>> router = Spillway().build(n_workers=4)
    >>> np.bincount(router.route(np.zeros(100, dtype=np.uint64))).tolist()
    [25, 25, 25, 25]

    References
    ----------
    McNaughton, "Scheduling with deadlines and loss functions" (1959): n_keys + n_workers − 1 pairs of key and worker
    suffice to balance perfectly what is known beforehand. docs/spillway.md derives the bounds.
    """

    name = "spillway"
    paper = "ours"

    tolerance: float = 0.05
    budget: float = 0.04
    memory: float = 8.0
    chunk: int | None = None
    replicas: int | None = None
    capacity: int | None = None
    speeds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and math.isfinite(self.tolerance)):
            raise ConfigError(f"tolerance must be above 0, got {self.tolerance}")
        if not (self.budget > 0 and math.isfinite(self.budget)):
            raise ConfigError(f"budget must be above 0, got {self.budget}")
        if not self.memory >= 1:
            raise ConfigError(f"memory must be at least 1 chunk, got {self.memory}")
        for name, least in (("chunk", 2), ("replicas", 1), ("capacity", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} must be at least {least}, got {value}")
        if not all(speed > 0 and math.isfinite(speed) for speed in self.speeds):
            raise ConfigError(f"speeds must be positive numbers, got {self.speeds}; 1 is a worker of normal speed")

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return SpillwayRouter(self, n_workers, source, n_sources, seed)

    def fold(self, previous: Plan | None, reports: Sequence[Report]) -> Plan:
        """Pool the flows of all sources, so that each may use what another has made; those long idle are left out."""
        table = pooled_flows([report.sketch for report in reports if report.sketch])
        return without_idle(replace(super().fold(previous, reports), table=table), previous)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """Flows for counts that are known beforehand; those of the table before are kept as far as they serve."""
        router = SpillwayRouter(self, n_workers, 0, 1, seed)
        # Where the table runs, each worker is home to an equal part of the hash space.
        router.arcs = arcs.even(np.ones(n_workers))
        router.follow(replace(plan, sources=1))
        # Keys of the table before that have no counts now are a chunk behind, and left out.
        router.flows.counts[flows.CHUNKS] += 1
        router.plan_counts(plan)
        return table_of(*flows.listed(router.flows, recent=0))
