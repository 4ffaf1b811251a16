"""Hubs change places as long as that gains, and the loads that they leave are those of the keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.chain import KeyGraph, Pairs
from anabranch.chain.planning import hubs


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_hubs=st.integers(2, 12),
    n_servers=st.integers(2, 5),
    room=st.sampled_from([1.0, 1.3]),
)
def test_loads_stay_those_of_the_keys_and_within_the_limit(seed, n_hubs, n_servers, room):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, (n_hubs, 25), (80, 2)).astype(np.uint64)
    graph = KeyGraph.of([Pairs.exact(rows[:, 0].copy(), rows[:, 1].copy(), rng.integers(1, 99, 80))])
    found = hubs.hubs_of(graph, 0, np.zeros(0, np.int64))
    servers = rng.integers(0, n_servers, int(graph.starts[-1])).astype(np.int32)
    weights = graph.weights[found]
    loads = np.bincount(servers[found], weights, n_servers).astype(np.int64)
    limit = int(room * max(loads.max(), 1))
    followed = hubs.exchange(graph, found, limit, loads, servers)
    assert loads.tolist() == np.bincount(servers[found], weights, n_servers).tolist()
    assert loads.max() <= limit
    if followed is not None:
        assert set(followed[found].tolist()) == {-1}
        assert followed.max() < n_servers
