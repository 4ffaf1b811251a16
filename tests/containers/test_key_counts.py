"""Key counts against Python's own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.containers.colliding import COLLIDING
from tests.drawn import skewed

from anabranch.containers.key_counts import KeyCounts

streams = skewed(COLLIDING, most=1_000).map(np.ndarray.tolist)


@given(st.lists(streams, max_size=4))
def test_counts_are_those_of_a_counter(parts):
    counts, expected = KeyCounts(), Counter()
    for part in parts:
        counts.update(np.array(part, dtype=np.uint64))
        expected.update(part)
    keys, times = counts.result()
    assert dict(zip(keys.tolist(), times.tolist(), strict=True)) == expected


@pytest.mark.parametrize("n", [511, 512, 513, 1024, 20_000])
def test_counts_grow(n):
    values = np.random.default_rng(1).integers(0, 2**64, n, dtype=np.uint64)
    values[0] = 0
    counts = KeyCounts()
    counts.update(values)
    counts.update(values[: n // 2])
    keys, times = counts.result()
    expected = Counter(values.tolist()) + Counter(values[: n // 2].tolist())
    assert dict(zip(keys.tolist(), times.tolist(), strict=True)) == expected
