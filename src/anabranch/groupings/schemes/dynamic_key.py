"""Dynamic key grouping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import F64, I8, I32, I64, U64
from anabranch.containers import slot_table
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router, carry_over
from anabranch.hashing import MultiplyShift
from anabranch.kernels import njit

_BABY, _TEENAGE, _OLD = 0, 1, 2
# Cells of the router's `times` and `tally` arrays.
_STARTED, _NEXT_TEENAGE, _NEXT_OLD = 0, 1, 2
_TOTAL, _SCALE_OUTS, _SCALE_DOWNS = 0, 1, 2


@dataclass(frozen=True)
class DynamicKeyGrouping(Grouping):
    """Keys that stay frequent grow old; only old keys are spread over more than two workers.

    When to use it: one or few keys with a large share of the tuples for a long time.

    Guarantees
    ----------
    - A key that was never old has two candidates, next to each other.
    - A key has at most ⌊100 / T⌋ + 1 candidates, T being the threshold in percent, unless `whole_percents`.

    Parameters
    ----------
    expected_keys
        Size of the key space: a tenth of it is old, four tenths teenage, half baby.
    warm_up_s
        No key is scaled out before.
    teenage_s, old_s
        Every so many seconds keys are promoted to the teenage and to the old space.
    check_s
        A key is checked for scaling at most once in so many seconds.
    decay
        What remains of each count after a teenage cycle; 1 never forgets.
    whole_percents
        As the reference code: loads and thresholds are cut to whole percents, and the maximum is not enforced.

    Examples
    --------
    >>> import numpy as np
    >>> router = DynamicKeyGrouping().build(n_workers=10)
    >>> routes = router.route(np.zeros(100_000, dtype=np.uint64), now=0.0, step_s=0.002)
    >>> sorted(set(routes[:1000].tolist())), len(set(routes.tolist()))
    ([0, 1], 8)

    References
    ----------
    "Dynamic key grouping" (Dalabasmaz), section 4, Algorithms 1 to 6, Table 1. Ours: real-valued loads, the maximum of
    machines enforced, counts that decay, scaling checked every second; `whole_percents=True, decay=1, check_s=60` is
    the reference code. Free places of a space are filled before places are exchanged (Algorithm 3 would leave an empty
    space empty).
    """

    name = "dynamic-key"
    paper = "Dynamic key grouping (DKG)"
    keeps_router = True

    expected_keys: int = 100
    warm_up_s: float = 15.0
    teenage_s: float = 15.0
    old_s: float = 60.0
    check_s: float = 1.0
    decay: float = 0.5
    whole_percents: bool = False

    def __post_init__(self) -> None:
        if self.expected_keys < 10:
            raise ConfigError(f"expected_keys must be at least 10, got {self.expected_keys}")
        for name in ("teenage_s", "old_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("warm_up_s", "check_s"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not 0 < self.decay <= 1:
            raise ConfigError(f"decay must be above 0 and at most 1, got {self.decay}")

    @property
    def warm_up(self) -> tuple[int, float]:
        """Until the first keys are old."""
        return 0, max(self.warm_up_s, self.old_s)

    def threshold(self, n_workers: int) -> float:
        """Load in percent from which a key is scaled out: L_i + √L_i with L_i = 100 / n_workers."""
        ideal = 100 / n_workers
        threshold = ideal + math.sqrt(ideal)
        return math.floor(threshold) if self.whole_percents else threshold

    def max_workers(self, n_workers: int) -> int:
        """Most workers of one key."""
        if self.whole_percents:
            return n_workers
        return min(n_workers, math.floor(100 / self.threshold(n_workers)) + 1)

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return DynamicKeyRouter(self, n_workers, source, n_sources, seed)


class Items(NamedTuple):
    """Key items: the key, how often it occurred, its space, its number of workers and when it was last checked."""

    keys: U64
    counts: F64
    spaces: I8
    spread: I32
    checked: F64


def _items(capacity: int) -> Items:
    return Items(
        keys=np.zeros(capacity, dtype=np.uint64),
        counts=np.zeros(capacity),
        spaces=np.zeros(capacity, dtype=np.int8),
        spread=np.full(capacity, 2, dtype=np.int32),
        checked=np.full(capacity, -np.inf),
    )


class DynamicKeyRouter(Router):
    """Dynamic key grouping in one source."""

    grouping: DynamicKeyGrouping

    def __init__(self, grouping: DynamicKeyGrouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.loads = np.zeros(n_workers, dtype=np.int64)
        self.tally = np.zeros(3, dtype=np.int64)
        self.times = np.array([np.nan, 0.0, 0.0])
        # When the next tuple would come. Batches may begin before the last one ended: their pace is only estimated.
        self.latest = np.full(1, -np.inf)
        self.size = np.zeros(1, dtype=np.int64)
        self.items = _items(1024)
        self.table = slot_table.empty(1024)

    @property
    def scale_outs(self) -> int:
        """Times that a key got another worker."""
        return int(self.tally[_SCALE_OUTS])

    @property
    def scale_downs(self) -> int:
        """Times that a key lost a worker."""
        return int(self.tally[_SCALE_DOWNS])

    def _route(self, keys: U64, now: float, out: I32) -> None:
        now = max(now, float(self.latest[0]))
        self.latest[0] = now + len(keys) * self.step_s
        if np.isnan(self.times[_STARTED]):
            self.times[:] = now, now + self.grouping.teenage_s, now + self.grouping.old_s
        homes = MultiplyShift().first(keys, self.n_workers, self.seed)
        grouping = self.grouping
        rule = _Rule(
            grouping.threshold(self.n_workers),
            grouping.max_workers(self.n_workers),
            grouping.warm_up_s,
            grouping.check_s,
            grouping.whole_percents,
        )
        done = 0
        while done < len(keys):
            self._cycle(now + done * self.step_s)
            if 2 * int(self.size[0]) >= len(self.items.keys):
                self._keep(np.arange(int(self.size[0])), 4 * int(self.size[0]))
            done = _route(
                keys,
                homes,
                done,
                now,
                self.step_s,
                self.items,
                self.table,
                self.size,
                self.loads,
                self.tally,
                self.times,
                rule,
                out,
            )

    def _cycle(self, now: float) -> None:
        """The key space manager: promote, discard and age when it is time."""
        grouping = self.grouping
        if now >= self.times[_NEXT_TEENAGE]:
            n_teenage, n_baby = 4 * grouping.expected_keys // 10, grouping.expected_keys // 2
            n = int(self.size[0])
            babies = np.flatnonzero(self.items.spaces[:n] == _BABY)
            others = np.flatnonzero(self.items.spaces[:n] != _BABY)
            heaviest = babies[np.argsort(-self.items.counts[babies], kind="stable")][:n_baby]
            self._keep(np.concatenate([others, heaviest]), 1024)
            self._promote(_BABY, _TEENAGE, n_teenage)
            self.items.counts[:] *= grouping.decay
            self.times[_NEXT_TEENAGE] = _next(self.times[_NEXT_TEENAGE], grouping.teenage_s, now)
        if now >= self.times[_NEXT_OLD]:
            self._promote(_TEENAGE, _OLD, grouping.expected_keys // 10)
            self.times[_NEXT_OLD] = _next(self.times[_NEXT_OLD], grouping.old_s, now)

    def _promote(self, lower: int, upper: int, capacity: int) -> None:
        """Algorithm 3: the upper space becomes the heaviest of both spaces; equals are exchanged."""
        spaces, counts = self.items.spaces[: int(self.size[0])], self.items.counts
        both = np.flatnonzero((spaces == lower) | (spaces == upper))
        order = np.lexsort((spaces[both], -counts[both]))
        spaces[both] = lower
        spaces[both[order[:capacity]]] = upper

    def _keep(self, kept: NDArray[np.intp], capacity: int) -> None:
        """Keep these items, in new arrays with room for more."""
        items, n = self.items, len(kept)
        size = max(1024, capacity, 4 * n)
        self.items = _items(size)
        for name in Items._fields:
            getattr(self.items, name)[:n] = getattr(items, name)[kept]
        self.size[0] = n
        self.table = slot_table.empty(size)
        slot_table.fill(self.items.keys, self.table, np.zeros(size, dtype=np.int32), n)

    def begin_window(self) -> None:
        """Zero the loads; a key is checked again when a check interval has passed, not against loads that are zero."""
        self.loads[:] = 0
        self.tally[_TOTAL] = 0
        self.items.checked[: int(self.size[0])] = np.nan

    def _resize(self, previous: I64) -> None:
        self.loads = carry_over(self.loads, previous)
        self.tally[_TOTAL] = self.loads.sum()
        np.minimum(self.items.spread, max(2, self.grouping.max_workers(self.n_workers)), out=self.items.spread)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        own = {name: getattr(self, name) for name in ("loads", "tally", "times", "latest", "size", "table")}
        return {**own, **{f"items.{name}": array for name, array in self.items._asdict().items()}}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.items = Items(*(arrays.pop(f"items.{name}") for name in Items._fields))
        for name, array in arrays.items():
            setattr(self, name, array)


def _next(due: float, period_s: float, now: float) -> float:
    return due + period_s * (math.floor((now - due) / period_s) + 1)


class _Rule(NamedTuple):
    """When a key is scaled out, how far, and how often that is looked at; the parameters as numbers."""

    threshold: float
    max_workers: int
    warm_up_s: float
    check_s: float
    whole_percents: bool


@njit(cache=True)
def _route(
    new: U64,
    homes: I32,
    begin: int,
    now: float,
    step_s: float,
    items: Items,
    table: I32,
    size: I64,
    loads: I64,
    tally: I64,
    times: F64,
    rule: _Rule,
    out: I32,
) -> int:
    """Route from `begin` on; return where it stopped because a cycle is due or the items are full."""
    keys, counts, spaces, spread, checked = items
    threshold, max_workers, warm_up_s, check_s, whole_percents = rule
    n = len(loads)
    due = min(times[_NEXT_TEENAGE], times[_NEXT_OLD])
    for i in range(begin, len(new)):
        time = now + i * step_s
        if time >= due:
            return i
        at = slot_table.place_of(new[i], keys, table)
        item = table[at] - 1
        if item < 0:
            if 2 * size[0] >= len(keys):
                return i
            item = np.int32(size[0])
            size[0] += 1
            keys[item] = new[i]
            table[at] = item + 1
        counts[item] += 1
        width = min(spread[item], n)
        worker, least, below = _least(loads, tally[_TOTAL], homes[i], width, threshold, whole_percents)
        if np.isnan(checked[item]):
            checked[item] = time
        due_check = time - checked[item] >= check_s and time - times[_STARTED] > warm_up_s
        if due_check and (spaces[item] == _OLD or width > 2):
            checked[item] = time
            if spaces[item] == _OLD and least >= threshold:
                other = (homes[i] + width) % n
                if width < max_workers and loads[other] < loads[worker]:
                    worker = other
                    spread[item] = width + 1
                    tally[_SCALE_OUTS] += 1
            elif width > 2 and below >= 2:
                spread[item] = width - 1
                tally[_SCALE_DOWNS] += 1
                worker, least, below = _least(loads, tally[_TOTAL], homes[i], width - 1, threshold, whole_percents)
        loads[worker] += 1
        tally[_TOTAL] += 1
        out[i] = worker
    return len(new)


@njit(cache=True, inline="always")
def _least(
    loads: I64, total: int, home: int, width: int, threshold: float, whole_percents: bool
) -> tuple[int, float, int]:
    """Least loaded of the candidates, its load in percent, and how many of them are below the threshold."""
    n = len(loads)
    per_tuple = 100.0 / total if total > 0 else 0.0
    worker = home
    below = 0
    for j in range(width):
        candidate = home + j if home + j < n else home + j - n
        if loads[candidate] < loads[worker]:
            worker = candidate
        load = loads[candidate] * per_tuple
        if whole_percents:
            load = np.floor(load)
        if load < threshold:
            below += 1
    least = loads[worker] * per_tuple
    if whole_percents:
        least = np.floor(least)
    return worker, least, below
