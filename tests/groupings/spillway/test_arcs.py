"""Arcs: which worker is home to which part of the hash space, before and after a change of workers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anabranch.groupings.spillway import arcs

weights = st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=20).map(np.array)


def due(given_weights: np.ndarray, total: int) -> np.ndarray:
    return given_weights / given_weights.sum() * total


def is_even(owners: np.ndarray, given_weights: np.ndarray) -> bool:
    """Every worker has its share, to less than one arc."""
    held = np.bincount(owners, minlength=len(given_weights))
    return len(held) == len(given_weights) and bool((np.abs(held - due(given_weights, len(owners))) < 1).all())


@given(given_weights=weights)
def test_arcs_are_in_order_and_even(given_weights):
    owners = arcs.even(given_weights)
    assert is_even(owners, given_weights)
    assert (np.diff(owners) >= 0).all()
    assert len(owners) >= 64 * len(given_weights)


@given(before=weights, after=weights, seed=st.integers(0, 1000))
def test_a_change_moves_as_few_arcs_as_possible_and_stays_even(before, after, seed):
    rng = np.random.default_rng(seed)
    owners = arcs.even(before)
    n_kept = int(rng.integers(0, min(len(before), len(after)) + 1))
    new_index = np.full(len(before), -1, dtype=np.int32)
    new_index[rng.choice(len(before), n_kept, replace=False)] = rng.choice(len(after), n_kept, replace=False)
    moved = arcs.moved(owners, new_index, after)
    assert is_even(moved, after)
    # Finer arcs lie where the coarse ones lay.
    assert len(moved) % len(owners) == 0
    renumbered = new_index[np.repeat(owners, len(moved) // len(owners))]
    held = np.array([(renumbered == worker).sum() for worker in range(len(after))])
    surplus = np.maximum(0, held - np.bincount(moved, minlength=len(after))).sum()
    assert (moved != renumbered).sum() == (renumbered < 0).sum() + surplus


def test_workers_may_be_renumbered_without_a_move():
    owners = arcs.even(np.ones(5))
    assert arcs.moved(owners, np.arange(5, dtype=np.int32), np.ones(5)).tolist() == owners.tolist()
    back = arcs.moved(owners, np.array([4, 3, 2, 1, 0], dtype=np.int32), np.ones(5))
    assert back.tolist() == (4 - owners).tolist()


def test_many_workers_get_finer_arcs():
    owners = arcs.even(np.ones(1))
    moved = arcs.moved(owners, np.zeros(1, dtype=np.int32), np.ones(100))
    assert is_even(moved, np.ones(100))
    assert len(moved) >= 6400
