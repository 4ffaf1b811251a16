"""DStream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U16, U64
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Report, Table, to_all
from anabranch.hashing import MultiplyShift
from anabranch.kernels import njit
from anabranch.sketches import CoinSynopsis, CountingBloomFilter, coin_synopsis, counting_bloom_filter
from anabranch.sketches.coin_synopsis import Coin, CoinArrays, check_coin, heads_of, pool, shifted

# Signals that may be on their way to the filter.
_SIGNALS = 4096
# What a signal consists of, and its kinds.
_KEY, _KIND, _ARRIVAL = 0, 1, 2
_APPEND, _DELETE = np.uint64(1), np.uint64(0)
# Cells of the router's `meta` array: the next worker of the round robin, tuples so far, signals sent and applied.
_CURSOR, _POSITION, _SENT, _APPLIED = 0, 1, 2, 3


@dataclass(frozen=True)
class DStream(Grouping):
    """Hot keys, predicted by flipping coins, by round robin; the others by hash.

    When to use it: a few very hot keys, little memory, little time per tuple.

    Guarantees
    ----------
    A key that was never in the filter has one replica.

    Parameters
    ----------
    r, l, zeta
        As for `CoinSynopsis`.
    p
        Decline rate; default 1 / (10 n_workers), by the workers that the router was built for: then keys with more than
        1 / (5 n_workers) of the tuples stay.
    false_positive_rate
        Of the counting Bloom filter, sized for 2 / p keys.
    synopsis
        "global": all sources share one synopsis, as in the paper; only `build_all` shares it. "local": each its own.
    delay
        Tuples between a decision of the synopsis and its arrival in the filters.

    Examples
    --------
    >>> import numpy as np
    >>> router = DStream(r=2).build(n_workers=4)
    >>> routes = router.route(np.full(1000, 2**63, dtype=np.uint64))
    >>> int(routes[0]), bool((np.bincount(routes) > 200).all())
    (2, True)

    References
    ----------
    "Popularity-aware differentiated distributed stream processing on skewed streams" (DStream), sections III to V.
    Ours: keys are deleted from the filters only if they were appended; the filter is sized for a false-positive rate
    (the reference code's 16 cells are too few).
    """

    name = "dstream"
    paper = "DStream (popularity-aware)"

    r: int = 6
    l: int = 16  # noqa: E741
    p: float | None = None
    zeta: int = 2
    false_positive_rate: float = 1e-4
    synopsis: str = "global"
    delay: int = 0

    def __post_init__(self) -> None:
        check_coin(self.r, self.l, 0.01 if self.p is None else self.p, self.zeta)
        if self.p == 0:
            raise ConfigError("p must be above 0, got 0; without decline the synopsis never forgets a key")
        if not 0 < self.false_positive_rate < 1:
            raise ConfigError(f"false_positive_rate must be between 0 and 1, got {self.false_positive_rate}")
        if self.synopsis not in ("global", "local"):
            raise ConfigError(f'synopsis must be "global" or "local", got {self.synopsis!r}')
        if self.delay < 0:
            raise ConfigError(f"delay must be at least 0 tuples, got {self.delay}")

    @classmethod
    def for_stream(cls, n_workers: int, window: int) -> DStream:
        """DStream that finds keys with 1 / (5 n_workers) of the tuples within a window of so many tuples.

        p = 1 / (10 n_workers), because keys above 2p stay (Theorem 2); vectors decline every 2^r / p
        tuples, so r is the largest number that lets them decline at least twice a window.
        """
        p = 1 / (10 * n_workers)
        r = max(0, int(np.log2(max(1.0, window * p / 2))))
        return cls(r=min(r, 20), p=p)

    def decline_rate(self, n_workers: int) -> float:
        """The p that is used with so many workers."""
        return 1 / (10 * n_workers) if self.p is None else self.p

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _DStreamRouter(self, n_workers, source, n_sources, seed)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        """Routers of all sources; with a global synopsis one router, repeated."""
        if self.synopsis == "local":
            return super().build_all(n_sources, n_workers, seed)
        return self._build_shared(n_sources, n_workers, seed)

    def fold(self, previous: Plan | None, reports: Sequence[Report]) -> Plan:
        """One synopsis of all sources (`hot_counts` are bit vectors).

        Ours, for sources with a synopsis each: between two declines n of them flip n times as many coins as one that
        all share, which gives a key log2 n more bits. The pooled vectors are shifted back by as many; without that,
        keys that one source saw by chance would stay, and more would come with each fold.
        """
        # Bit vectors are pooled below, not added up as counts are.
        none = Report()
        without_keys = [replace(r, hot_keys=none.hot_keys, hot_counts=none.hot_counts) for r in reports]
        plan = super().fold(previous, without_keys)
        entries = [(r.hot_keys, r.hot_counts.view(np.uint64)) for r in reports if len(r.hot_keys)]
        if not entries:
            return plan
        keys, bits = shifted(*pool(entries), round(np.log2(len(entries))))
        return replace(plan, hot_keys=keys, hot_counts=bits.view(np.int64))

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """Keys that the synopsis would hold, those above 2p (Theorem 2), to all workers.

        Ours: where the counts are exact, no coin is flipped.
        """
        return to_all(plan.hot_keys[plan.hot_counts > 2 * self.decline_rate(n_workers) * plan.tuples], n_workers)


class _DStreamRouter(Router):
    """Synopsis, filter, and the signals on their way between them: key, kind, and the tuple at which it arrives."""

    grouping: DStream

    def __init__(self, grouping: DStream, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        p = grouping.decline_rate(n_workers)
        self.synopsis = CoinSynopsis(grouping.r, grouping.l, p, grouping.zeta, seed=seed * n_sources + source)
        self.filter = CountingBloomFilter(int(np.ceil(2 / p)), grouping.false_positive_rate)
        self.signals = np.zeros((_SIGNALS, 3), dtype=np.uint64)
        self.meta = np.array([self.rotation, 0, 0, 0], dtype=np.int64)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        out[:] = MultiplyShift().first(keys, self.n_workers, self.seed)
        board = _Board(self.filter.cells, self.filter.n_hashes, self.signals, self.meta)
        _route(keys, self.synopsis.state, self.synopsis.coin, board, self.n_workers, self.grouping.delay, out)

    def begin_window(self) -> None:
        self.meta[_CURSOR] = self.rotation

    def report(self) -> Report:
        keys, bits = self.synopsis.entries()
        return Report(tuples=int(self.meta[_POSITION]), hot_keys=keys, hot_counts=bits.view(np.int64))

    def follow(self, plan: Plan) -> None:
        self.synopsis.load(plan.hot_keys, plan.hot_counts.view(np.uint64))
        self.filter.cells[:] = 0
        self.filter.append(self.synopsis.hot_keys())
        self.meta[_APPLIED] = self.meta[_SENT]

    def _resize(self, previous: I64) -> None:
        self.meta[_CURSOR] %= self.n_workers

    def _arrays(self) -> dict[str, NDArray[Any]]:
        synopsis = {f"synopsis.{name}": array for name, array in self.synopsis.state._asdict().items()}
        p = np.array([self.synopsis.p])
        return {"cells": self.filter.cells, "signals": self.signals, "meta": self.meta, "p": p, **synopsis}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.filter.cells, self.signals, self.meta = arrays["cells"], arrays["signals"], arrays["meta"]
        self.synopsis.p = float(arrays["p"][0])
        self.synopsis.state = CoinArrays(*(arrays[f"synopsis.{name}"] for name in CoinArrays._fields))


class _Board(NamedTuple):
    """What the sources share: the filter's cells and number of hashes, and the ring of signals on their way to it."""

    cells: U16
    n_hashes: int
    signals: U64
    meta: I64


@njit(cache=True)
def _route(new: U64, synopsis: CoinArrays, coin: Coin, board: _Board, n_workers: int, delay: int, out: I32) -> None:
    """`out` holds the home of each tuple; hot tuples are given the next worker instead."""
    cells, n_hashes, _, meta = board
    keys, bits, hot, table, where, sizes, draws = synopsis
    r, seed = np.uint64(coin.r), coin.seed
    cursor, position = meta[_CURSOR], meta[_POSITION]
    changes = np.empty(len(keys) + 1, dtype=np.uint64)
    mask = (np.uint64(1) << r) - np.uint64(1)
    for i in range(len(new)):
        if meta[_APPLIED] < meta[_SENT]:
            _apply(board, position)
        if counting_bloom_filter.contains(cells, n_hashes, new[i]):
            out[i] = cursor
            cursor = cursor + 1 if cursor + 1 < n_workers else 0
        number = coin_synopsis.draw(draws, seed)
        if number & mask == mask:
            heads = heads_of(number >> r)
            appended, deleted = coin_synopsis.record(
                keys, bits, hot, table, where, sizes, draws, coin, new[i], heads, changes
            )
            if appended:
                _send(board, new[i], _APPEND, position + 1 + delay)
            for j in range(deleted):
                _send(board, changes[j], _DELETE, position + 1 + delay)
        position += 1
    meta[_CURSOR], meta[_POSITION] = cursor, position


@njit(cache=True)
def _send(board: _Board, key: np.uint64, kind: np.uint64, arrival: int) -> None:
    """Queue a signal; where the queue is full the oldest arrives early."""
    signals, meta = board.signals, board.meta
    if meta[_SENT] - meta[_APPLIED] == len(signals):
        _apply(board, int(signals[meta[_APPLIED] % len(signals), _ARRIVAL]))
    at = meta[_SENT] % len(signals)
    signals[at, _KEY], signals[at, _KIND], signals[at, _ARRIVAL] = key, kind, np.uint64(arrival)
    meta[_SENT] += 1


@njit(cache=True)
def _apply(board: _Board, position: int) -> None:
    """Let the signals that have arrived by now change the filter."""
    cells, n_hashes, signals, meta = board
    while meta[_APPLIED] < meta[_SENT]:
        at = meta[_APPLIED] % len(signals)
        if np.int64(signals[at, _ARRIVAL]) > position:
            return
        if signals[at, _KIND] == _APPEND:
            counting_bloom_filter.append(cells, n_hashes, signals[at, _KEY])
        else:
            counting_bloom_filter.delete(cells, n_hashes, signals[at, _KEY])
        meta[_APPLIED] += 1
