"""The aggregator's queue, by hand."""

from __future__ import annotations

import pytest

from anabranch.groupings import KeyGrouping, ShuffleGrouping
from anabranch.simulate import Settings, simulate
from anabranch.simulate.aggregator import Aggregator
from anabranch.streams import Zipf


def test_partial_states_take_their_time_spread_over_the_tasks():
    aggregator = Aggregator(Settings(merge_s=0.5))
    assert aggregator.merge(8, ready_at=10.0, n_tasks=4) == pytest.approx(1.0)
    assert aggregator.free_at == pytest.approx(11.0)


def test_a_window_waits_for_the_one_before():
    aggregator = Aggregator(Settings(merge_s=0.5))
    aggregator.merge(8, ready_at=10.0, n_tasks=1)
    # The first is merged at 14: from 11 on the second waits 3 s and takes 1 s.
    assert aggregator.merge(2, ready_at=11.0, n_tasks=1) == pytest.approx(4.0)
    # Long after, nothing is in the way.
    assert aggregator.merge(2, ready_at=100.0, n_tasks=1) == pytest.approx(1.0)
    assert aggregator.partials == 12


def test_a_slow_aggregator_makes_replicas_costly():
    stream = Zipf(n_tuples=40_000, n_keys=2000, z=0.5)

    def latency(grouping, merge_s):
        return simulate(stream, grouping, Settings(n_workers=8, window=10_000, merge_s=merge_s)).latency_mean

    assert latency(ShuffleGrouping(), 0.0) < latency(KeyGrouping(), 0.0)
    assert latency(ShuffleGrouping(), 0.01) > latency(KeyGrouping(), 0.01)
