"""Key grouping against its one-line definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.groupings import KeyGrouping, Plan
from anabranch.hashing import MultiplyShift

from .. import reference

hashes = st.lists(st.integers(0, 2**64 - 1), max_size=50).map(lambda keys: np.array(keys, dtype=np.uint64))


@settings(max_examples=30)
@given(keys=hashes, n_workers=st.integers(1, 100))
def test_routes_equal_the_reference(keys, n_workers):
    assert KeyGrouping().build(n_workers).route(keys).tolist() == reference.key_routes(keys.tolist(), n_workers)


def test_every_key_has_one_replica_whatever_the_source(zipf):
    routes = [KeyGrouping().build(16, source=source, n_sources=3, seed=9).route(zipf) for source in range(3)]
    assert (routes[0] == routes[1]).all()
    assert (routes[0] == routes[2]).all()
    assert len(set(zip(zipf.tolist(), routes[0].tolist(), strict=True))) == len(np.unique(zipf))
    assert (routes[0] == MultiplyShift().first(zipf, 16, 9)).all()


def test_its_table_sends_everything_home():
    plan = Plan(tuples=3, hot_keys=np.array([7], np.uint64), hot_counts=np.array([3]))
    assert KeyGrouping().table(plan, 4).workers_of(7).tolist() == []
