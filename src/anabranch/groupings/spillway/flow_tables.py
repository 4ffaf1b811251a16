"""Flows as tables: what routers tell each other, and what the planned edge runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anabranch.arrays import F64, I32, I64, U64, Bools
from anabranch.groupings.plan import Plan, Table, unpack_table

# Places in a table for each flow of a key: shares are right to this part of an even one.
_PLACES_EACH = 16
# Plans that follow each other in which no source has a tuple of a key; then its flows are forgotten.
_MOST_IDLE = 64


def table_of(keys: U64, workers: I32, parts: F64) -> Table:
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


def flows_of(table: Table) -> tuple[U64, I32, F64]:
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
    pooled: F64 = np.bincount(inverse, weights=shares, minlength=len(pairs)).astype(np.float64)
    return table_of(distinct[pairs // n_workers], (pairs % n_workers).astype(np.int32), pooled)


def without_idle(plan: Plan, previous: Plan | None) -> Plan:
    """The plan without the flows that have been idle for long. Its `hot_keys` are the keys that sources had tuples of.

    Routers cannot tell how long: on Spark each begins anew in every batch, and what it learned is all it knows.
    """
    if plan.table is None:
        return plan
    keys = plan.table.keys
    idle = np.where(np.isin(keys, plan.hot_keys), 0, 1 + _idle_before(keys, previous))
    kept = idle <= _MOST_IDLE
    table, idle = _rows(plan.table, kept), idle[kept]
    return replace(plan, table=table, idle=idle if idle.any() else idle[:0])


def _idle_before(keys: U64, previous: Plan | None) -> I64:
    """For each key, how long it had been idle when the plan before was made; 0 for one that it does not have."""
    out = np.zeros(len(keys), np.int64)
    if previous is not None and previous.table is not None and len(previous.idle):
        _, here, there = np.intersect1d(keys, previous.table.keys, assume_unique=True, return_indices=True)
        out[here] = previous.idle[there]
    return out


def _rows(table: Table, kept: Bools) -> Table:
    """These keys of a table."""
    sizes = np.diff(table.offsets)
    return Table(table.keys[kept], np.append(0, np.cumsum(sizes[kept])), table.workers[np.repeat(kept, sizes)])
