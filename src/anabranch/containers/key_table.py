"""The routing table of the groupings that must remember each key: key hash → worker, growing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.containers.slot_table import home
from anabranch.kernels import njit

EMPTY = -1
UNPLACED = -2


class KeyTable:
    """Open-addressing map from key hash to worker index.

    `workers` holds EMPTY where there is no key, and UNPLACED for a key whose worker went away.
    """

    def __init__(self) -> None:
        self.keys = np.zeros(1024, dtype=np.uint64)
        self.workers = np.full(1024, EMPTY, dtype=np.int32)
        self.size = np.zeros(1, dtype=np.int64)

    @property
    def is_full(self) -> bool:
        """Whether it must grow before another key."""
        return int(self.size[0]) * 2 >= len(self.keys)

    def grow(self) -> None:
        """Double the table."""
        keys, workers = self.keys, self.workers
        self.keys = np.zeros(2 * len(keys), dtype=np.uint64)
        self.workers = np.full(2 * len(keys), EMPTY, dtype=np.int32)
        _move(keys, workers, self.keys, self.workers)

    def insert(self, keys: U64, workers: I32) -> None:
        """Put distinct new keys into the table."""
        while (int(self.size[0]) + len(keys)) * 2 >= len(self.keys):
            self.grow()
        _move(keys, workers, self.keys, self.workers)
        self.size[0] += len(keys)

    def look_up(self, keys: U64, homes: I32, out: I32) -> None:
        """Worker of each key, its home where the table does not have it."""
        _look_up(keys, homes, self.keys, self.workers, out)

    def renumber(self, previous: I64) -> None:
        """Follow a change of workers; `previous[i]` is the old index of the worker now at i."""
        placed = self.workers >= 0
        new_index = np.full(int(max(previous.max(initial=0), self.workers.max(initial=0))) + 1, UNPLACED, np.int32)
        stayed = np.flatnonzero(previous >= 0)
        new_index[previous[stayed]] = stayed
        self.workers[placed] = new_index[self.workers[placed]]

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its state by name, for snapshots."""
        return {"table.keys": self.keys, "table.workers": self.workers, "table.size": self.size}

    def adopt(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        """Take over arrays that `arrays` named."""
        self.keys = arrays["table.keys"]  # type: ignore[assignment]
        self.workers = arrays["table.workers"]  # type: ignore[assignment]
        self.size = arrays["table.size"]  # type: ignore[assignment]


@njit(cache=True, inline="always")
def place_of(key: np.uint64, keys: U64, workers: I32) -> int:
    """Where `key` is in the table, or the empty place where it belongs."""
    mask = len(keys) - 1
    at = home(key, mask)
    while workers[at] != EMPTY and keys[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True)
def _move(keys: U64, workers: I32, to_keys: U64, to_workers: I32) -> None:
    for i in range(len(keys)):
        if workers[i] != EMPTY:
            at = place_of(keys[i], to_keys, to_workers)
            to_keys[at] = keys[i]
            to_workers[at] = workers[i]


@njit(cache=True)
def _look_up(keys: U64, homes: I32, table_keys: U64, table_workers: I32, out: I32) -> None:
    for i in range(len(keys)):
        worker = table_workers[place_of(keys[i], table_keys, table_workers)]
        out[i] = worker if worker >= 0 else homes[i]
