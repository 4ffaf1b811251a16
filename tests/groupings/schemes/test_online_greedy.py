"""On-line greedy: the least loaded worker for a new key, and there for good."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.groupings import OnlineGreedy
from anabranch.hashing import hash_keys

from .. import reference

UNIVERSE = hash_keys(np.arange(5_000))


@settings(max_examples=40)
@given(keys=skewed(UNIVERSE[:300], most=1_500), n_workers=st.integers(1, 12), source=st.integers(0, 2))
def test_every_choice_is_one_the_reference_allows(keys, n_workers, source):
    routes = OnlineGreedy().build(n_workers, source=source, n_sources=3).route(keys)
    for worker, right in reference.replay_online_greedy(keys.tolist(), routes.tolist(), n_workers):
        assert worker in right


def test_the_first_tie_is_broken_by_the_source():
    starts = [OnlineGreedy().build(9, source=source, n_sources=3).route(UNIVERSE[:1]) for source in range(3)]
    assert np.concatenate(starts).tolist() == [0, 3, 6]


def test_the_table_survives_its_growth():
    keys = np.concatenate([UNIVERSE, UNIVERSE[::-1]])
    routes = OnlineGreedy().build(8).route(keys)
    assert (routes[:5_000] == routes[:4_999:-1]).all()
    assert np.bincount(routes).tolist() == [1250] * 8


def test_every_key_has_one_replica_among_sources_that_share_the_table(zipf):
    routers = OnlineGreedy().build_all(n_sources=3, n_workers=16)
    pairs = set()
    for source, router in enumerate(routers):
        pairs |= set(zip(zipf[source::3].tolist(), router.route(zipf[source::3]).tolist(), strict=True))
    assert len(pairs) == len(np.unique(zipf))


def test_only_the_keys_of_a_worker_that_left_move():
    router = OnlineGreedy().build(6)
    keys = UNIVERSE[:3_000]
    before = router.route(keys)
    router.set_workers([0, 1, 2, 4, 5, 7])
    after = router.route(keys)
    assert ((after != before) == (before == 3)).all()
    assert (router.route(keys) == after).all()
