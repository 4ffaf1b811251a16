from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Groups, TopK

words = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60)


@given(words, words)
def test_counts_beyond_the_capacity_are_lower_bounds(first: list[str], second: list[str]) -> None:
    top = TopK("x", k=2, capacity=3)
    parts = [top.add(Groups(np.zeros(len(part), np.int64), 1), pa.array(part))[0] for part in (first, second)]
    assert all(len(part[0]) <= 3 for part in parts)
    merged = top.merge(Groups(np.zeros(2, np.int64), 1), pa.concat_arrays(parts))
    result = top.result(*merged)[0].as_py()
    both = first + second
    assert len(result) == min(2, len(set(both)))
    assert all(entry["count"] <= both.count(entry["value"]) for entry in result)


@given(words)
def test_the_lightest_are_dropped_first(values: list[str]) -> None:
    state = TopK("x", k=2, capacity=3).add(Groups(np.zeros(len(values), np.int64), 1), pa.array(values))[0]
    kept = {entry["value"] for entry in state[0].as_py()}
    dropped = set(values) - kept
    assert len(kept) == min(3, len(set(values)))
    assert all((-values.count(k), k) < (-values.count(d), d) for k in kept for d in dropped)
