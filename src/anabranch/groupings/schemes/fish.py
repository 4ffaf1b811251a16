"""FISH."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F64, I32, I64, U64
from anabranch.containers import slot_table
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Report
from anabranch.groupings.schemes.candidates import Candidates, Lines, fill_line
from anabranch.groupings.schemes.head import distinct_choices, fewest_choices
from anabranch.groupings.speeds import SPEEDS, MeasuringRouter
from anabranch.kernels import njit
from anabranch.sketches import EpochCounters, epoch_counters
from anabranch.sketches.epoch_counters import IN_EPOCH, LARGEST, TOTAL, USED, EpochArrays

# Arrays of a router's state that are not its counters'.
_OWN = ("assigned", "backlog", "meta", "tally", *SPEEDS)
# Cells of the router's `meta` and `tally` arrays: the paper's t_pri and N_epoch; tuples, the candidates that they had,
# and the d that was solved for last.
_DRAINED_AT, _EPOCH = 0, 1
_TUPLES, _CANDIDATES, _SOLVED = 0, 1, 2

# The d-choices ablation solves for d every so many tuples, with this tolerance.
_SOLVE_EVERY, _EPSILON = 100, 1e-4

_CHK, _D_CHOICES, _W_CHOICES = 0, 1, 2
_HOT = {"chk": _CHK, "d-choices": _D_CHOICES, "w-choices": _W_CHOICES}


@dataclass(frozen=True)
class Fish(Grouping):
    """Recent hot keys get workers by their frequency, each tuple the worker with the shortest wait.

    When to use it: hot keys that change over time, workers of different speed, workers that come and go.

    Guarantees
    ----------
    A key has at most two candidates while it is not hot. While it is hot it has at most n_workers / 2^i (or d_min), if
    its frequency has been at most 2^−i of the highest ever since it got its counter.

    Parameters
    ----------
    epoch
        Tuples between two decays of the counts, the paper's N_epoch; default max(1000, 40 n_workers). Like `capacity`
        it goes by the workers that the router was built for.
    alpha
        What remains of a count after an epoch; 1 switches epochs off.
    theta
        A key is hot above this share of the recent tuples; default 1 / (4 n_workers).
    capacity
        Counters, the paper's K_max; default max(1000, 10 n_workers).
    d_min
        Fewest candidates of a hot key.
    interval_s
        Backlogs are brought up to date every so many seconds, the paper's T.
    virtual_nodes
        Points per worker on the consistent-hash ring.
    hot_keys
        "chk": graded numbers of workers (Algorithm 2). "d-choices", "w-choices": the ablations with Nasir's handling,
        d being solved for every 100 tuples.
    assignment
        "waiting-time": by inferred backlog and speed (Algorithm 3). "count": by tuples sent, the ablation.
    hashing
        "ring": candidates from the consistent-hash ring. "modulo": the ablation without it.

    Examples
    --------
    >>> import numpy as np
    >>> router = Fish().build(n_workers=4)
    >>> sorted(router.route(np.zeros(8, dtype=np.uint64)).tolist())
    [0, 0, 1, 1, 2, 2, 3, 3]

    References
    ----------
    "Efficient time-evolving stream processing at scale" (FISH), sections 4 and 5. Ours: epoch and capacity grow with
    the workers (the paper's 1000 and 1000 make nearly every key hot with 128 workers); d is the floor of
    n_workers / 2^index; a key's frequency is its count over the decayed total; its number of workers M_k is forgotten
    when it loses its counter (the paper never shrinks it); an assignment is counted once, in C_w (the paper adds it in
    line 18 and again as N_w in line 7); each of S sources drains T / (S · P_w) tuples, not T / P_w; nothing is drained
    before the first report of P_w; P_w is an average over reports, shrunk towards the mean of all workers as far as
    their differences could be noise.
    """

    name = "fish"
    paper = "FISH (time-evolving streams)"

    epoch: int | None = None
    alpha: float = 0.2
    theta: float | None = None
    capacity: int | None = None
    d_min: int = 2
    interval_s: float = 10.0
    virtual_nodes: int = 100
    hot_keys: str = "chk"
    assignment: str = "waiting-time"
    hashing: str = "ring"

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ConfigError(f"alpha must be from 0 to 1, got {self.alpha}")
        if self.theta is not None and not 0 < self.theta <= 1:
            raise ConfigError(f"theta must be above 0 and at most 1, got {self.theta}")
        if not self.interval_s > 0:
            raise ConfigError(f"interval_s must be above 0, got {self.interval_s}")
        for name in ("epoch", "capacity", "d_min", "virtual_nodes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be at least 1, got {value}")
        for name, allowed in (
            ("hot_keys", tuple(_HOT)),
            ("assignment", ("waiting-time", "count")),
            ("hashing", ("ring", "modulo")),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return FishRouter(self, n_workers, source, n_sources, seed)


class FishRouter(MeasuringRouter):
    """FISH in one source.

    `backlog` is C_w in tuples, `seconds` is P_w in seconds per tuple as estimated from `measured` over so many
    `reports`, `assigned` is M_k per slot of the counters.
    """

    grouping: Fish

    def __init__(self, grouping: Fish, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        epoch = grouping.epoch or max(1000, 40 * n_workers)
        self.counters = EpochCounters(grouping.capacity or max(1000, 10 * n_workers), epoch, grouping.alpha)
        self.assigned = np.zeros(self.counters.capacity, dtype=np.int32)
        self.backlog = np.zeros(n_workers)
        self.meta = np.array([0.0, epoch])
        self.tally = np.zeros(3, dtype=np.int64)
        self.candidates = self._make_candidates()

    @property
    def mean_candidates(self) -> float:
        """Candidates a tuple had, on average."""
        return float(self.tally[_CANDIDATES] / self.tally[_TUPLES]) if self.tally[_TUPLES] else 0.0

    def _make_candidates(self) -> Candidates:
        return Candidates(self.workers, self.grouping.hashing, self.grouping.virtual_nodes, self.seed)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        pairs = self.candidates.pairs(keys)
        begin = 0
        while begin < len(keys):
            self._drain(now + begin * self.step_s)
            part = slice(begin, self._next_drain(begin, len(keys), now))
            self._route_part(keys[part], tuple(column[part] for column in pairs), out[part])
            begin = part.stop

    def _route_part(self, keys: U64, pairs: tuple[I32, ...], out: I32) -> None:
        grouping = self.grouping
        seconds = self.seconds if grouping.assignment == "waiting-time" else np.ones(self.n_workers)
        queues = _Queues(self.backlog, seconds, self.backlog * seconds)
        rule = _Rule(
            epoch=int(self.meta[_EPOCH]),
            alpha=grouping.alpha,
            theta=grouping.theta or 1 / (4 * self.n_workers),
            d_min=min(grouping.d_min, self.n_workers),
            hot_keys=_HOT[grouping.hot_keys],
            rotation=self.rotation,
        )
        _route(keys, pairs, self.candidates.lines, self.counters.state, self.assigned, queues, self.tally, rule, out)

    def _drain(self, now: float) -> None:
        """Lines 3–10 of Algorithm 3: what the workers will have served since the last time."""
        if np.isnan(self.meta[_DRAINED_AT]):
            self.meta[_DRAINED_AT] = now
        if now - self.meta[_DRAINED_AT] <= self.grouping.interval_s:
            return
        if self.grouping.assignment == "waiting-time" and self.reports.any():
            served = (now - self.meta[_DRAINED_AT]) / (self.n_sources * self.seconds)
            np.maximum(self.backlog - served, 0.0, out=self.backlog)
        self.meta[_DRAINED_AT] = now

    def _next_drain(self, begin: int, end: int, now: float) -> int:
        """The first tuple after `begin`, before `end`, with which backlogs are brought up to date again."""
        if self.step_s <= 0:
            return end
        due = self.meta[_DRAINED_AT] + self.grouping.interval_s
        at = int(np.clip((due - now) / self.step_s, begin, end))
        while at < end and (at == begin or now + at * self.step_s - self.meta[_DRAINED_AT] <= self.grouping.interval_s):
            at += 1
        return at

    def begin_window(self) -> None:
        """Zero the backlogs; time before the window drains nothing of what comes in it."""
        self.backlog[:] = 0
        self.meta[_DRAINED_AT] = np.nan

    def report(self) -> Report:
        keys, counts = self.counters.top()
        return Report(tuples=round(self.counters.total), hot_keys=keys, hot_counts=np.rint(counts).astype(np.int64))

    def follow(self, plan: Plan) -> None:
        """Take the pooled recent counts for this source's own, and the pooled speeds."""
        counts = plan.hot_counts / self.n_sources
        self.counters.load(plan.hot_keys, counts, plan.tuples / self.n_sources)
        self.assigned[:] = 0
        self._follow_speeds(plan)

    def _resize(self, previous: I64) -> None:
        stayed = previous >= 0
        backlog = self.backlog[previous[stayed]]
        self.backlog = np.full(self.n_workers, backlog.mean() if len(backlog) else 1.0)
        self.backlog[stayed] = backlog
        self._resize_speeds(previous)
        self.candidates = self._make_candidates()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        own = {name: getattr(self, name) for name in _OWN}
        return {**own, **{f"counters.{name}": array for name, array in self.counters.state._asdict().items()}}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.counters.state = EpochArrays(*(arrays.pop(f"counters.{name}") for name in EpochArrays._fields))
        for name, array in arrays.items():
            setattr(self, name, array)
        self.candidates = self._make_candidates()


class _Queues(NamedTuple):
    """The workers' queues: how many tuples wait, how many seconds one of them takes, and the product of the two."""

    backlog: F64
    seconds: F64
    wait: F64


class _Rule(NamedTuple):
    """The parameters as numbers. Of workers that wait equally long the first from `rotation` on is taken."""

    epoch: int
    alpha: float
    theta: float
    d_min: int
    hot_keys: int
    rotation: int


@njit(cache=True)
def _route(
    keys: U64,
    pairs: tuple[I32, ...],
    lines: Lines,
    counters: EpochArrays,
    assigned: I32,
    queues: _Queues,
    tally: I64,
    rule: _Rule,
    out: I32,
) -> None:
    """Count each tuple's key, let its recent frequency say how many candidates it has, and take the shortest queue.

    1. count      an epoch ends where it is full; a new key takes over the least counter
    2. candidates d = 2; for a hot key, above theta of the recent tuples, as `hot_keys` says
    3. worker     d = 2: the better of two; d = n: the best of all; in between: the best of the key's list, which
                  is kept in one of the `lines` until another key or a longer list needs the line
    """
    first, second, places = pairs
    lists, list_keys, list_sizes, owners = lines
    counts, monitored, table, where, heap, floors, sums, sizes = counters
    backlog, seconds, wait = queues
    epoch, alpha, theta, d_min, hot_keys, rotation = rule
    n = len(backlog)
    for i in range(len(keys)):
        if sizes[IN_EPOCH] == epoch:
            epoch_counters.end_epoch(counts, heap, floors, sums, sizes, alpha)
        at = slot_table.place_of(keys[i], monitored, table)
        slot = table[at] - 1
        if slot < 0:
            slot = epoch_counters.enter(counts, monitored, table, where, heap, floors, sizes, keys[i], at)
            assigned[slot] = 0
        count = epoch_counters.count_once(counts, sums, sizes, slot)

        if hot_keys == _D_CHOICES and tally[_TUPLES] % _SOLVE_EVERY == 0:
            tally[_SOLVED] = _head_choices(counts[: sizes[USED]], theta, sums[TOTAL], n)
        d = 2
        if count > theta * sums[TOTAL]:
            if hot_keys == _CHK:
                d = max(_graded_choices(count, sums[LARGEST], d_min, n), assigned[slot])
                assigned[slot] = d
            else:
                d = n if hot_keys == _W_CHOICES else tally[_SOLVED]

        if d >= n:
            d = n
            worker = _shortest_wait(wait, rotation)
        elif d <= 2:
            worker = second[i] if d == 2 and wait[second[i]] < wait[first[i]] else first[i]
        else:
            line = slot % len(lists)
            if list_keys[line] != keys[i] or list_sizes[line] < d:
                fill_line(lists[line], d, first[i], second[i], places[i], owners, n)
                list_keys[line], list_sizes[line] = keys[i], d
            worker = _shortest_listed(wait, lists, line, d)

        backlog[worker] += 1
        wait[worker] = backlog[worker] * seconds[worker]
        tally[_TUPLES] += 1
        tally[_CANDIDATES] += d
        out[i] = worker


@njit(cache=True, inline="always")
def _graded_choices(count: float, top: float, d_min: int, n: int) -> int:
    """Algorithm 2: half as many workers for each halving of the frequency."""
    _, exponent = math.frexp(top / count)
    return max(n >> min(exponent - 1, 31), d_min)


@njit(cache=True)
def _head_choices(counts: F64, theta: float, total: float, n: int) -> int:
    """Nasir's d for the keys that are hot of late."""
    hot = counts[counts > theta * total] / total
    return distinct_choices(fewest_choices(np.sort(hot)[::-1], _EPSILON, n), n)


@njit(cache=True, inline="always")
def _shortest_wait(wait: F64, rotation: int) -> int:
    """The worker with the shortest wait, the first of them from `rotation` on, around."""
    worker = rotation
    shortest = wait[rotation]
    for j in range(rotation + 1, len(wait)):
        if wait[j] < shortest:
            shortest = wait[j]
            worker = j
    for j in range(rotation):
        if wait[j] < shortest:
            shortest = wait[j]
            worker = j
    return worker


@njit(cache=True, inline="always")
def _shortest_listed(wait: F64, lists: I32, line: int, d: int) -> int:
    """The worker with the shortest wait of the first `d` in a line."""
    worker = lists[line, 0]
    shortest = wait[worker]
    for j in range(1, d):
        if wait[lists[line, j]] < shortest:
            worker = lists[line, j]
            shortest = wait[worker]
    return int(worker)
