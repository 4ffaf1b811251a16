"""What every exported sketch promises."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from tests.drawn import skewed

from anabranch import sketches
from anabranch.errors import ConfigError
from anabranch.hashing import hash_keys
from anabranch.sketches import CoinSynopsis, CountingBloomFilter, EpochCounters, SpaceSaving

# How to make each sketch, small enough to be wrong, and without forgetting.
MAKE = {
    CoinSynopsis: lambda: CoinSynopsis(r=0, p=0.0),
    CountingBloomFilter: lambda: CountingBloomFilter(capacity=5, false_positive_rate=0.2),
    EpochCounters: lambda: EpochCounters(capacity=8, epoch=10, alpha=1.0),
    SpaceSaving: lambda: SpaceSaving(capacity=8),
}
BAD_PARAMETERS = {
    CoinSynopsis: [{"r": -1}, {"l": 0}, {"l": 60}, {"p": 1.0}, {"p": float("nan")}, {"zeta": 0}, {"zeta": 17}],
    CountingBloomFilter: [{"capacity": 0}, {"false_positive_rate": 0}, {"false_positive_rate": 1}],
    EpochCounters: [{"capacity": 0}, {"epoch": 0}, {"alpha": -0.1}, {"alpha": 1.1}, {"alpha": float("nan")}],
    SpaceSaving: [{"capacity": 0}, {"capacity": -3}],
}
# Those that count, those whose bounds hold after a merge too, and those that count a key several times at once.
COUNTING = [EpochCounters, SpaceSaving]
BOUNDED_AFTER_MERGE = [SpaceSaving]
WEIGHTED = [SpaceSaving]

UNIVERSE = hash_keys(np.arange(40))

every_sketch = pytest.mark.parametrize("cls", [getattr(sketches, name) for name in sketches.__all__])
every_counting_sketch = pytest.mark.parametrize("cls", COUNTING)
streams = skewed(UNIVERSE[:30], most=300)


def true_counts(*parts: np.ndarray) -> np.ndarray:
    counts = Counter(np.concatenate(parts).tolist())
    return np.array([counts[key] for key in UNIVERSE.tolist()])


def update(sketch, keys: np.ndarray) -> None:
    (sketch.append if isinstance(sketch, CountingBloomFilter) else sketch.update)(keys)


def answers(sketch) -> list[float]:
    if isinstance(sketch, CountingBloomFilter):
        return sketch.contains(UNIVERSE).tolist()
    return [*sketch.estimate(UNIVERSE).tolist(), getattr(sketch, "total", None)]


def test_every_exported_sketch_is_in_this_contract():
    assert {getattr(sketches, name) for name in sketches.__all__} == set(MAKE) == set(BAD_PARAMETERS)


@every_counting_sketch
@settings(max_examples=40)
@given(stream=streams)
def test_an_estimate_is_never_too_low(cls, stream):
    sketch = MAKE[cls]()
    sketch.update(stream)
    assert (sketch.estimate(UNIVERSE) >= true_counts(stream)).all()
    assert sketch.total == len(stream)


@every_counting_sketch
@settings(max_examples=40)
@given(one=streams, other=streams)
def test_merging_adds_the_other_stream(cls, one, other):
    sketch, added = MAKE[cls](), MAKE[cls]()
    sketch.update(one)
    added.update(other)
    unchanged = answers(added)
    sketch.merge(added)
    assert sketch.total == len(one) + len(other)
    assert answers(added) == unchanged
    if cls in BOUNDED_AFTER_MERGE:
        assert (sketch.estimate(UNIVERSE) >= true_counts(one, other)).all()


@every_counting_sketch
@given(stream=streams)
@settings(max_examples=25)
def test_merging_an_empty_sketch_changes_no_estimate(cls, stream):
    sketch, emptied = MAKE[cls](), MAKE[cls]()
    sketch.update(stream)
    emptied.merge(sketch)
    expected = answers(sketch)
    sketch.merge(MAKE[cls]())
    assert answers(sketch) == answers(emptied) == expected


@every_sketch
def test_empty_arrays_change_nothing(cls):
    sketch = MAKE[cls]()
    update(sketch, UNIVERSE[:0])
    assert not any(answers(sketch))
    update(sketch, UNIVERSE[:9])
    before = answers(sketch)
    assert any(before)
    update(sketch, UNIVERSE[:0])
    assert answers(sketch) == before


@every_sketch
@settings(max_examples=15)
@given(one=streams, other=streams)
def test_a_pickled_sketch_continues_identically(cls, one, other):
    sketch = MAKE[cls]()
    update(sketch, one)
    twin = pickle.loads(pickle.dumps(sketch))
    assert answers(twin) == answers(sketch)
    for each in (sketch, twin):
        update(each, other)
    assert answers(twin) == answers(sketch)
    assert sketch.nbytes == twin.nbytes > 0


@every_counting_sketch
def test_a_key_hash_may_be_any_number(cls):
    edges = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
    sketch = MAKE[cls]()
    sketch.update(np.repeat(edges, [4, 3, 2, 1]))
    assert (sketch.estimate(edges) >= [4, 3, 2, 1]).all()


@every_sketch
def test_bad_parameters_are_refused(cls):
    for parameters in BAD_PARAMETERS[cls]:
        (name,) = parameters
        with pytest.raises(ConfigError, match=rf"\b{name} (must be|at least)"):
            cls(**parameters)


@pytest.mark.parametrize("cls", WEIGHTED)
def test_bad_counts_are_refused_and_change_nothing(cls):
    sketch = MAKE[cls]()
    sketch.update(UNIVERSE[:9])
    sketch.update(UNIVERSE[:0], np.zeros(0, dtype=np.int64))
    before = answers(sketch)
    with pytest.raises(ConfigError, match="counts must be at least 1, got 0"):
        sketch.update(UNIVERSE[:2], np.array([1, 0]))
    with pytest.raises(ConfigError, match="equally long, got 3 and 2"):
        sketch.update(UNIVERSE[:3], np.array([1, 1]))
    assert answers(sketch) == before
