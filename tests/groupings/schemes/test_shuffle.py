"""Shuffle grouping is round robin, each source from its own start."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.groupings import ShuffleGrouping

from .. import reference


@settings(max_examples=30)
@given(
    parts=st.lists(st.integers(0, 40), min_size=1, max_size=5), n_workers=st.integers(1, 20), source=st.integers(0, 6)
)
def test_routes_equal_the_reference(parts, n_workers, source):
    router = ShuffleGrouping().build(n_workers, source=source, n_sources=7)
    routes = [worker for part in parts for worker in router.route(np.zeros(part, dtype=np.uint64)).tolist()]
    assert routes == reference.shuffle_routes(routes, n_workers, source * n_workers // 7)
    loads = np.bincount(routes, minlength=n_workers)
    assert loads.max() - loads.min() <= 1


def test_sources_start_at_different_workers():
    routers = ShuffleGrouping().build_all(n_sources=4, n_workers=8)
    assert [int(router.route(np.zeros(1, np.uint64))[0]) for router in routers] == [0, 2, 4, 6]


def test_the_turn_goes_on_after_a_worker_left():
    router = ShuffleGrouping().build(5)
    router.route(np.zeros(4, dtype=np.uint64))
    router.set_workers([0, 2, 3])
    assert router.route(np.zeros(4, dtype=np.uint64)).tolist() == [2, 3, 0, 2]
