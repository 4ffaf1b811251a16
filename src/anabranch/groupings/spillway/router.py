"""The router of Spillway: counts a chunk, plans for it, routes it, and tells others what it made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F64, I32, I64, U64
from anabranch.groupings.plan import Plan, Report, pack_table
from anabranch.groupings.speeds import SPEEDS, MeasuringRouter
from anabranch.groupings.spillway import allowance, arcs, flows, spill, tuples
from anabranch.groupings.spillway.chunk import Chunk, work_space
from anabranch.groupings.spillway.flow_tables import flows_of, table_of
from anabranch.groupings.spillway.flows import Flows

if TYPE_CHECKING:
    from anabranch.groupings.spillway.spillway import Spillway

# Chunks over which it is learnt what rare keys usually bring to a worker.
_USUAL = 16.0
# How fast a worker that was ahead is forgiven, in parts of how fast it was noticed. Slower, and a worker would give way
# for what is long past.
_FADING = 0.1
# Part of its target that a worker makes up for in a chunk. More would leave it idle.
_MOST_AHEAD = 0.5
# The golden ratio: sums are rounded from another number in each source, far from those of the others, or all sources
# would give the same workers the tuple more.
_ROUNDING_STEP = 0.618033988749
# Chunks after which a flow that carried nothing is no longer told to other sources.
_RECENT = 64
_OWN = ("frequency", "offsets", "usual", "meta", "arcs", *SPEEDS)


class SpillwayRouter(MeasuringRouter):
    """Spillway in one source.

    `frequency` counts tuples by a part of the key's hash, `offsets` is what a worker is ahead of its target again and
    again, `usual` the part of all tuples that rare keys bring to it. `meta` has the numbers that `allowance` goes by.
    """

    grouping: Spillway

    def __init__(self, grouping: Spillway, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.chunk = grouping.chunk or max(10_000, 100 * n_workers)
        self.flows = flows.empty(grouping.capacity or max(16_384, 4 * n_workers))
        self.frequency = np.zeros(allowance.CELLS, np.float32)
        self.meta = np.zeros(allowance.META)
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
        n = tuples.count(keys, work.table, work.keys, work.counts, work.index_of)
        self._find_homes(work.keys[:n], work.homes, work.steps)
        allowance.learn_keys(self.meta, tuples.remember(work, n, self.frequency), len(keys))
        work.targets[:] = self._shares() * len(keys)
        work.loads[:] = 0.0
        n_split = self._plan(work, n)
        self._carry_over(work)
        tuples.deal(work, self.flows, n_split, out)
        self.flows.counts[flows.CHUNKS] += 1
        flows.make_room(self.flows)

    def _plan(self, work: Chunk, n: int) -> int:
        grouping, before = self.grouping, self.n_replicas
        allowed = allowance.allowance(self.meta, self.n_workers, self.n_sources, grouping.tolerance, grouping.budget)
        n_split = spill.place(work, self.flows, n)
        if self.n_sources > 1:
            self._learn_usual(work)
        rounding = (0.5 + _ROUNDING_STEP * self.source) % 1.0
        ahead = self._ahead(work.targets)
        n_split = spill.plan(work, self.flows, n, n_split, self.frequency, ahead, allowed, self._most, rounding)
        self.meta[allowance.REPLICAS] += self.n_replicas - before
        return n_split

    def _learn_usual(self, work: Chunk) -> None:
        """Say what rare keys have brought to each worker so far, in the beginning by its share; then learn from now."""
        whole = work.targets.sum()
        now = work.rare / whole
        if self.meta[allowance.LEARNT] == 0:
            self.usual[:] = now.sum() * work.targets / whole
        work.usual[:] = self.usual * whole
        self.meta[allowance.LEARNT] += 1
        self.usual += (now - self.usual) / min(self.meta[allowance.LEARNT] + 1, _USUAL)

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

    def _carry_over(self, work: Chunk) -> None:
        """Remember who was above its target, so that a source whose own noise hides it finds out in time."""
        if self.n_sources == 1 or self.meta[allowance.POOLED]:
            return
        memory = self.grouping.memory
        self.offsets *= 1 - _FADING / memory
        self.offsets += (work.loads - work.targets) / memory
        # What a worker was below its target is past: to make up for it would overload it now.
        np.clip(self.offsets, 0.0, _MOST_AHEAD * work.targets, out=self.offsets)

    def plan_counts(self, plan: Plan) -> None:
        """Plan for the counts of `plan` instead of a chunk: what the planned edge does between batches."""
        # A key without tuples has nothing to spill.
        there = plan.hot_counts > 0
        n = int(np.count_nonzero(there))
        work = self._space(n)
        work.keys[:n], work.counts[:n] = plan.hot_keys[there], plan.hot_counts[there]
        self._find_homes(work.keys[:n], work.homes, work.steps)
        self.meta[allowance.IN_USE] += tuples.remember(work, n, self.frequency)
        cold = max(0, plan.tuples - int(plan.hot_counts.sum()))
        known = len(plan.cold_tuples) == self.n_workers
        work.loads[:] = plan.cold_tuples if known else cold * self._shares()
        work.targets[:] = self._shares() * (work.loads.sum() + plan.hot_counts.sum())
        self._plan(work, n)

    def homes_of(self, keys: U64) -> I32:
        """Home worker of each key."""
        homes, steps = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
        self._find_homes(keys, homes, steps)
        return homes

    def _find_homes(self, keys: U64, homes: I32, steps: I32) -> None:
        """Write the home of each key, and the step in which it tries other workers."""
        arcs.find_homes(keys, self.arcs, self.n_workers, self.seed, homes, steps)

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
        self.meta[allowance.POOLED] = 1.0
        self.offsets[:] = 0.0
        if plan.n_keys:
            allowance.learn_number_of_keys(self.meta, plan.n_keys)
        if plan.table is None:
            return
        keys, workers, parts = flows_of(plan.table)
        position = np.full(max(int(workers.max(initial=0)), int(self.workers.max())) + 1, -1, np.int32)
        position[self.workers] = np.arange(self.n_workers, dtype=np.int32)
        alive = position[workers] >= 0
        keys, workers, parts = keys[alive], position[workers[alive]], parts[alive]
        flows.learn(self.flows, keys, self.homes_of(keys), workers, parts, self._most)
        self.meta[allowance.REPLICAS] = max(self.meta[allowance.REPLICAS], self.n_replicas)

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
        self.meta[allowance.LEARNT] = 0.0
        self._resize_speeds(previous)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        own = {name: getattr(self, name) for name in _OWN}
        return {**own, **{f"flows.{name}": array for name, array in self.flows._asdict().items()}}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.flows = Flows(*(arrays[f"flows.{name}"] for name in Flows._fields))
        for name in _OWN:
            setattr(self, name, arrays[name])
        self.work = None
