"""SpaceSaving against an exact counter: each guarantee of its docstring."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from tests.drawn import skewed

from anabranch.containers import slot_table
from anabranch.errors import ConfigError
from anabranch.hashing import hash_keys
from anabranch.sketches import SpaceSaving

UNIVERSE = hash_keys(np.arange(120))

capacities = st.integers(1, 50)
# A few heavy ones, so that some keys stay and others fight for the last counters.
streams = skewed(UNIVERSE[:100], most=500)


def check(sketch: SpaceSaving, true: Counter[int], *, counts_add_up: bool = True) -> None:
    total = true.total()
    bound = total / sketch.capacity
    keys, counts, errors = (array.tolist() for array in sketch.top())
    assert sketch.total == total
    assert len(set(keys)) == len(keys) <= sketch.capacity
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == total if counts_add_up else sum(counts) <= total
    for key, count, error in zip(keys, counts, errors, strict=True):
        assert count - error <= true[key] <= count
        assert error <= bound
    assert {key for key, count in true.items() if count > bound} <= set(keys)
    estimates = dict(zip(UNIVERSE.tolist(), sketch.estimate(UNIVERSE).tolist(), strict=True))
    assert {key: estimates[key] for key in keys} == dict(zip(keys, counts, strict=True))
    assert all(true[key] <= estimate <= true[key] + bound for key, estimate in estimates.items())


def counters(sketch: SpaceSaving) -> set[tuple[int, int, int]]:
    return set(zip(*(array.tolist() for array in sketch.top()), strict=True))


@settings(max_examples=50)
@given(capacity=capacities, parts=st.lists(streams, min_size=1, max_size=4))
def test_guarantees_hold_after_every_update(capacity, parts):
    sketch, true = SpaceSaving(capacity), Counter()
    for part in parts:
        sketch.update(part)
        true.update(part.tolist())
        check(sketch, true)


@pytest.mark.parametrize("capacity", [1, 2, 50, 1000])
def test_guarantees_hold_on_a_long_skewed_stream(capacity):
    stream = UNIVERSE[np.random.default_rng(1).zipf(1.3, 50_000) % len(UNIVERSE)]
    sketch = SpaceSaving(capacity)
    sketch.update(stream)
    check(sketch, Counter(stream.tolist()))


@njit
def homes(asked, keys, table, out):
    for i in range(len(asked)):
        out[i] = slot_table.place_of(asked[i], keys, table)


def test_keys_that_share_a_bucket_are_told_apart():
    """Keys whose table places collide, evicted over and over: deletion must close every gap."""
    sketch = SpaceSaving(16)
    anyone = np.arange(20_000, dtype=np.uint64)
    nobody, home = np.zeros(16, dtype=np.uint64), np.empty(len(anyone), dtype=np.int64)
    homes(anyone, nobody, slot_table.empty(16), home)
    crowd = anyone[home < 3][:400]
    assert len(crowd) == 400
    rng = np.random.default_rng(2)
    stream = np.concatenate([crowd, rng.choice(crowd[:20], 4000), crowd[::-1], rng.choice(crowd, 4000)])
    sketch.update(stream)
    true = Counter(stream.tolist())
    keys, counts, errors = (array.tolist() for array in sketch.top())
    assert sum(counts) == len(stream)
    assert all(count - error <= true[key] <= count for key, count, error in zip(keys, counts, errors, strict=True))
    assert sketch.estimate(np.array(keys, dtype=np.uint64)).tolist() == counts
    assert np.count_nonzero(sketch.summary.table) == 16


@settings(max_examples=40)
@given(capacity=capacities, stream=streams, seed=st.integers(0, 1_000))
def test_a_weighted_update_keeps_the_guarantees_of_repeated_ones(capacity, stream, seed):
    weights = np.random.default_rng(seed).integers(1, 21, len(stream))
    sketch = SpaceSaving(capacity)
    sketch.update(stream, weights)
    check(sketch, Counter(stream.repeat(weights).tolist()))


@settings(max_examples=40)
@given(capacity=capacities, extra=st.integers(0, 20), one=streams, other=streams, later=streams)
def test_a_merged_sketch_keeps_the_bounds(capacity, extra, one, other, later):
    sketch, added = SpaceSaving(capacity), SpaceSaving(capacity + extra)
    sketch.update(one)
    added.update(other)
    sketch.merge(added)
    true = Counter([*one.tolist(), *other.tolist()])
    check(sketch, true, counts_add_up=False)
    sketch.update(later)
    true.update(later.tolist())
    check(sketch, true, counts_add_up=False)


@pytest.mark.parametrize("capacity", [1, 5, 20])
@pytest.mark.parametrize("seed", range(5))
def test_merged_sketches_of_long_streams_keep_the_bounds(capacity, seed):
    """Most keys have been evicted from one of the two, and count there as its smallest counter."""
    rng = np.random.default_rng(seed)
    parts = [UNIVERSE[(rng.zipf(1.2, 2_000) * (7 if i else 1)) % len(UNIVERSE)] for i in range(2)]
    sketch, added = SpaceSaving(capacity), SpaceSaving(capacity)
    sketch.update(parts[0])
    added.update(parts[1])
    sketch.merge(added)
    check(sketch, Counter(np.concatenate(parts).tolist()), counts_add_up=False)


@settings(max_examples=30)
@given(one=streams, other=streams)
def test_merging_is_exact_while_there_is_room(one, other):
    sketch, added = SpaceSaving(len(UNIVERSE)), SpaceSaving(len(UNIVERSE))
    sketch.update(one)
    added.update(other)
    sketch.merge(added)
    true = Counter([*one.tolist(), *other.tolist()])
    keys, counts, errors = (array.tolist() for array in sketch.top())
    assert dict(zip(keys, counts, strict=True)) == true
    assert not any(errors)


def test_a_smaller_sketch_cannot_be_merged_in():
    """It has forgotten keys, for which this sketch, with counters to spare, would then answer zero."""
    sketch, small = SpaceSaving(10), SpaceSaving(2)
    small.update(UNIVERSE[:6])
    with pytest.raises(ConfigError, match="10 counters cannot take in one of 2"):
        sketch.merge(small)
    assert sketch.total == 0
    small.merge(sketch)
    assert small.total == 6


@settings(max_examples=40)
@given(capacity=capacities, one=streams, later=streams)
def test_loading_the_counters_of_a_sketch_continues_it(capacity, one, later):
    sketch, loaded = SpaceSaving(capacity), SpaceSaving(capacity)
    sketch.update(one)
    loaded.update(UNIVERSE[50:])
    loaded.load(*sketch.top(), sketch.total)
    assert counters(loaded) == counters(sketch)
    assert loaded.estimate(UNIVERSE).tolist() == sketch.estimate(UNIVERSE).tolist()
    loaded.update(later)
    check(loaded, Counter([*one.tolist(), *later.tolist()]))


@settings(max_examples=20)
@given(capacity=capacities, one=streams, later=streams)
def test_the_arrays_of_a_sketch_continue_it(capacity, one, later):
    sketch, restored = SpaceSaving(capacity), SpaceSaving(1)
    sketch.update(one)
    restored.restore({name: array.copy() for name, array in sketch.arrays().items()})
    assert restored.total == len(one)
    for each in (sketch, restored):
        each.update(later)
    assert restored.total == sketch.total
    assert counters(restored) == counters(sketch)
    assert restored.nbytes == sketch.nbytes


def test_what_cannot_be_loaded():
    sketch = SpaceSaving(2)
    sketch.update(UNIVERSE[:1])
    none = np.zeros(3, dtype=np.int64)
    with pytest.raises(ConfigError, match="at most 2 counters fit, got 3"):
        sketch.load(UNIVERSE[:3], none + 1, none, 3)
    with pytest.raises(ConfigError, match="counts must be at least 1, got 0"):
        sketch.load(UNIVERSE[:2], none[:2], none[:2], 0)
    assert sketch.total == 1
    assert sketch.top()[0].tolist() == UNIVERSE[:1].tolist()


def test_top_gives_the_heaviest_first():
    sketch = SpaceSaving(10)
    sketch.update(UNIVERSE[:4].repeat([2, 9, 4, 7]))
    assert sketch.top(2)[0].tolist() == UNIVERSE[[1, 3]].tolist()
    assert sketch.top()[1].tolist() == [9, 7, 4, 2]
    assert [len(array) for array in sketch.top(0)] == [0, 0, 0]
    assert len(SpaceSaving(3).top()[0]) == 0
