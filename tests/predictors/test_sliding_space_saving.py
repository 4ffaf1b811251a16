"""SpaceSaving over sliding frames, exact where it has a counter a key."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.errors import ConfigError
from anabranch.hashing import hash_keys
from anabranch.predictors import SlidingSpaceSaving

UNIVERSE = hash_keys(np.arange(30))

streams = skewed(UNIVERSE, most=1_200)


@settings(max_examples=80)
@given(keys=streams, frame=st.sampled_from([1, 7, 40, 500]), share=st.sampled_from([0.05, 0.25, 1.0]))
def test_hot_keys_are_exact_with_a_counter_a_key(keys, frame, share):
    """The count of this frame, and of the last one the share that the window still covers."""
    predictor = SlidingSpaceSaving(share, frame, capacity=30)
    predictor.update(keys)
    begin = max(0, (len(keys) - 1) // frame * frame)
    current, previous = Counter(keys[begin:].tolist()), Counter(keys[max(0, begin - frame) : begin].tolist())
    left = max(0.0, 1 - current.total() / frame)
    total = current.total() + left * previous.total()
    expected = {
        key
        for key in current | previous
        if current[key] + previous[key] * left >= max(1.0, share * total)
    }  # fmt: skip
    assert set(predictor.hot_keys().tolist()) == expected


@settings(max_examples=40)
@given(keys=streams)
def test_in_one_frame_a_key_with_its_share_is_found_whatever_the_capacity(keys):
    predictor = SlidingSpaceSaving(0.25, frame=1_200, capacity=5)
    predictor.update(keys)
    hot = {key for key, count in Counter(keys.tolist()).items() if count >= max(1, 0.25 * len(keys))}
    assert hot <= set(predictor.hot_keys().tolist())


def test_a_key_of_two_frames_ago_is_forgotten():
    predictor = SlidingSpaceSaving(0.5, frame=10)
    for rank in (0, 1, 2):
        predictor.update(np.full(10, UNIVERSE[rank]))
        assert predictor.hot_keys().tolist() == [UNIVERSE[rank]]
    predictor.update(np.full(3, UNIVERSE[3]))
    assert predictor.hot_keys().tolist() == [UNIVERSE[2]]


@pytest.mark.parametrize(
    ("share", "frame", "message"),
    [
        (0.0, 10, "share must be above 0 and at most 1, got 0.0"),
        (2.0, 10, "share must be above 0 and at most 1, got 2.0"),
        (0.5, 0, "frame must be at least 1, got 0"),
    ],
)
def test_bad_parameters_are_refused(share, frame, message):
    with pytest.raises(ConfigError) as error:
        SlidingSpaceSaving(share, frame)
    assert str(error.value) == message
