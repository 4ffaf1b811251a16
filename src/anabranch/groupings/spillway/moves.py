"""What Spillway's steps share: when a key is rare, how far a worker comes down, splitting a key, moving its tuples."""

from __future__ import annotations

import numpy as np

from anabranch.groupings.spillway.chunk import Chunk
from anabranch.groupings.spillway.flows import Flows, split
from anabranch.kernels import njit

# A key with so few tuples in a chunk is rare: which worker has more of such keys is mostly chance.
RARE = 2


@njit(cache=True, inline="always")
def goal_of(limit: float, target: float, noise: float) -> float:
    """Where an overloaded worker stops. Hysteresis: at the target, not at the limit."""
    return min(limit, float(np.ceil(target + 0.5 * noise)))


@njit(cache=True, inline="always")
def own_variance(count: int, target: float) -> float:
    """Variance of a whole key's count: the count. A key that will have to be split shares its own among workers."""
    return float(count) if count <= target else target * target / count


@njit(cache=True)
def split_key(chunk: Chunk, flows: Flows, j: int, most: int) -> bool:
    """Split the chunk's key j, with all its tuples at home; false where there is no room."""
    slot = split(flows, chunk.keys[j], chunk.homes[j]) if most > 1 else -1
    chunk.slots[j] = slot
    if slot >= 0:
        flows.quotas[flows.first[slot]] = chunk.counts[j]
        flows.heat[slot] = chunk.counts[j]
    return slot >= 0


@njit(cache=True)
def move(chunk: Chunk, flows: Flows, source: int, flow: int, moved: int, count: int) -> None:
    """Move tuples of a key from one of its flows to another."""
    flows.quotas[flow] += moved
    flows.quotas[source] -= moved
    flows.parts[flow] = flows.quotas[flow] / count
    flows.parts[source] = flows.quotas[source] / count
    chunk.loads[flows.workers[source]] -= moved
    chunk.loads[flows.workers[flow]] += moved
