"""D-Choices and W-Choices: a head of hot keys found by SpaceSaving, a tail with two choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F64, I32, I64, U64
from anabranch.containers import ordered_counters, slot_table
from anabranch.containers.ordered_counters import OrderedCounters
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router, carry_over
from anabranch.groupings.plan import Plan, Report, Table, to_all
from anabranch.groupings.schemes.partial_key import least_loaded_candidate
from anabranch.hashing import HashFamily, MultiplyShift
from anabranch.kernels import njit
from anabranch.sketches import SpaceSaving, space_saving
from anabranch.sketches.space_saving import Summary

# Cells of the router's `meta` array.
_TOTAL, _CHOICES, _SOLVE_AT = 0, 1, 2


@dataclass(frozen=True)
class HeadGrouping(Grouping):
    """What D-Choices and W-Choices have in common: which keys are hot."""

    theta: float | None = None
    capacity: int | None = None
    family: HashFamily = field(default=MultiplyShift())

    def __post_init__(self) -> None:
        if self.theta is not None and not 0 < self.theta <= 1:
            raise ConfigError(f"theta must be above 0 and at most 1, got {self.theta}")
        if self.capacity is not None and self.capacity < 1:
            raise ConfigError(f"capacity must be at least 1, got {self.capacity}")

    def threshold(self, n_workers: int) -> float:
        """Share from which a key is hot."""
        return 1 / (5 * n_workers) if self.theta is None else self.theta


@dataclass(frozen=True)
class DChoices(HeadGrouping):
    """Hot keys to the least loaded of just enough candidates, the others to the better of two.

    When to use it: high skew with many workers, where two choices are too few and all workers cost too much memory.

    Guarantees
    ----------
    A key that was never hot has at most two replicas.

    Parameters
    ----------
    theta
        A key is hot when its share of the source's tuples is at least this; default 1 / (5 n_workers).
    capacity
        SpaceSaving counters per source; default max(1000, 10 n_workers), by the workers that the router was built for.
        With too few, most keys look hot.
    family
        Hash family of the candidates.
    epsilon
        Tolerated imbalance, as a share of the tuples, when solving for the number of choices.

    Examples
    --------
    >>> import numpy as np
    >>> router = DChoices().build(n_workers=4)
    >>> sorted(router.route(np.zeros(8, dtype=np.uint64)).tolist())
    [0, 0, 1, 1, 2, 2, 3, 3]

    References
    ----------
    Nasir et al., "When two choices are not enough" (ICDE 2016), section IV. d is solved again after every twentieth of
    the tuples (at least 100, at most 10 000), not after each; it is at least 2. The paper's d hash functions may
    coincide; ours takes as many distinct candidates as they reach in expectation, n − n ((n − 1)/n)^d.
    """

    name = "d-choices"
    paper = "Nasir et al. 2016 (D-C)"

    epsilon: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.epsilon >= 0:
            raise ConfigError(f"epsilon must be at least 0, got {self.epsilon}")

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return HeadRouter(self, n_workers, source, n_sources, seed, epsilon=self.epsilon)


@dataclass(frozen=True)
class WChoices(HeadGrouping):
    """Hot keys to the least loaded of all workers, the others to the better of two.

    When to use it: very high skew, where the few hot keys may have a replica on every worker.

    Guarantees
    ----------
    A key that was never hot has at most two replicas.

    Parameters
    ----------
    theta
        A key is hot when its share of the source's tuples is at least this; default 1 / (5 n_workers).
    capacity
        SpaceSaving counters per source; default max(1000, 10 n_workers), by the workers that the router was built for.
        With too few, most keys look hot.
    family
        Hash family of the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> router = WChoices().build(n_workers=4)
    >>> sorted(router.route(np.zeros(8, dtype=np.uint64)).tolist())
    [0, 0, 1, 1, 2, 2, 3, 3]

    References
    ----------
    Nasir et al., "When two choices are not enough" (ICDE 2016), section IV.
    """

    name = "w-choices"
    paper = "Nasir et al. 2016 (W-C)"

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return HeadRouter(self, n_workers, source, n_sources, seed, epsilon=None)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """Hot keys to all workers; a tail key goes home: a table cannot choose between two."""
        return to_all(plan.hot_keys[plan.hot_counts >= self.threshold(n_workers) * plan.tuples], n_workers)


class HeadRouter(Router):
    """Routes the tail as partial key grouping does and the head to the least loaded of more candidates.

    Parameters
    ----------
    grouping, n_workers, source, n_sources, seed
        As for every router.
    epsilon
        Tolerated imbalance when solving for the number of choices of the head; None gives the head all workers.
    """

    grouping: HeadGrouping

    def __init__(
        self, grouping: HeadGrouping, n_workers: int, source: int, n_sources: int, seed: int, *, epsilon: float | None
    ) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.epsilon = epsilon
        self.sketch = SpaceSaving(grouping.capacity or max(1000, 10 * n_workers))
        self.loads = ordered_counters.zeros(n_workers, self.rotation)
        self.meta = np.array([0, n_workers, 1], dtype=np.int64)

    @property
    def head_choices(self) -> int:
        """Candidates that a hot key has now."""
        return int(self.meta[_CHOICES])

    def _route(self, keys: U64, now: float, out: I32) -> None:
        first, second = self.grouping.family.pairs(keys, self.n_workers, self.seed)
        theta = self.grouping.threshold(self.n_workers)
        epsilon = -1.0 if self.epsilon is None else self.epsilon
        _route(keys, first, second, self.sketch.summary, self.loads, self.meta, theta, epsilon, out)

    def begin_window(self) -> None:
        ordered_counters.assign(self.loads, np.zeros(self.n_workers, dtype=np.int64), self.rotation)

    def report(self) -> Report:
        keys, counts, _ = self.sketch.top()
        return Report(tuples=int(self.meta[_TOTAL]), hot_keys=keys, hot_counts=counts)

    def follow(self, plan: Plan) -> None:
        """Take the pooled counts for this source's own: each source sees an equal share of every key."""
        counts = plan.hot_counts // self.n_sources
        kept = np.flatnonzero(counts > 0)[: self.sketch.capacity]
        self.meta[_TOTAL] = self.meta[_SOLVE_AT] = plan.tuples // self.n_sources
        self.sketch.load(plan.hot_keys[kept], counts[kept], np.zeros(len(kept), np.int64), int(self.meta[_TOTAL]))

    def _resize(self, previous: I64) -> None:
        self.loads = ordered_counters.holding(carry_over(self.loads.count, previous), self.rotation)
        self.meta[_CHOICES] = self.n_workers
        self.meta[_SOLVE_AT] = self.meta[_TOTAL]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        sketch = {f"sketch.{name}": array for name, array in self.sketch.summary._asdict().items()}
        return {"meta": self.meta, **self.loads._asdict(), **sketch}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.meta = arrays["meta"]
        self.loads = OrderedCounters(*(arrays[name] for name in OrderedCounters._fields))
        self.sketch.summary = Summary(*(arrays[f"sketch.{name}"] for name in Summary._fields))


