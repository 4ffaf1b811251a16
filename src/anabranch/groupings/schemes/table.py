"""Table grouping: keys where a table says, all others by hash."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64, Bools
from anabranch.containers.slot_table import home
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Table
from anabranch.hashing import HashFamily, MultiplyShift
from anabranch.kernels import njit


@dataclass(frozen=True, eq=False, repr=False)
class TableGrouping(Grouping):
    """Each key to the worker that a table names, every other key by hash.

    When to use it: where something knows better than a hash where keys belong, such as a plan of `anabranch.chain`.

    Guarantees
    ----------
    - A key of the table goes to the worker that the table names while that worker is alive.
    - A key that the table names several times goes to its workers in turn, as often to each as it is named with it; or,
      where the sender of each tuple is known (`TableRouter.route_from`), from sender s to worker s of those named,
      modulo their number.
    - Every other key goes home by hash: an empty table is key grouping.
    - Every key that is named at most once has one replica.

    Parameters
    ----------
    keys, workers
        Key hashes, and the worker of each. A key that comes several times is split.
    family
        How keys outside the table are hashed. The planned edge always takes `MultiplyShift`.

    Examples
    --------
    >>> import numpy as np
    >>> keys = np.array([7, 8, 2**63], dtype=np.uint64)
    >>> TableGrouping(keys[:2], [3, 1]).build(n_workers=4).route(keys).tolist()
    [3, 1, 2]

    References
    ----------
    Caneill et al., "Locality-aware routing in stateful streaming applications" (Middleware 2016), §3.3. The paper does
    not say what becomes of a key whose worker has gone; here it goes home like a key outside the table.
    """

    name = "table"
    paper = "Caneill et al. 2016"
    needs_table = True
    learns = False

    keys: U64 = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    workers: I32 = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    family: HashFamily = field(default=MultiplyShift())

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", np.ascontiguousarray(self.keys, dtype=np.uint64))
        object.__setattr__(self, "workers", np.ascontiguousarray(self.workers, dtype=np.int32))
        if self.keys.ndim != 1 or self.keys.shape != self.workers.shape:
            raise ConfigError(
                f"keys and workers must be equally long, got {len(self.keys)} and {len(self.workers)}; "
                "give one worker a key"
            )
        if len(self.workers) and self.workers.min() < 0:
            raise ConfigError(f"workers must not be negative, got {self.workers.min()}; leave such keys out")

    @cached_property
    def split_keys(self) -> U64:
        """Keys that are named several times."""
        keys, times = np.unique(self.keys, return_counts=True)
        return keys[times > 1]

    def __repr__(self) -> str:
        return f"TableGrouping({len(self.keys)} keys, family={self.family!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableGrouping):
            return NotImplemented
        same = np.array_equal(self.keys, other.keys) and np.array_equal(self.workers, other.workers)
        return bool(same) and self.family == other.family

    def __hash__(self) -> int:
        return hash((len(self.keys), self.keys[:1].tobytes(), self.workers[:1].tobytes(), self.family))

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return TableRouter(self, n_workers, source, n_sources, seed)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """The table itself, whatever the plan says, without the keys of workers that are not there."""
        there = self.workers < n_workers
        keys, begins, order = _grouped(self.keys[there])
        return Table(keys, np.append(begins, len(order)), self.workers[there][order])


class TableRouter(Router):
    """Table grouping in one source.

    `entries` holds, two by two, a key and the index of its worker + 1; 0 in the second place is an empty entry.

    Split key s has n_workers + 1 + s there: its workers are those of `dealt` from `begins[s]` to `begins[s + 1]`, and
    `turns[s]` says whose turn it is. All but the turns follows from the configuration and the workers alive, so that a
    snapshot need not hold it.
    """

    grouping: TableGrouping

    def __init__(self, grouping: TableGrouping, n_workers: int, source: int, n_sources: int, seed: int) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self._fill()

    def _fill(self) -> None:
        named = self.grouping.workers
        index = np.full(1 + max(int(named.max(initial=0)), int(self.workers.max())), -1, dtype=np.int64)
        index[self.workers] = np.arange(self.n_workers)
        places = index[named]
        alive = places >= 0
        keys, begins, order = _grouped(self.grouping.keys[alive])
        places = places[alive][order]
        times = np.diff(np.append(begins, len(order)))
        split = times > 1
        size = 2
        while size < 2 * len(keys):
            size *= 2
        self.entries = np.zeros(2 * size, dtype=np.uint64)
        # A key with one worker has that one, a split key its own number, beyond those of all workers.
        _enter(keys, np.where(split, self.n_workers + np.cumsum(split) - 1, places[begins]), self.entries)
        self.dealt = places[np.repeat(split, times)].astype(np.int32)
        self.begins = np.append(0, np.cumsum(times[split]))
        self.turns = np.zeros(int(split.sum()), dtype=np.int64)

    @property
    def nbytes(self) -> int:
        return self.entries.nbytes

    def _route(self, keys: U64, now: float, out: I32) -> None:
        out[:] = self.grouping.family.first(keys, self.n_workers, self.seed)
        _look_up(keys, self.entries, out)
        if len(self.turns):
            _deal(self.n_workers, self.begins, self.dealt, self.turns, out)

    def route_from(self, keys: U64, senders: I32 | int) -> I32:
        """Worker of each tuple, whose sender is known: a split key goes to the one that it has for this sender.

        Parameters
        ----------
        keys
            Key hashes.
        senders
            Number of the sender of each tuple, or of all.

        Examples
        --------
        >>> import numpy as np
        >>> hot = np.array([7, 7, 7], dtype=np.uint64)
        >>> router = TableGrouping(hot, [0, 1, 2]).build(n_workers=3)
        >>> router.route_from(hot, np.array([2, 2, 0], dtype=np.int32)).tolist()
        [2, 2, 0]
        """
        out = self._entries_of(keys)
        split = out >= self.n_workers
        if split.any():
            number = out[split] - self.n_workers
            begins = self.begins[number]
            turns = np.broadcast_to(senders, len(keys))[split] % (self.begins[number + 1] - begins)
            out[split] = self.dealt[begins + turns]
        return out if self._identity else self.workers[out]

    def may_get(self, keys: U64, worker: int) -> Bools:
        """Whether this worker gets tuples of each key: it is the key's, or one of those of a split key."""
        (index,) = np.flatnonzero(self.workers == worker)
        entries = self._entries_of(keys)
        found: Bools = entries == index
        split = entries >= self.n_workers
        if split.any():
            dealt = np.logical_or.reduceat(self.dealt == index, self.begins[:-1])
            found[split] = dealt[entries[split] - self.n_workers]
        return found

    def _entries_of(self, keys: U64) -> I32:
        """Index of each key's worker; for a split key its number, beyond those of all workers."""
        keys = np.ascontiguousarray(keys)
        out = np.array(self.grouping.family.first(keys, self.n_workers, self.seed), dtype=np.int32)
        _look_up(keys, self.entries, out)
        return out

    def begin_window(self) -> None:
        self.turns[:] = 0

    def _resize(self, previous: I64) -> None:
        self._fill()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"turns": self.turns}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._fill()
        self.turns = arrays["turns"]


