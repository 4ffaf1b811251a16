"""Dyadic Count-Min, and the one that forgets."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.errors import ConfigError
from anabranch.hashing import hash_keys
from anabranch.predictors import AdaptiveCountMin, DyadicCountMin

# Hashes, and numbers whose prefixes are all alike but for the last.
UNIVERSE = np.concatenate([hash_keys(np.arange(50)), np.arange(10, dtype=np.uint64), ~np.arange(10, dtype=np.uint64)])

streams = skewed(np.random.default_rng(0).permutation(UNIVERSE), most=600, least=1)
shares = st.floats(0.01, 0.99)


@settings(max_examples=60)
@given(keys=streams, share=shares, part=st.sampled_from([0.1, 0.25, 0.9]), seed=st.integers(0, 50))
def test_every_key_with_its_share_is_found(keys, share, part, seed):
    predictor = DyadicCountMin(share, epsilon=part * share, seed=seed)
    predictor.update(keys)
    hot = {key for key, count in Counter(keys.tolist()).items() if count >= share * len(keys)}
    assert hot <= set(predictor.hot_keys().tolist())


@settings(max_examples=60)
@given(keys=streams, share=shares, growth=st.sampled_from([1.01, 1.5, 1e30, 1e99]), seed=st.integers(0, 50))
def test_every_key_with_its_share_of_the_weights_is_found(keys, share, growth, seed):
    predictor = AdaptiveCountMin(share, growth=growth, seed=seed)
    predictor.update(keys)
    weights = growth ** np.arange(-len(keys), 0.0)
    weighted: Counter[int] = Counter()
    for key, weight in zip(keys.tolist(), weights.tolist(), strict=True):
        weighted[key] += weight
    # Weights are rounded, so that a key at the very edge may fall on either side.
    hot = {key for key, weight in weighted.items() if weight >= share * weights.sum() * (1 + 1e-9)}
    assert hot <= set(predictor.hot_keys().tolist())


def test_few_others_are_called_hot():
    """Of keys with less than share − epsilon, one in twenty at most; descending multiplies none of them."""
    rng = np.random.default_rng(1)
    keys = hash_keys(rng.zipf(1.3, 100_000))
    predictor = DyadicCountMin(0.02)
    predictor.update(keys)
    found = set(predictor.hot_keys().tolist())
    counts = Counter(keys.tolist())
    hot = {key for key, count in counts.items() if count >= 0.02 * len(keys)}
    near = {key for key, count in counts.items() if count >= 0.015 * len(keys)}
    assert hot <= found
    assert len(found - near) <= 0.05 * len(near) + 1


def test_an_old_hot_key_is_forgotten():
    window = 10_000
    old, new = (np.concatenate([np.full(5_000, key), np.arange(5_000) + 10**6 * key]) for key in (1, 2))
    keys = hash_keys(np.concatenate([old, new, new]))
    adaptive = AdaptiveCountMin.for_stream(n_workers=4, window=window)
    remembers = DyadicCountMin.for_stream(n_workers=4, window=window)
    names = hash_keys([1, 2]).tolist()
    for predictor in (adaptive, remembers):
        predictor.update(keys[:window])
        assert names[0] in predictor.hot_keys().tolist()
        predictor.update(keys[window:])
    assert names[1] in adaptive.hot_keys().tolist()
    assert names[0] not in adaptive.hot_keys().tolist()
    assert set(names) <= set(remembers.hot_keys().tolist())


def test_weights_stay_finite_however_long_the_stream():
    predictor = AdaptiveCountMin.for_stream(n_workers=2, window=10)
    predictor.update(np.repeat(UNIVERSE[:2], [10_000, 20_000]))
    assert np.isfinite(predictor.grids).all()
    assert predictor.weights[0] <= 1e100
    assert predictor.hot_keys().tolist() == [UNIVERSE[1]]


@pytest.mark.parametrize(
    ("share", "parameters", "message"),
    [
        (0.0, {}, "share must be above 0 and at most 1, got 0.0"),
        (1.5, {}, "share must be above 0 and at most 1, got 1.5"),
        (0.1, {"epsilon": 0.0}, "epsilon and delta must be between 0 and 1, got 0.0 and 0.05"),
        (0.1, {"delta": 1.0}, "epsilon and delta must be between 0 and 1, got 0.025 and 1.0"),
        (0.1, {"growth": 0.9}, "growth must be at least 1, got 0.9"),
        (
            0.01,
            {"epsilon": 0.9},
            "epsilon 0.9 and delta 0.05 are too large to find keys of share 0.01; choose smaller ones",
        ),
        (
            0.1,
            {"delta": 0.9},
            "epsilon 0.025 and delta 0.9 are too large to find keys of share 0.1; choose smaller ones",
        ),
    ],
)
def test_bad_parameters_are_refused(share, parameters, message):
    with pytest.raises(ConfigError) as error:
        DyadicCountMin(share, **parameters)
    assert str(error.value) == message