@njit(cache=True)
def _route(
    keys: U64,
    first: I32,
    second: I32,
    summary: Summary,
    counted: OrderedCounters,
    meta: I64,
    theta: float,
    epsilon: float,
    out: I32,
) -> None:
    count, order, items, blocks, free, monitored, error, table, where = summary
    loads, load_order, load_items, load_blocks, load_free = counted
    n = len(loads)
    total, choices = meta[_TOTAL], meta[_CHOICES]
    for i in range(len(keys)):
        at = slot_table.place_of(keys[i], monitored, table)
        slot = table[at] - 1
        if slot < 0:
            slot = space_saving.enter(count, order, monitored, error, table, where, keys[i], at)
        ordered_counters.increment(count, order, items, blocks, free, slot, 1)
        total += 1
        if epsilon >= 0 and total >= meta[_SOLVE_AT]:
            choices = _candidates_of_head(count, order, total, theta, epsilon, n)
            meta[_SOLVE_AT] = total + min(max(total // 20, 100), 10_000)
        if count[slot] < theta * total:
            worker = first[i] if loads[first[i]] <= loads[second[i]] else second[i]
        elif choices >= n:
            worker = load_order[0]
        else:
            worker = least_loaded_candidate(first[i], second[i], choices, loads)
        ordered_counters.increment(loads, load_order, load_items, load_blocks, load_free, worker, 1)
        out[i] = worker
    meta[_TOTAL], meta[_CHOICES] = total, choices


@njit(cache=True, inline="always")
def distinct_choices(choices: int, n_workers: int) -> int:
    """Distinct workers that `choices` independent hashes reach in expectation: our candidates never coincide."""
    if choices >= n_workers:
        return n_workers
    return int(np.ceil(n_workers - n_workers * ((n_workers - 1) / n_workers) ** choices))


@njit(cache=True)
def _candidates_of_head(count: I64, order: I32, total: int, theta: float, epsilon: float, n_workers: int) -> int:
    return distinct_choices(solve_choices(count, order, total, theta, epsilon, n_workers), n_workers)


@njit(cache=True)
def solve_choices(count: I64, order: I32, total: int, theta: float, epsilon: float, n_workers: int) -> int:
    """The fewest choices of the head, given ascending counters; see `fewest_choices`."""
    size = 0
    while size < len(order) and count[order[len(order) - 1 - size]] >= max(1.0, theta * total):
        size += 1
    shares = np.empty(size)
    for h in range(size):
        shares[h] = count[order[len(order) - 1 - h]] / total
    return fewest_choices(shares, epsilon, n_workers)


@njit(cache=True)
def fewest_choices(shares: F64, epsilon: float, n_workers: int) -> int:
    """The fewest choices d ≥ 2 of the head for which no prefix of it overloads the workers it can reach.

    `shares` are those of the head H, descending. For every prefix h of it: Σ_{i≤h} p_i + (b/n)^d Σ_{h<i≤|H|} p_i +
    (b/n)² Σ_{i>|H|} p_i ≤ b (1/n + ε), where b = n − n ((n − 1)/n)^{hd} is the expected number of workers that the
    prefix reaches. n_workers where no d below it does.
    """
    n = n_workers
    head = 0.0
    for share in shares:
        head += share
    tail = max(0.0, 1.0 - head)
    for d in range(2, n):
        missed = 1.0
        step = ((n - 1) / n) ** d
        prefix = 0.0
        fits = True
        for share in shares:
            prefix += share
            missed *= step
            reached = n - n * missed
            part = reached / n
            if prefix + part**d * (head - prefix) + part * part * tail > reached * (1 / n + epsilon):
                fits = False
                break
        if fits:
            return d
    return n
