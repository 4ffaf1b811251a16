"""Epoch counters against a reference of Algorithm 1, the heap they are kept in, and each guarantee of the docstring."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.hashing import hash_keys
from anabranch.sketches import EpochCounters
from anabranch.sketches.epoch_counters import LARGEST, USED

UNIVERSE = hash_keys(np.arange(120))

capacities = st.sampled_from([1, 2, 5, 6, 30, 200])
epochs = st.sampled_from([1, 3, 20, 1000])
alphas = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])
streams = skewed(UNIVERSE[:100], most=500)


class Reference:
    """Counts by key, in the order of their slots: the first of several least ones is replaced."""

    def __init__(self, capacity: int, epoch: int, alpha: float) -> None:
        self.capacity, self.epoch, self.alpha = capacity, epoch, alpha
        self.slots: list[int] = []
        self.counts: dict[int, float] = {}
        self.in_epoch, self.total = 0, 0.0

    def update(self, keys: np.ndarray) -> None:
        for key in keys.tolist():
            if self.in_epoch == self.epoch:
                self.counts = {k: count * self.alpha for k, count in self.counts.items()}
                self.total *= self.alpha
                self.in_epoch = 0
            if key not in self.counts:
                self.enter(key)
            self.counts[key] += 1
            self.total += 1
            self.in_epoch += 1

    def enter(self, key: int) -> None:
        if len(self.slots) < self.capacity:
            self.slots.append(key)
            self.counts[key] = 0.0
        else:
            least = min(self.slots, key=lambda k: self.counts[k])
            self.slots[self.slots.index(least)] = key
            self.counts[key] = self.counts.pop(least)


def check_structure(sketch: EpochCounters) -> None:
    """The heap is a heap by (floor, slot), no floor is above its count, the table finds every key and nothing else."""
    state, n = sketch.state, int(sketch.state.sizes[USED])
    order = [(state.floors[at], state.heap[at]) for at in range(n)]
    assert all(order[(at - 1) // 4] < order[at] for at in range(1, n))
    assert sorted(state.heap[:n].tolist()) == list(range(n))
    assert (state.floors[:n] <= state.counts[state.heap[:n]]).all()
    assert (state.table[state.where[:n]] == np.arange(1, n + 1)).all()
    assert np.count_nonzero(state.table) == n
    keys = state.keys[:n]
    assert len(set(keys.tolist())) == n
    assert sketch.estimate(keys).tolist() == state.counts[:n].tolist()
    assert state.sums[LARGEST] == state.counts[:n].max(initial=0.0)


@settings(max_examples=80)
@given(capacity=capacities, epoch=epochs, alpha=alphas, parts=st.lists(streams, min_size=1, max_size=3))
def test_counters_equal_the_reference(capacity, epoch, alpha, parts):
    sketch, reference = EpochCounters(capacity, epoch, alpha), Reference(capacity, epoch, alpha)
    for part in parts:
        sketch.update(part)
        reference.update(part)
        check_structure(sketch)
        n = len(reference.slots)
        assert sketch.state.keys[:n].tolist() == reference.slots
        assert sketch.total == reference.total
        floor = min(reference.counts.values()) if n == capacity else 0.0
        expected = [reference.counts.get(key, floor) for key in UNIVERSE.tolist()]
        assert sketch.estimate(UNIVERSE).tolist() == expected


@settings(max_examples=40)
@given(capacity=capacities, epoch=epochs, stream=streams)
def test_without_decay_no_estimate_is_too_low(capacity, epoch, stream):
    sketch = EpochCounters(capacity, epoch, alpha=1.0)
    sketch.update(stream)
    true = Counter(stream.tolist())
    estimates = sketch.estimate(UNIVERSE)
    assert all(estimate >= true[key] for key, estimate in zip(UNIVERSE.tolist(), estimates, strict=True))
    assert (estimates <= np.array([true[key] for key in UNIVERSE.tolist()]) + len(stream) / capacity).all()


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_an_epoch_shrinks_the_counts(alpha):
    sketch = EpochCounters(capacity=10, epoch=6, alpha=alpha)
    sketch.update(UNIVERSE[[0, 0, 0, 1, 1, 2]])
    assert sketch.estimate(UNIVERSE[:4]).tolist() == [3, 2, 1, 0]
    sketch.update(UNIVERSE[[3]])
    assert sketch.estimate(UNIVERSE[:4]).tolist() == [3 * alpha, 2 * alpha, alpha, 1]
    assert sketch.total == 6 * alpha + 1


def test_by_default_an_epoch_has_a_thousand_tuples_and_leaves_a_fifth():
    sketch = EpochCounters()
    sketch.update(np.full(1_001, UNIVERSE[0]))
    assert sketch.estimate(UNIVERSE[:1]).tolist() == [1_000 * 0.2 + 1]


def test_one_counter_belongs_to_the_last_key():
    sketch = EpochCounters(capacity=1, epoch=100, alpha=1.0)
    for i, key in enumerate(UNIVERSE, start=1):
        sketch.update(np.array([key]))
        keys, counts = sketch.top()
        assert (keys.tolist(), counts.tolist()) == ([key], [i])
        check_structure(sketch)


def test_counts_decay_until_they_are_all_equal():
    """Counts of a key that does not come again fall below the smallest number and round to nothing."""
    sketch = EpochCounters(capacity=50, epoch=1, alpha=0.2)
    sketch.update(UNIVERSE[:50].repeat(2))
    sketch.update(np.full(500, UNIVERSE[0]))
    check_structure(sketch)
    assert np.count_nonzero(sketch.estimate(UNIVERSE[:50])) == 1
    sketch.update(UNIVERSE[60:61])
    # All but the first are zero: the lowest slot of them gives way.
    assert sketch.state.keys[:3].tolist() == UNIVERSE[[0, 60, 2]].tolist()


def test_top_gives_the_heaviest_first():
    sketch = EpochCounters(capacity=10, epoch=100)
    sketch.update(UNIVERSE[:4].repeat([2, 9, 4, 7]))
    assert sketch.top(2)[0].tolist() == UNIVERSE[[1, 3]].tolist()
    assert sketch.top()[1].tolist() == [9, 7, 4, 2]
    assert [len(array) for array in sketch.top(0)] == [0, 0]
    assert len(EpochCounters().top()[0]) == 0


# --- merging and loading


@settings(max_examples=40)
@given(one=streams, other=streams, capacity=capacities)
def test_a_merged_sketch_has_the_heaviest_of_both(one, other, capacity):
    sketch, added = EpochCounters(capacity, 30, 0.5), EpochCounters(200, 30, 0.5)
    sketch.update(one)
    added.update(other)
    sums = Counter(dict(zip(*(array.tolist() for array in sketch.top()), strict=True)))
    sums.update(dict(zip(*(array.tolist() for array in added.top()), strict=True)))
    total = sketch.total + added.total
    sketch.merge(added)
    check_structure(sketch)
    assert sketch.total == total
    keys, counts = (array.tolist() for array in sketch.top())
    assert counts == sorted(sums.values(), reverse=True)[:capacity]
    assert all(sums[key] == count for key, count in zip(keys, counts, strict=True))


@settings(max_examples=40)
@given(capacity=capacities, stream=streams, later=streams)
def test_a_loaded_sketch_goes_on_from_these_counts(capacity, stream, later):
    """At the start of an epoch; slots are taken heaviest first, and only their order is new."""
    sketch = EpochCounters(capacity, 50, 0.5)
    sketch.update(stream)
    loaded, reference = EpochCounters(capacity, 50, 0.5), Reference(capacity, 50, 0.5)
    loaded.update(UNIVERSE[100:])
    loaded.load(*sketch.top(), sketch.total)
    check_structure(loaded)
    assert loaded.estimate(UNIVERSE).tolist() == sketch.estimate(UNIVERSE).tolist()
    reference.slots = sketch.top()[0].tolist()
    reference.counts = dict(zip(*(array.tolist() for array in sketch.top()), strict=True))
    reference.total = sketch.total
    loaded.update(later)
    reference.update(later)
    check_structure(loaded)
    assert loaded.state.keys[: len(reference.slots)].tolist() == reference.slots
    assert loaded.total == reference.total


def test_loading_more_than_fits_keeps_the_heaviest():
    sketch = EpochCounters(capacity=3)
    sketch.load(UNIVERSE[:5], np.array([1.0, 5.0, 2.0, 4.0, 3.0]), 20.0)
    assert sketch.top()[0].tolist() == UNIVERSE[[1, 3, 4]].tolist()
    assert sketch.total == 20.0
    check_structure(sketch)


def test_loading_nothing_empties_it():
    sketch = EpochCounters(capacity=3)
    sketch.update(UNIVERSE)
    sketch.load(UNIVERSE[:0], np.zeros(0), 0.0)
    check_structure(sketch)
    assert not sketch.estimate(UNIVERSE).any()
    sketch.update(UNIVERSE[:2])
    assert sketch.estimate(UNIVERSE[:3]).tolist() == [1, 1, 0]
