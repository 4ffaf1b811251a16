"""The consistent-hash ring moves only what it must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.hashing import HashRing, hash_keys
from anabranch.hashing.ring import index_shift, ring_position

HASHES = hash_keys(np.arange(5_000))

PARAMETERS = {"virtual_nodes": st.integers(1, 40), "seed": st.integers(-5, 5)}
workers_sets = st.sets(st.integers(0, 60), min_size=1, max_size=12)


def lookup(ring: HashRing, keys: np.ndarray) -> np.ndarray:
    """The owner of each key's place on the ring, which kernels look up."""
    shift = index_shift(ring.index)
    return ring.owners[[ring_position(key, ring.points, ring.index, shift) for key in keys]]


def state(ring: HashRing) -> tuple[bytes, ...]:
    return ring.points.tobytes(), ring.owners.tobytes(), ring.index.tobytes()


@settings(max_examples=40)
@given(workers=workers_sets, **PARAMETERS)
def test_a_key_belongs_to_the_next_point_clockwise(workers, virtual_nodes, seed):
    ring = HashRing(workers, virtual_nodes=virtual_nodes, seed=seed)
    keys = np.concatenate([HASHES[:200], ring.points, ring.points + np.uint64(1), np.array([0, 2**64 - 1], np.uint64)])
    at = np.searchsorted(ring.points, keys) % len(ring.points)
    assert (lookup(ring, keys) == ring.owners[at]).all()
    assert len(ring.points) == len(workers) * virtual_nodes
    assert set(ring.owners.tolist()) == workers


@settings(max_examples=40)
@given(workers=workers_sets, worker=st.integers(61, 70), **PARAMETERS)
def test_one_worker_more_or_fewer_moves_only_its_own_keys(workers, worker, virtual_nodes, seed):
    with_it, without_it = (
        lookup(HashRing(each, virtual_nodes=virtual_nodes, seed=seed), HASHES[:1_000])
        for each in (workers | {worker}, workers)
    )
    assert ((with_it != without_it) == (with_it == worker)).all()


def test_arcs_are_even_with_100_points_a_worker():
    shares = np.bincount(lookup(HashRing(10), hash_keys(np.arange(100_000))), minlength=10) / 10_000
    assert 0.7 < shares.min() <= shares.max() < 1.3


def test_more_points_make_arcs_more_even():
    keys = hash_keys(np.arange(100_000))
    spread = [np.bincount(lookup(HashRing(20, virtual_nodes=v), keys), minlength=20).std() for v in (1, 30, 1000)]
    assert spread[0] > 2 * spread[1] > 4 * spread[2]


def test_another_seed_is_another_ring():
    assert (lookup(HashRing(10, seed=1), HASHES) != lookup(HashRing(10), HASHES)).mean() > 0.8


def test_a_number_of_workers_stands_for_the_workers_from_0():
    assert state(HashRing(4)) == state(HashRing([3, 1, 0, 2, 1]))
    assert set(HashRing(4).owners.tolist()) == {0, 1, 2, 3}


def test_what_a_ring_refuses():
    with pytest.raises(ConfigError, match="virtual_nodes must be at least 1, got 0"):
        HashRing(3, virtual_nodes=0)
    for nobody in (0, []):
        with pytest.raises(ConfigError, match="at least one worker"):
            HashRing(nobody)
