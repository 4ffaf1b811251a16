"""The consistent-hash ring moves only what it must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import ConfigError
from anabranch.hashing import HashRing, hash_keys

HASHES = hash_keys(np.arange(5_000))

rings = st.builds(
    HashRing,
    st.sets(st.integers(0, 60), min_size=1, max_size=12),
    virtual_nodes=st.integers(1, 40),
    seed=st.integers(-5, 5),
)


def state(ring: HashRing) -> tuple[bytes, ...]:
    return ring.points.tobytes(), ring.owners.tobytes(), ring.index.tobytes()


@settings(max_examples=40)
@given(rings)
def test_a_key_belongs_to_the_next_point_clockwise(ring):
    keys = np.concatenate([HASHES[:200], ring.points, ring.points + np.uint64(1), np.array([0, 2**64 - 1], np.uint64)])
    at = np.searchsorted(ring.points, keys) % len(ring.points)
    assert (ring.lookup(keys) == ring.owners[at]).all()
    assert len(ring.points) == len(ring.workers) * ring.virtual_nodes
    assert sorted(set(ring.owners.tolist())) == ring.workers


@settings(max_examples=40)
@given(rings, st.integers(61, 70))
def test_adding_moves_keys_only_to_the_newcomer_and_removing_it_undoes_that(ring, worker):
    before, ring_before = ring.lookup(HASHES), state(ring)
    ring.add(worker)
    after = ring.lookup(HASHES)
    assert (after[after != before] == worker).all()
    ring.remove(worker)
    assert state(ring) == ring_before
    assert (ring.lookup(HASHES) == before).all()


@settings(max_examples=40)
@given(rings.filter(lambda ring: len(ring.workers) > 1), st.data())
def test_removing_moves_only_the_keys_of_the_one_that_left(ring, data):
    worker = data.draw(st.sampled_from(ring.workers))
    before = ring.lookup(HASHES)
    ring.remove(worker)
    after = ring.lookup(HASHES)
    assert ((after != before) == (before == worker)).all()


@settings(max_examples=30)
@given(rings, st.integers(1, 15))
def test_candidates_are_distinct_and_begin_at_home(ring, choices):
    keys = HASHES[:200]
    candidates = ring.candidates(keys, choices)
    assert candidates.shape == (len(keys), min(choices, len(ring.workers)))
    assert (candidates[:, 0] == ring.lookup(keys)).all()
    assert all(len(set(row)) == len(row) for row in candidates.tolist())
    assert set(candidates.ravel().tolist()) <= set(ring.workers)


@settings(max_examples=20)
@given(rings.filter(lambda ring: len(ring.workers) > 1))
def test_the_second_candidate_inherits_a_key(ring):
    keys = HASHES[:200]
    home, heir = ring.candidates(keys, 2).T
    ring.remove(int(home[0]))
    inherited = home == home[0]
    assert (ring.lookup(keys)[inherited] == heir[inherited]).all()


def test_arcs_are_even_with_100_points_a_worker():
    shares = np.bincount(HashRing(10).lookup(hash_keys(np.arange(100_000))), minlength=10) / 10_000
    assert 0.7 < shares.min() <= shares.max() < 1.3


def test_more_points_make_arcs_more_even():
    keys = hash_keys(np.arange(100_000))
    spread = [np.bincount(HashRing(20, virtual_nodes=v).lookup(keys), minlength=20).std() for v in (1, 30, 1000)]
    assert spread[0] > 2 * spread[1] > 4 * spread[2]


def test_another_seed_is_another_ring():
    assert (HashRing(10, seed=1).lookup(HASHES) != HashRing(10).lookup(HASHES)).mean() > 0.8


def test_a_number_of_workers_stands_for_the_workers_from_0():
    assert state(HashRing(4)) == state(HashRing([3, 1, 0, 2, 1]))
    assert HashRing(4).workers == [0, 1, 2, 3]


def test_what_a_ring_refuses():
    ring = HashRing([2, 5])
    before = state(ring)
    with pytest.raises(ConfigError, match="virtual_nodes must be at least 1, got 0"):
        HashRing(3, virtual_nodes=0)
    for nobody in (0, []):
        with pytest.raises(ConfigError, match="at least one worker"):
            HashRing(nobody)
    with pytest.raises(ConfigError, match="worker 5 is on the ring already"):
        ring.add(5)
    with pytest.raises(ConfigError, match="worker 3 is not on the ring"):
        ring.remove(3)
    with pytest.raises(ConfigError, match="choices must be at least 1, got 0"):
        ring.candidates(HASHES, 0)
    assert state(ring) == before
    ring.remove(2)
    with pytest.raises(ConfigError, match="worker 5 is the last one"):
        ring.remove(5)
    assert ring.workers == [5]