def _grouped(keys: U64) -> tuple[U64, I64, I64]:
    """Distinct keys, and an order of all in which each key's rows begin where the second array says."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])) if len(keys) else order
    if len(begins) == len(keys):
        # As they were given: keys that come first are found sooner.
        return keys, begins, np.arange(len(keys))
    return sorted_keys[begins], begins, order


@njit(cache=True)
def _enter(keys: U64, places: I64, entries: U64) -> None:
    """Put distinct keys into empty entries; at most half of them fill up."""
    mask = len(entries) // 2 - 1
    for i in range(len(keys)):
        at = home(keys[i], mask)
        while entries[2 * at + 1] != 0:
            at = (at + 1) & mask
        entries[2 * at] = keys[i]
        entries[2 * at + 1] = np.uint64(places[i] + 1)


@njit(cache=True)
def _look_up(keys: U64, entries: U64, out: I32) -> None:
    """Overwrite the homes in `out` where the table has the key.

    A key and its worker stand side by side, so that a tuple costs one access to memory; no access depends on the one
    before, so that the processor has many of them under way.
    """
    mask = len(entries) // 2 - 1
    for i in range(len(keys)):
        key = keys[i]
        at = home(key, mask)
        place = entries[2 * at + 1]
        while place != 0 and entries[2 * at] != key:
            at = (at + 1) & mask
            place = entries[2 * at + 1]
        if place != 0:
            out[i] = np.int32(place) - np.int32(1)


@njit(cache=True)
def _deal(n_workers: int, begins: I64, dealt: I32, turns: I64, out: I32) -> None:
    """Overwrite the numbers of split keys in `out` with the worker whose turn it is."""
    for i in range(len(out)):
        if out[i] >= n_workers:
            key = out[i] - n_workers
            begin, end = begins[key], begins[key + 1]
            out[i] = dealt[begin + turns[key]]
            turns[key] = turns[key] + 1 if begin + turns[key] + 1 < end else 0
