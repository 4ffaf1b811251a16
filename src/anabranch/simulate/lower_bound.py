"""What no grouping can beat on a stream: bounds on makespan and replication."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from anabranch.arrays import I64, U64
from anabranch.containers.hash_set import HashSet, insert
from anabranch.containers.key_counts import KeyCounts
from anabranch.errors import ConfigError
from anabranch.kernels import njit
from anabranch.simulate import source
from anabranch.simulate.settings import Settings
from anabranch.streams import Stream

# A capacity that is too small by rounding would claim too much, one too large by this share claims too little.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class ReplicationBound:
    """The least replication at a makespan.

    Parameters
    ----------
    makespan
        The makespan that a grouping keeps to.
    replication
        What it costs at least where no window has a larger makespan than this.
    replication_mean
        What it costs at least where only the makespan of the whole run, the mean over windows that `simulate` gives, is
        no larger: it can let one window go and spare its replicas. What the most demanding of the others needs.
    replication_total
        The same with what all windows need: more where hot keys change from window to window, never less.
    """

    makespan: float
    replication: float
    replication_mean: float
    replication_total: float


@dataclass(frozen=True)
class LowerBound:
    """What no grouping can beat on a stream, with workers of equal speed; see `bound`.

    Parameters
    ----------
    share
        Tuples that the fullest worker has in a window at least.
    makespan
        The least makespan.
    replications
        The least replication at the least makespan, then at each makespan that was asked for.
    replication_enough
        Replication, within one window alone, with which the least makespan can always be had: that of the worst window.
    """

    stream: str
    stream_parameters: dict[str, Any]
    workers: int
    sources: int
    tuples: int
    keys: int
    window: int
    seed: int
    share: int
    makespan: float
    replications: tuple[ReplicationBound, ...]
    replication_enough: float

    def record(self) -> dict[str, Any]:
        """One JSON record."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Window:
    """Keys that one worker cannot hold alone (fewer than workers), and how often they occur."""

    tuples: int
    distinct: int
    keys: U64
    counts: I64


_Choices = tuple[I64, I64, I64]
"""See `_choices`: the same for every makespan."""


def bound(
    stream: Stream,
    settings: Settings | None = None,
    *,
    makespans: Sequence[float] = (1.05,),
    progress: Callable[[int], None] | None = None,
) -> LowerBound:
    """Bound makespan and replication from below, for every grouping, in one pass over the stream.

    When to use it: to see how much there is to gain, before a better grouping is looked for.

    Guarantees
    ----------
    A worker has at least ⌈n/W⌉ of a window's n tuples: no makespan is smaller than W ⌈n/W⌉ / n. With at most
    C = max(⌊makespan · n/W⌋, ⌈n/W⌉) tuples per worker, a key with c tuples in the window is on at least ⌈c/C⌉ workers.
    Over the stream a key is on as many as its most demanding window needs, and every key on one: their sum / keys is
    `replication`, which is no smaller than what the most demanding window alone gives. As in `simulate` whole windows
    count, unless there is none. Memory grows with the distinct keys, and by less than W keys a window.

    Where only the mean of the makespans is given, windows may have different C, with the same sum. `replication_total`
    bounds what the best choice of them costs: each key counts in the window in which it has most, so that windows add
    up, and by Lagrange's rule, for every price of a tuple of C, the least that pairs and C cost together, less the
    price of all C, is no more than the pairs of the best choice; the price that gives most is looked for.

    What it does not say: which replication can be had. The fewest pairs of key and worker for one window is bin packing
    with items that may be cut, which is NP-hard, and this bounds it from below only; the best for all windows together
    is a larger combinatorial problem still, and a grouping that does not know the future may do worse than that.
    From above, McNaughton's wrap-around rule fills one worker after the other and cuts a key where one is full:
    distinct + W − 1 pairs are enough for one window at the least makespan (`replication_enough`), if all its tuples are
    known beforehand.

    Parameters
    ----------
    stream
        Where the tuples come from.
    settings
        Of these: workers, sources, window, seed and limit. Workers are equally fast and stay.
    makespans
        Makespans to bound the replication at, each at least 1, beside the least one.
    progress
        Called with the number of tuples done since the last call.

    Examples
    --------
    >>> from anabranch.streams import Zipf
    >>> found = bound(Zipf(n_tuples=100_000, n_keys=1000, z=1.4), Settings(n_workers=8))
    >>> found.makespan, found.share
    (1.0, 6250)
    >>> [(at.makespan, round(at.replication, 4)) for at in found.replications]
    [(1.0, 1.0031), (1.05, 1.002)]

    References
    ----------
    McNaughton, "Scheduling with deadlines and loss functions" (Management Science 6(1), 1959): the wrap-around rule.
    """
    settings = settings or Settings()
    _check(settings, makespans)
    keys = HashSet()
    tuples = 0
    windows: list[_Window] = []
    for n, counts in _window_counts(stream, settings, progress):
        window, distinct = _cut(n, *counts.result(), n_workers=settings.n_workers)
        keys.reserve(len(distinct))
        _insert_all(keys.table, keys.size, distinct)
        windows.append(window)
        tuples += n
    if len(windows) > 1 and windows[-1].tuples < settings.window_tuples:
        windows.pop()
    return _summed(stream, settings, windows, tuples, len(keys), makespans)


