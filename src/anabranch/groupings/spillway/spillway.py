"""Spillway: our own grouping, which plans flows from overloaded to underloaded workers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F32, F64, I32, I64, U64
from anabranch.containers.slot_table import home as probe_from
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Report, Table, pack_table
from anabranch.groupings.speeds import SPEEDS, MeasuringRouter
from anabranch.groupings.spillway import arcs, flows, spill
from anabranch.groupings.spillway.chunk import Chunk, work_space
from anabranch.groupings.spillway.flow_tables import flows_of, pooled_flows, table_of, without_idle
from anabranch.groupings.spillway.flows import Flows
from anabranch.hashing.xxhash64 import SPARK_SEED, hash_long
from anabranch.kernels import njit

# How the tolerance grows with what the replicas cost: from half of it to this many times as much.
_LEAST, _STEEP, _MOST = 0.5, 0.5, 2.5
# What one of several sources lets pass, for theirs even out: standard deviations of its own, and, as far as replicas
# are dear, what rare keys bring to a worker above the usual. Steeper than this, streams that change lose balance: the
# budget counts the replicas of all sources, and is overdrawn sooner than that of one.
_SLACK, _SLACK_STEEP = 0.15, 0.35
# Sources that do not talk choose partly the same replicas: together n of them have n to this power as many as one.
# With 20 sources and 2.6 M tuples: 0.1 (Zipf z=2.0: hot keys), 0.3 (z=1.4), 0.4 (LN1), 0.55 and 0.6 (real streams), 0.9
# (z=0.5: rare keys). What is too low is paid for in replicas, what is too high in balance.
_APART = 0.65
# Chunks over which new keys are averaged. Over many, a source would take the keys of others for few in the beginning,
# when the mean still rises from 0, and for too many later, when it lags behind.
_LATELY = 2.0
# Chunks over which it is learnt what rare keys usually bring to a worker.
_USUAL = 16.0
_CELLS = 1 << 16
# A task on Spark does not know how many there are, and says many.
_SOURCES = 32
_MASK = 0xFFFFFFFFFFFFFFFF
# Chunks after which a flow that carried nothing is no longer told to other sources.
_RECENT = 64
_OWN = ("frequency", "offsets", "usual", "meta", "arcs", *SPEEDS)
# Cells of the router's `meta` array.
_USED, _KEYS, _POOLED, _TUPLES, _FRESH, _LEARNT = 0, 1, 2, 3, 4, 5


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
    numbers a worker.

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
        # Whoever runs the table sends what is not in it to an equal part of the hash space.
        router.arcs = arcs.even(np.ones(n_workers))
        router.follow(replace(plan, sources=1))
        # Keys of the table before that have no counts now are a chunk behind, and left out.
        router.flows.counts[flows.CHUNKS] += 1
        router.plan_counts(plan)
        return table_of(*flows.listed(router.flows, recent=0))


class SpillwayRouter(MeasuringRouter):
    """Spillway in one source.

    `frequency` counts tuples by a part of the key's hash, `offsets` is what a worker is ahead of its target again and
    again, `usual` the part of all tuples that rare keys bring to it. `meta` holds the flows made, the cells of
    `frequency` in use, whether plans come, the tuples so far, how many of the last ones were the first of a cell, and
    the chunks that `usual` has seen.
    """

    grouping: Spillway

    def __init__(self, grouping: Spillway, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.chunk = grouping.chunk or max(10_000, 100 * n_workers)
        self.flows = flows.empty(grouping.capacity or max(16_384, 4 * n_workers))
        self.frequency = np.zeros(_CELLS, np.float32)
        self.meta = np.zeros(6)
        self.offsets = np.zeros(n_workers)
        self.usual = np.zeros(n_workers)
        self.arcs = arcs.even(self._known_speeds())
        self.work: Chunk | None = None

    def _known_speeds(self) -> F64:
        given = np.array(self.grouping.speeds or (1.0,))
        return given[self.workers % len(given)]

    def _shares(self) -> F64:
        """Part of the tuples that each worker should get."""
        speeds = self._known_speeds() if self.grouping.speeds else 1.0 / self.seconds
        shares: F64 = speeds / speeds.sum()
        return shares

    def _space(self, n: int) -> Chunk:
        if self.work is None or len(self.work.keys) < n or len(self.work.loads) != self.n_workers:
            self.work = work_space(max(n, 1024), len(self.flows.workers), self.n_workers)
        return self.work

    def _route(self, keys: U64, now: float, out: I32) -> None:
        work = self._space(len(keys))
        n = _count(keys, work.table, work.keys, work.counts, work.index_of)
        self._find_homes(work.keys[:n], work.homes, work.steps)
        self._learn_keys(_remember(work, n, self.frequency), len(keys))
        work.targets[:] = self._shares() * len(keys)
        work.loads[:] = 0.0
        n_split = self._plan(work, n)
        self._carry_over(work)
        _open(work, self.flows, n_split)
        lists = (work.dealt, work.starts, work.lengths, work.turns)
        _deal(work.index_of, work.homes, work.slots, *lists, self.flows.workers, self.flows.quotas, out)
        self._end_chunk()

    def _plan(self, work: Chunk, n: int) -> int:
        tolerance, slack, chance = self._tolerances()
        before = self.n_replicas
        n_split = spill.place(work, self.flows, n)
        if self.n_sources > 1:
            self._learn_usual(work)
        n_split = spill.plan(
            work,
            self.flows,
            n,
            n_split,
            self.frequency,
            self._ahead(work.targets),
            tolerance,
            slack,
            chance,
            self._most,
            (0.5 + 0.618033988749 * self.source) % 1.0,
        )
        self.meta[_USED] += self.n_replicas - before
        return n_split

    def _learn_usual(self, work: Chunk) -> None:
        """Say what rare keys have brought to each worker so far, in the beginning by its share; then learn from now."""
        tuples = work.targets.sum()
        now = work.rare / tuples
        if self.meta[_LEARNT] == 0:
            self.usual[:] = now.sum() * work.targets / tuples
        work.usual[:] = self.usual * tuples
        self.meta[_LEARNT] += 1
        self.usual += (now - self.usual) / min(self.meta[_LEARNT] + 1, _USUAL)

    def _ahead(self, targets: F64) -> F64:
        """`offsets` against their mean: if all were ahead, none would be, and there must be room for every tuple."""
        ahead: F64 = self.offsets - targets * (self.offsets.sum() / max(1e-9, targets.sum()))
        return ahead

    @property
    def _most(self) -> int:
        """Replicas that a key may have."""
        return self.grouping.replicas or self.n_workers

    @property
    def n_replicas(self) -> int:
        """Replicas besides those at home that are remembered."""
        n_flows = len(self.flows.workers) - self.flows.counts[flows.N_FREE]
        return int(n_flows - self.flows.counts[flows.SPLIT])

    def _learn_keys(self, fresh: int, tuples: int) -> None:
        self.meta[_KEYS] += fresh
        self.meta[_TUPLES] += tuples
        self.meta[_FRESH] += (fresh / tuples - self.meta[_FRESH]) / _LATELY

    def _all_keys(self) -> float:
        """Distinct keys of all sources: those seen here, grown as they have grown here (Heaps' law)."""
        cells = float(_CELLS)
        seen = max(1.0, cells * math.log(cells / max(1.0, cells - self.meta[_KEYS])))
        growth = min(1.0, float(self.meta[_TUPLES] * self.meta[_FRESH]) / seen)
        return float(seen * min(self.n_sources, _SOURCES) ** growth)

    def _tolerances(self) -> tuple[float, float, float]:
        """Tolerated part above the target, standard deviations, and part of what rare keys bring.

        The more, the dearer replicas are.
        """
        used = float(self.meta[_USED])
        if not self.meta[_POOLED]:
            used *= min(self.n_sources, _SOURCES) ** _APART
        used = max(0.0, used - self.n_workers)
        drawn = min(used / max(1.0, self.grouping.budget * self._all_keys()), (_MOST - _LEAST) / _STEEP)
        tolerance = self.grouping.tolerance * (_LEAST + _STEEP * drawn)
        if self.n_sources == 1:
            return tolerance, 0.0, 0.0
        return tolerance, _SLACK + _SLACK_STEEP * drawn, min(1.0, drawn)

    def _carry_over(self, work: Chunk) -> None:
        """Remember who was above its target, so that a source whose own noise hides it finds out in time."""
        if self.n_sources == 1 or self.meta[_POOLED]:
            return
        memory = self.grouping.memory
        self.offsets *= 1 - 0.1 / memory
        self.offsets += (work.loads - work.targets) / memory
        # What a worker was below its target is past: to make up for it would overload it now.
        np.clip(self.offsets, 0.0, 0.5 * work.targets, out=self.offsets)

    def _end_chunk(self) -> None:
        self.flows.counts[flows.CHUNKS] += 1
        flows.make_room(self.flows)

    def plan_counts(self, plan: Plan) -> None:
        """Plan for the counts of `plan` instead of a chunk: what the planned edge does between batches."""
        # A key without tuples has nothing to spill.
        there = plan.hot_counts > 0
        n = int(np.count_nonzero(there))
        work = self._space(n)
        work.keys[:n], work.counts[:n] = plan.hot_keys[there], plan.hot_counts[there]
        self._find_homes(work.keys[:n], work.homes, work.steps)
        self.meta[_KEYS] += _remember(work, n, self.frequency)
        cold = max(0, plan.tuples - int(plan.hot_counts.sum()))
        known = len(plan.cold_tuples) == self.n_workers
        work.loads[:] = plan.cold_tuples if known else cold * self._shares()
        work.targets[:] = self._shares() * (work.loads.sum() + plan.hot_counts.sum())
        self._plan(work, n)

    def _seeding(self) -> tuple[np.uint64, bool]:
        # A Python integer beyond 63 bits would take numba's slow way into a kernel.
        return np.uint64(hash_long(np.uint64(self.seed & _MASK), np.uint64(SPARK_SEED))), self.seed != 0

    def homes_of(self, keys: U64) -> I32:
        """Home worker of each key."""
        homes, steps = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
        self._find_homes(keys, homes, steps)
        return homes

    def _find_homes(self, keys: U64, homes: I32, steps: I32) -> None:
        """Write the home of each key, and the step in which it tries other workers."""
        _find_homes(keys, homes, steps, self.arcs, *self._seeding(), self.n_workers)

    def report(self) -> Report:
        keys, workers, parts = flows.listed(self.flows, _RECENT)
        age = self.flows.counts[flows.CHUNKS] - self.flows.seen
        n_split = int(self.flows.counts[flows.SPLIT])
        # A key that was only learned from a plan has no heat.
        hot = np.flatnonzero((self.flows.heat[:n_split] > 0.0) & (age[:n_split] <= _RECENT))
        counts = np.rint(self.flows.heat[hot]).astype(np.int64)
        order = np.lexsort((self.flows.keys[hot], -counts))
        return Report(
            hot_keys=self.flows.keys[hot][order],
            hot_counts=counts[order],
            sketch=pack_table(table_of(keys, self.workers[workers], parts)),
        )

    def follow(self, plan: Plan) -> None:
        """Use the flows of all sources, and their speeds and counts."""
        self._follow_speeds(plan)
        self.meta[_POOLED] = 1.0
        self.offsets[:] = 0.0
        if plan.n_keys:
            self.meta[_KEYS] = max(self.meta[_KEYS], _CELLS * (1 - math.exp(-plan.n_keys / _CELLS)))
        if plan.table is None:
            return
        keys, workers, parts = flows_of(plan.table)
        position = np.full(max(int(workers.max(initial=0)), int(self.workers.max())) + 1, -1, np.int32)
        position[self.workers] = np.arange(self.n_workers, dtype=np.int32)
        alive = position[workers] >= 0
        keys, workers, parts = keys[alive], position[workers[alive]], parts[alive]
        flows.learn(self.flows, keys, self.homes_of(keys), workers, parts, self._most)
        self.meta[_USED] = max(self.meta[_USED], self.n_replicas)

    def _resize(self, previous: I64) -> None:
        if len(previous) == len(self.offsets) and (previous == np.arange(len(previous))).all():
            return
        keys, workers, parts = flows.listed(self.flows)
        before = self.flows
        slots = {key: slot for slot, key in enumerate(before.keys[: before.counts[flows.SPLIT]].tolist())}
        new_index = np.full(len(self.offsets), -1, np.int32)
        stayed = np.flatnonzero(previous >= 0)
        new_index[previous[stayed]] = stayed
        kept = new_index[workers] >= 0
        self.arcs = arcs.moved(self.arcs, new_index, self._known_speeds())
        self.flows = flows.empty(len(before.keys))
        self.flows.counts[flows.CHUNKS] = before.counts[flows.CHUNKS]
        keys, workers, parts = keys[kept], new_index[workers[kept]], parts[kept]
        flows.learn(self.flows, keys, self.homes_of(keys), workers, parts, self._most)
        n = int(self.flows.counts[flows.SPLIT])
        kept_slots = [slots[key] for key in self.flows.keys[:n].tolist()]
        self.flows.heat[:n], self.flows.seen[:n] = before.heat[kept_slots], before.seen[kept_slots]
        self.offsets, self.usual = np.zeros(self.n_workers), np.zeros(self.n_workers)
        self.meta[_LEARNT] = 0.0
        self._resize_speeds(previous)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        own = {name: getattr(self, name) for name in _OWN}
        return {**own, **{f"flows.{name}": array for name, array in self.flows._asdict().items()}}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.flows = Flows(*(arrays[f"flows.{name}"] for name in Flows._fields))
        for name in _OWN:
            setattr(self, name, arrays[name])
        self.work = None


@njit(cache=True, inline="always")
def _home_and_step(
    key: np.uint64, owners: I32, seed: np.uint64, seeded: bool, n_workers: int
) -> tuple[np.int32, np.int32]:
    mixed = hash_long(key, seed) if seeded else key
    home = owners[int(((mixed >> np.uint64(32)) * np.uint64(len(owners))) >> np.uint64(32))]
    distance = ((mixed & np.uint64(0xFFFFFFFF)) * np.uint64(max(1, n_workers - 1))) >> np.uint64(32)
    return home, np.int32(distance) + np.int32(1)


@njit(cache=True)
def _count(keys: U64, table: I32, found: U64, counts: I64, index: I32) -> int:
    """Count the chunk exactly; the number of distinct keys."""
    mask = len(table) - 1
    table[:] = 0
    n = 0
    for i in range(len(keys)):
        key = keys[i]
        at = probe_from(key, mask)
        while True:
            j = table[at]
            if j == 0:
                found[n] = key
                counts[n] = 1
                index[i] = n
                n += 1
                table[at] = n
                break
            if found[j - 1] == key:
                counts[j - 1] += 1
                index[i] = j - 1
                break
            at = (at + 1) & mask
    return n


@njit(cache=True)
def _find_homes(keys: U64, homes: I32, steps: I32, owners: I32, seed: np.uint64, seeded: bool, n_workers: int) -> None:
    for j in range(len(keys)):
        homes[j], steps[j] = _home_and_step(keys[j], owners, seed, seeded, n_workers)


@njit(cache=True)
def _remember(work: Chunk, n: int, frequency: F32) -> int:
    """Add the chunk to the long-run counters; the number of counters that are in use from now on."""
    fresh, mask = 0, len(frequency) - 1
    for j in range(n):
        cell = spill.cell_of(work.keys[j], mask)
        fresh += frequency[cell] == 0.0
        frequency[cell] += work.counts[j]
    return fresh


@njit(cache=True)
def _open(work: Chunk, all_flows: Flows, n_split: int) -> None:
    """List the flows that each split key is dealt out to."""
    at = 0
    for a in range(n_split):
        j = work.order[a]
        work.starts[j] = work.turns[j] = at
        flow = all_flows.first[work.slots[j]]
        while flow >= 0:
            if all_flows.quotas[flow] > 0:
                work.dealt[at] = flow
                at += 1
            flow = all_flows.following[flow]
        work.lengths[j] = at - work.starts[j]


@njit(cache=True)
def _deal(
    index: I32,
    homes: I32,
    slots: I32,
    dealt: I32,
    starts: I32,
    lengths: I32,
    turns: I32,
    workers: I32,
    quotas: I64,
    out: I32,
) -> None:
    """Route: whole keys home, split ones in turn to each of their flows that has some of its quota left."""
    for i in range(len(out)):
        j = index[i]
        if slots[j] < 0:
            out[i] = homes[j]
            continue
        turn = turns[j]
        flow = dealt[turn]
        out[i] = workers[flow]
        quotas[flow] -= 1
        if quotas[flow] == 0:
            lengths[j] -= 1
            dealt[turn] = dealt[starts[j] + lengths[j]]
        else:
            turn += 1
        turns[j] = turn if turn < starts[j] + lengths[j] else starts[j]
