"""Where tuples, their arrival times and their sources come from."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.errors import InputError
from anabranch.groupings import KeyGrouping, OfflineGreedy
from anabranch.simulate import Settings, simulate
from anabranch.simulate.source import count_keys, read

from .listed import Listed, skewed


def test_tuple_i_arrives_after_i_over_rate_seconds():
    pieces = list(read(skewed(250, 9, seed=0, batch=100), Settings(rate=8.0)))
    assert [piece.start for piece in pieces] == [0, 100, 200]
    assert np.concatenate([piece.arrivals for piece in pieces]).tolist() == [i / 8 for i in range(250)]


def test_the_column_ts_gives_the_arrivals_unless_a_rate_is_asked_for():
    ts = np.array([0.0, 0.0, 2.5, 2.5, 100.0])
    stream = Listed(np.arange(5), ts=ts, batch=3)
    own = np.concatenate([piece.arrivals for piece in read(stream, Settings())])
    assert own.tolist() == ts.tolist()
    asked = np.concatenate([piece.arrivals for piece in read(stream, Settings(rate=2.0))])
    assert asked.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_ts_decides_elapsed_and_rate():
    result = simulate(Listed(np.zeros(3), ts=np.array([0.0, 1.0, 10.0])), KeyGrouping(), Settings(merge_s=0.0))
    assert result.elapsed == pytest.approx(10.001)
    assert result.rate == pytest.approx(0.2)


def test_tuples_that_all_arrive_at_once_have_no_rate():
    result = simulate(Listed(np.zeros(3), ts=np.zeros(3)), KeyGrouping(), Settings(n_workers=1, merge_s=0.0))
    assert result.rate == 0.0
    assert result.latency_mean == pytest.approx(0.002)


@pytest.mark.parametrize("batch", [2, 10])
def test_a_tuple_without_a_timestamp_is_refused(batch):
    stream = Listed(np.arange(5), ts=np.array([0.0, 1.0, 2.0, np.nan, 4.0]), batch=batch)
    with pytest.raises(InputError, match=r"^every tuple needs a timestamp"):
        simulate(stream, KeyGrouping())


@pytest.mark.parametrize("batch", [2, 3, 10])
def test_timestamps_that_go_back_are_refused(batch):
    stream = Listed(np.arange(5), ts=np.array([0.0, 1.0, 7.0, 3.5, 4.0]), batch=batch)
    with pytest.raises(InputError, match=r"^timestamps must not go back, got 3.5 s after 7 s; sort the rows"):
        simulate(stream, KeyGrouping())


def test_a_source_column_that_is_not_there_is_named():
    with pytest.raises(InputError, match="no column 'nope' to decide sources; it has key, origin"):
        simulate(skewed(10, 3, seed=0, origin=np.arange(10)), KeyGrouping(), Settings(source_key="nope"))


@pytest.mark.parametrize("grouping", [KeyGrouping(), OfflineGreedy()])
def test_a_stream_without_tuples_is_refused(grouping):
    with pytest.raises(InputError, match=r"^the stream has no tuples"):
        simulate(Listed(np.zeros(0, dtype=np.int64)), grouping)


def test_counting_stops_at_the_limit():
    stream = skewed(500, 20, seed=1, batch=90)
    keys, counts = count_keys(stream, Settings(limit=200))
    expected_keys, expected = np.unique(np.array(stream.hashes()[:200], dtype=np.uint64), return_counts=True)
    order = np.argsort(keys)
    assert keys[order].tolist() == expected_keys.tolist()
    assert counts[order].tolist() == expected.tolist()