def _check(settings: Settings, makespans: Sequence[float]) -> None:
    if len(set(settings.speeds)) > 1 or settings.changes:
        raise ConfigError("a bound takes workers of equal speed that stay, got others; leave speeds and changes out")
    for makespan in makespans:
        if not 1 <= makespan < math.inf:
            raise ConfigError(f"makespan must be at least 1, got {makespan}; 1 is perfect balance")


def _window_counts(
    stream: Stream, settings: Settings, progress: Callable[[int], None] | None
) -> Iterator[tuple[int, KeyCounts]]:
    """Tuples and counts of each window; the last may be shorter."""
    counts, n = KeyCounts(), 0
    for tuples in source.read(stream, settings):
        rest = tuples.keys
        while len(rest):
            piece = rest[: settings.window_tuples - n]
            counts.update(piece)
            rest, n = rest[len(piece) :], n + len(piece)
            if n == settings.window_tuples:
                yield n, counts
                counts, n = KeyCounts(), 0
        if progress is not None:
            progress(len(tuples))
    if n:
        yield n, counts


def _cut(n: int, keys: U64, counts: I64, *, n_workers: int) -> tuple[_Window, U64]:
    """A window without the keys that fit into one worker, and all its keys."""
    heavy = counts > _share(n, n_workers)
    return _Window(n, len(keys), keys[heavy], counts[heavy]), keys


