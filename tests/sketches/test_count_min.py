"""Count-Min: its error bound, and that merging loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.errors import ConfigError
from anabranch.hashing import hash_keys
from anabranch.sketches import CountMin

UNIVERSE = hash_keys(np.arange(2_000))

streams = skewed(UNIVERSE[:200], most=1_000)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.05), (0.05, 0.01), (0.1, 0.3)])
def test_few_estimates_are_off_by_more_than_epsilon(epsilon, delta):
    rng = np.random.default_rng(3)
    missed = []
    for seed in range(20):
        ranks = rng.zipf(1.2, 20_000) % len(UNIVERSE)
        sketch = CountMin(epsilon, delta, seed)
        sketch.update(UNIVERSE[ranks])
        excess = sketch.estimate(UNIVERSE) - np.bincount(ranks, minlength=len(UNIVERSE))
        assert (excess >= 0).all()
        missed.append((excess > epsilon * sketch.total).mean())
    assert np.mean(missed) <= delta


def test_a_wide_grid_counts_exactly():
    ranks = np.arange(50).repeat(np.arange(50))
    sketch = CountMin(epsilon=1e-5, delta=0.001)
    sketch.update(UNIVERSE[ranks])
    assert sketch.estimate(UNIVERSE[:50]).tolist() == list(range(50))


@settings(max_examples=40)
@given(one=streams, other=streams)
def test_merging_equals_one_sketch_of_both_streams(one, other):
    merged, added, whole = (CountMin(0.1, 0.1, seed=5) for _ in range(3))
    merged.update(one)
    added.update(other)
    merged.merge(added)
    whole.update(np.concatenate([one, other]))
    assert (merged.grid == whole.grid).all()
    assert merged.total == whole.total


@settings(max_examples=30)
@given(stream=streams, seed=st.integers(0, 1_000))
def test_a_weighted_update_equals_repeated_ones(stream, seed):
    counts = np.random.default_rng(seed).integers(1, 51, len(stream))
    weighted, repeated = CountMin(0.1, 0.1), CountMin(0.1, 0.1)
    weighted.update(stream, counts)
    repeated.update(stream.repeat(counts))
    assert (weighted.grid == repeated.grid).all()
    assert weighted.total == repeated.total == counts.sum()


def test_seeds_change_the_collisions():
    sketches = [CountMin(0.2, 0.5, seed) for seed in (0, 7, -7)]
    for sketch in sketches:
        sketch.update(UNIVERSE)
    assert len({sketch.grid.tobytes() for sketch in sketches}) == 3


@pytest.mark.parametrize("other", [CountMin(0.05, 0.1), CountMin(0.1, 0.01), CountMin(0.1, 0.1, seed=1)])
def test_only_sketches_of_one_shape_and_seed_merge(other):
    sketch = CountMin(0.1, 0.1)
    with pytest.raises(ConfigError, match="equal shape and seed"):
        sketch.merge(other)
    assert sketch.total == 0
