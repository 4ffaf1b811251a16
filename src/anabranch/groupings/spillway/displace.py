"""Spillway's heavy keys: they take the place of split ones, which have other places to go.

Levelled workers have the same room, a little each: in those rooms a new hot key would be on all of them. It is on few
where it fills each up to its target and leaves split keys, which are on others too, to go there.
"""

from __future__ import annotations

import numpy as np

from anabranch.arrays import F64, I32
from anabranch.groupings.spillway.chunk import Chunk
from anabranch.groupings.spillway.flows import Flows, extend
from anabranch.groupings.spillway.moves import RARE, goal_of, move, own_variance, split_key
from anabranch.hashing.family import next_candidate
from anabranch.kernels import njit

# What is heavy, in standard deviations of a worker that has its target: a key, and what is too much for its home.
_HEAVY = 0.5
# Part of the chunk that must be too much for its workers: levelling once more takes time.
_MUCH = 0.002
# A flow must have room for this part of what it is to carry.
_WORTHWHILE = 0.1
# With more workers than this, looking for the one with the most room would take too long.
_LOOKED_AT = 64


@njit(cache=True)
def displace(chunk: Chunk, flows: Flows, n: int, n_split: int, most: int, alone: bool) -> int:
    """Split the heavy keys of overloaded workers; the number of split keys. `alone`: it is the only source.

    Where it has grown, `chunk.loads` holds what is not split, and the flows are to be levelled again.
    """
    loads, targets, homes = chunk.loads, chunk.targets, chunk.homes
    heavy = _heavy_keys(chunk, n)
    if len(heavy) == 0:
        return n_split
    fixed, mean, before = _without_flows(chunk, flows, n_split), targets.mean(), n_split
    roomiest = alone and len(targets) <= _LOOKED_AT
    unsplit = fixed.copy()
    for j in heavy:
        home = homes[j]
        goal = goal_of(chunk.limits[home], targets[home], chunk.noise[home])
        if loads[home] - goal < _HEAVY * np.sqrt(targets[home]):
            continue
        _fill(chunk, flows, j, goal, fixed, most, roomiest)
        if chunk.slots[j] >= 0:
            chunk.order[n_split] = j
            n_split += 1
            unsplit[home] -= chunk.counts[j]
            chunk.variance[home] -= own_variance(chunk.counts[j], mean)
    if n_split > before:
        loads[:] = unsplit
    return n_split


@njit(cache=True)
def _heavy_keys(chunk: Chunk, n: int) -> I32:
    """Whole keys that are heavy, at workers that are far above their goals; the heaviest first."""
    counts, homes, slots, targets, found = chunk.counts, chunk.homes, chunk.slots, chunk.targets, chunk.sorted
    heads, limits, noise, loads = chunk.heads, chunk.limits, chunk.noise, chunk.loads
    least, above = np.full(len(targets), np.iinfo(np.int64).max), 0.0
    for worker in range(len(targets)):
        if heads[worker] != -1:
            heavy = max(_HEAVY * np.sqrt(targets[worker]), RARE + 1.0)
            excess = loads[worker] - goal_of(limits[worker], targets[worker], noise[worker])
            if excess >= heavy:
                above += excess
                least[worker] = int(np.ceil(heavy))
    lightest, n_found = least.min(), 0
    for j in range(n if above > _MUCH * targets.sum() else 0):
        # Most keys are light: their homes are not looked up.
        if counts[j] >= lightest and slots[j] < 0 and counts[j] >= least[homes[j]]:
            found[n_found] = j
            n_found += 1
    return found[:n_found][np.argsort(-counts[found[:n_found]], kind="mergesort")]


@njit(cache=True)
def _without_flows(chunk: Chunk, flows: Flows, n_split: int) -> F64:
    """Loads by what is not split."""
    # Out of the tuples once: in a loop their references would be counted each time.
    order, starts, lengths, dealt, towards = chunk.order, chunk.starts, chunk.lengths, chunk.dealt, chunk.towards
    loads, quotas = chunk.loads.copy(), flows.quotas
    for a in range(n_split):
        j = order[a]
        for at in range(starts[j], starts[j] + lengths[j]):
            loads[towards[at]] -= quotas[dealt[at]]
    return loads


@njit(cache=True)
def _fill(chunk: Chunk, flows: Flows, j: int, goal: float, fixed: F64, most: int, roomiest: bool) -> None:
    """Fill workers with a key up to their targets until its home is at `goal`.

    They are taken along the key's sequence of candidates, so that sources that see alike choose alike; or, by a source
    that is alone, those with the most room, so that it has fewer.
    """
    loads, targets, heads, count, step = chunk.loads, chunk.targets, chunk.heads, chunk.counts[j], chunk.steps[j]
    candidate = start = home = chunk.homes[j]
    left = count
    for _ in range(len(loads) - 1):
        wanted = min(loads[home] - goal, float(left))
        if wanted < 1.0:
            break
        if roomiest:
            candidate = _roomiest(fixed, targets, heads)
        else:
            candidate, start = next_candidate(candidate, start, step, len(loads))
        room = targets[candidate] - fixed[candidate]
        if heads[candidate] != -1 or room <= 0.0 or room < _WORTHWHILE * min(wanted, targets[candidate]):
            if roomiest:
                break
            continue
        if chunk.slots[j] < 0 and not split_key(chunk, flows, j, most):
            break
        slot = chunk.slots[j]
        at_home = flows.first[slot]
        flow = extend(flows, slot, candidate) if flows.sizes[slot] < most else -1
        if flow < 0:
            break
        moved = int(min(np.ceil(wanted), np.ceil(room)))
        left -= moved
        fixed[candidate] += moved
        move(chunk, flows, at_home, flow, moved, count)


@njit(cache=True)
def _roomiest(fixed: F64, targets: F64, heads: I32) -> int:
    """Of the workers that are not overloaded, the one with the most room; 0 if none has any."""
    best, most = 0, 0.0
    for worker in range(len(fixed)):
        if heads[worker] == -1 and targets[worker] - fixed[worker] > most:
            best, most = worker, targets[worker] - fixed[worker]
    return best