def _share(n: int, n_workers: int) -> int:
    return -(-n // n_workers)


@njit(cache=True)
def _insert_all(table: U64, size: I64, values: U64) -> None:
    for i in range(len(values)):
        insert(table, size, values[i])


def _summed(
    stream: Stream, settings: Settings, windows: list[_Window], tuples: int, n_keys: int, makespans: Sequence[float]
) -> LowerBound:
    n_workers = settings.n_workers
    n = windows[0].tuples
    share = _share(n, n_workers)
    least = share * n_workers / n
    described = dict(stream.describe())
    enough = max(min(w.distinct + n_workers - 1, n) / w.distinct for w in windows)
    choices = _choices(windows, share)
    return LowerBound(
        stream=str(described.pop("name")),
        stream_parameters=described,
        workers=n_workers,
        sources=settings.n_sources,
        tuples=tuples,
        keys=n_keys,
        window=settings.window_tuples,
        seed=settings.seed,
        share=share,
        makespan=least,
        replications=tuple(_replication(windows, choices, n_workers, n_keys, at) for at in (least, *makespans)),
        replication_enough=enough,
    )


def _replication(
    windows: list[_Window], choices: _Choices, n_workers: int, n_keys: int, makespan: float
) -> ReplicationBound:
    n = windows[0].tuples
    share = _share(n, n_workers)
    capacity = max(share, _floor(makespan * n / n_workers))
    extra = _extra_pairs(windows, capacity)
    total = _floor(makespan * n * len(windows) / n_workers)
    # Without room to spare every window has the least makespan, so all keep to it.
    spare = total > share * len(windows)
    if not spare:
        return ReplicationBound(makespan, *[1 + extra / n_keys] * 3)
    extra_mean = _extra_pairs_mean(windows, share, total)
    extra_total = max(extra_mean, _extra_pairs_total(choices, share, total))
    return ReplicationBound(makespan, 1 + extra / n_keys, 1 + extra_mean / n_keys, 1 + extra_total / n_keys)


def _floor(value: float) -> int:
    return math.floor(value * (1 + _ROUNDING))


def _extra_pairs(windows: list[_Window], capacity: int) -> int:
    """Pairs beyond one per key, where no worker has more than `capacity` tuples in any window."""
    keys, key = np.unique(np.concatenate([w.keys for w in windows]), return_inverse=True)
    extra = np.zeros(len(keys), dtype=np.int64)
    np.maximum.at(extra, key, (np.concatenate([w.counts for w in windows]) - 1) // capacity)
    return int(extra.sum())


def _extra_pairs_mean(windows: list[_Window], share: int, total: int) -> int:
    """Pairs beyond one per key that some window needs, where the capacities of all windows sum to `total`.

    The fewest for which every window's least capacity, added up, is within it.
    """
    counts = np.concatenate([w.counts for w in windows])
    ends = np.cumsum([len(w.counts) for w in windows])
    low, high = 0, max(int(((w.counts - 1) // share).sum()) for w in windows)
    while low < high:
        middle = (low + high) // 2
        if _least_capacities(counts, ends, share, middle) <= total:
            high = middle
        else:
            low = middle + 1
    return low


def _extra_pairs_total(choices: _Choices, share: int, total: int) -> int:
    """Pairs beyond one per key that all windows need, where their capacities sum to `total`: a bound from below."""
    capacities, pairs, starts = choices

    def at(price: float) -> float:
        return float(np.minimum.reduceat(pairs + price * capacities, starts).sum() - price * total)

    # Concave in the price: what is best on a grid is near the best, and any price gives a bound.
    prices = np.geomspace(0.01 / share, 100.0, 80)
    for _ in range(2):
        best = int(np.argmax([at(price) for price in prices]))
        prices = np.geomspace(prices[max(0, best - 1)], prices[min(best + 1, len(prices) - 1)], 20)
    # Pairs are whole, and rounding must not make one.
    return max(0, math.ceil(max(at(price) for price in prices) - 1e-6))


def _choices(windows: list[_Window], share: int) -> _Choices:
    """Capacities of each window at which it needs fewer pairs, and how many then; and where each window begins.

    A key counts in the window in which it has most.
    """
    keys = np.concatenate([w.keys for w in windows])
    counts = np.concatenate([w.counts for w in windows])
    window = np.repeat(np.arange(len(windows)), [len(w.keys) for w in windows])
    order = np.lexsort((-counts, keys))
    first = order[np.append(True, keys[order][1:] != keys[order][:-1])] if len(keys) else order
    capacities: list[I64] = []
    pairs: list[I64] = []
    for number in range(len(windows)):
        mine = counts[first[window[first] == number]]
        cuts = [(count - 1) // np.arange(1, (count - 1) // share + 1) + 1 for count in mine]
        found = np.unique(np.concatenate([np.array([share]), *cuts]))
        capacities.append(found)
        pairs.append(np.sum((mine - 1) // found[:, None], axis=1))
    starts = np.cumsum([0, *map(len, capacities[:-1])])
    return np.concatenate(capacities), np.concatenate(pairs), starts


@njit(cache=True)
def _least_capacities(counts: I64, ends: I64, share: int, extra: int) -> int:
    """Sum over windows of the least capacity, from `share` on, that needs at most `extra` pairs beyond one per key."""
    total, begin = 0, 0
    for end in ends:
        low, high = share, share
        for i in range(begin, end):
            high = max(high, counts[i])
        while low < high:
            middle = (low + high) // 2
            needed = 0
            for i in range(begin, end):
                needed += (counts[i] - 1) // middle
            if needed <= extra:
                high = middle
            else:
                low = middle + 1
        total += low
        begin = end
    return total
