"""Pairs are counted, pooled and cut without losing a tuple."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.chain import Pairs
from anabranch.errors import ConfigError, InputError, SnapshotError
from anabranch.groupings import KeyGrouping

tuples = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60)


def columns(listed: list[tuple[int, int]]) -> np.ndarray:
    return np.array(listed, dtype=np.uint64).reshape(-1, 2).T


def counted(pairs: Pairs) -> Counter:
    listed = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    return Counter(dict(zip(listed, pairs.counts.tolist(), strict=True)))


@given(listed=tuples)
def test_exact_counts_every_pair_heaviest_first(listed):
    pairs = Pairs.exact(*columns(listed))
    assert counted(pairs) == Counter(listed)
    assert pairs.total == len(listed)
    assert (np.diff(pairs.counts) <= 0).all()


@given(parts=st.lists(tuples, max_size=4), n=st.integers(1, 30))
def test_pooled_adds_up_and_top_keeps_the_total(parts, n):
    pooled = Pairs.pooled([Pairs.exact(*columns(listed)) for listed in parts])
    whole = Counter(pair for listed in parts for pair in listed)
    assert counted(pooled) == whole
    top = pooled.top(n)
    assert len(top) == min(n, len(whole))
    assert top.total == pooled.total == sum(whole.values())
    assert sorted(top.counts, reverse=True) == sorted(whole.values(), reverse=True)[:n]
    assert Pairs.pooled([top, Pairs.exact(*columns(parts[0] if parts else []))]).total >= top.total


def test_the_order_of_a_pair_matters():
    one, other = Pairs.exact(*columns([(1, 2)])), Pairs.exact(*columns([(2, 1)]))
    assert len(Pairs.pooled([one, other])) == 2


@given(listed=tuples)
def test_bytes_hold_all_of_it(listed):
    pairs = Pairs.exact(*columns(listed))
    again = Pairs.unpack(pairs.pack())
    assert (counted(again), again.total) == (counted(pairs), pairs.total)


@given(parts=st.lists(tuples, min_size=1, max_size=4), fade=st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_older_periods_fade(parts, fade):
    faded = Pairs.faded([Pairs.exact(*columns(listed)) for listed in parts], fade)
    for pair, count in counted(faded).items():
        kept = sum(listed.count(pair) * fade**age for age, listed in enumerate(reversed(parts)))
        # A pair never fades away for good, and is rounded once a period.
        assert count / faded.scale == pytest.approx(kept, abs=0.001 * len(parts))
    assert Pairs.unpack(faded.pack()).scale == faded.scale
    assert faded.top(1).scale == faded.scale


def test_periods_fade_once():
    period = Pairs.exact(*columns([(1, 2)]))
    with pytest.raises(InputError, match="pairs must have one scale, got"):
        Pairs.pooled([period, Pairs.faded([period], 0.5)])
    with pytest.raises(ConfigError, match="fade must be above 0 and at most 1, got 0"):
        Pairs.faded([period], 0)
    faded = Pairs.faded([period, period], 0.5)
    pooled = Pairs.pooled([faded, faded])
    assert (pooled.scale, pooled.total) == (faded.scale, 2 * faded.total)


def test_nothing_pooled_is_no_tuple():
    assert (len(Pairs.pooled([])), Pairs.pooled([]).total) == (0, 0)


def test_equally_heavy_pairs_are_in_the_order_of_their_keys():
    listed = [(3, 1), (1, 2), (2, 9), (1, 1), (2, 9)]
    pairs = Pairs.exact(*columns(listed))
    assert list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == [(2, 9), (1, 1), (1, 2), (3, 1)]
    assert counted(Pairs.exact(*columns([(1, 2), (1, 2)]), np.array([3, 4]))) == {(1, 2): 7}


def test_other_bytes_are_refused():
    with pytest.raises(SnapshotError, match="hold a router, not pairs"):
        Pairs.unpack(KeyGrouping().build(3).snapshot())
    with pytest.raises(SnapshotError, match="damaged"):
        Pairs.unpack(Pairs.exact(*columns([(1, 2)])).pack()[:-1])


@pytest.mark.parametrize(
    ("counts", "total", "message"),
    [
        ([1], 1, "must be equally long"),
        ([1, 0], 5, "counts must be at least 1, got 0"),
        ([2, 2], 3, "at least the sum"),
    ],
)
def test_pairs_that_cannot_be_are_refused(counts, total, message):
    keys = np.arange(2, dtype=np.uint64)
    with pytest.raises(InputError, match=message):
        Pairs(keys, keys, np.array(counts), total)
