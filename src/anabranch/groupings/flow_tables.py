"""Flows as tables: what routers tell each other, and what the planned edge runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anabranch.groupings.plan import Table, unpack_table

# Places in a table for each flow of a key: shares are right to this part of an even one.
_PLACES_EACH = 16


def table_of(keys: NDArray[np.uint64], workers: NDArray[np.int32], parts: NDArray[np.float64]) -> Table:
    """The table of flows (key, worker, share), which come key by key; a flow has one place at least."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
    sizes = np.diff(np.append(starts, len(keys)))
    rows = np.repeat(np.arange(len(starts)), sizes)
    whole = np.bincount(rows, weights=parts, minlength=len(starts))[rows]
    even = 1.0 / sizes[rows]
    shares = np.divide(parts, whole, out=even, where=whole > 0)
    places = np.maximum(1, np.rint(shares * _PLACES_EACH * sizes[rows])).astype(np.int64)
    offsets = np.append(0, np.cumsum(np.bincount(rows, weights=places, minlength=len(starts)).astype(np.int64)))
    return Table(keys[starts], offsets, np.repeat(workers, places))


def flows_of(table: Table) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.float64]]:
    """Key, worker and share of each flow of a table, key by key."""
    rows = np.repeat(np.arange(len(table.keys)), np.diff(table.offsets))
    n_workers = int(table.workers.max(initial=0)) + 1
    pairs, places = np.unique(rows * n_workers + table.workers, return_counts=True)
    at = pairs // n_workers
    parts = places / np.diff(table.offsets)[at]
    return table.keys[at], (pairs % n_workers).astype(np.int32), parts


def pooled_flows(packed: Sequence[bytes]) -> Table | None:
    """The flows of all sources in one table; shares are averaged over the sources that have the key."""
    if not packed:
        return None
    parts = [flows_of(unpack_table(one)) for one in packed]
    keys = np.concatenate([one[0] for one in parts])
    workers = np.concatenate([one[1] for one in parts])
    shares = np.concatenate([one[2] for one in parts])
    distinct, rows = np.unique(keys, return_inverse=True)
    n_workers = int(workers.max(initial=0)) + 1
    pairs, inverse = np.unique(rows * n_workers + workers, return_inverse=True)
    pooled: NDArray[np.float64] = np.bincount(inverse, weights=shares, minlength=len(pairs)).astype(np.float64)
    return table_of(distinct[pairs // n_workers], (pairs % n_workers).astype(np.int32), pooled)
