"""Static two choices: the better of two for a new key, and there for good."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drawn import skewed

from anabranch.groupings import StaticTwoChoices
from anabranch.hashing import hash_keys

from .. import reference

UNIVERSE = hash_keys(np.arange(5_000))


@settings(max_examples=40)
@given(keys=skewed(UNIVERSE[:300], most=1_500), n_workers=st.integers(1, 12))
def test_routes_equal_the_reference(keys, n_workers):
    routes = StaticTwoChoices().build(n_workers).route(keys)
    assert routes.tolist() == reference.static_two_choices_routes(keys.tolist(), n_workers)


def test_the_table_survives_its_growth():
    """More keys than the first table has places, and each again after the table has grown."""
    keys = np.concatenate([UNIVERSE, UNIVERSE[::-1]])
    routes = StaticTwoChoices().build(8).route(keys)
    assert routes.tolist() == reference.static_two_choices_routes(keys.tolist(), 8)
    assert (routes[:5_000] == routes[:4_999:-1]).all()


def test_every_key_has_one_replica_among_sources_that_share_the_table(zipf):
    routers = StaticTwoChoices().build_all(n_sources=3, n_workers=16)
    pairs = set()
    for source, router in enumerate(routers):
        pairs |= set(zip(zipf[source::3].tolist(), router.route(zipf[source::3]).tolist(), strict=True))
    assert len(pairs) == len(np.unique(zipf))


def test_only_the_keys_of_a_worker_that_left_move():
    router = StaticTwoChoices().build(6)
    keys = UNIVERSE[:3_000]
    before = router.route(keys)
    router.set_workers([0, 1, 2, 4, 5, 7])
    after = router.route(keys)
    assert ((after != before) == (before == 3)).all()
    assert (router.route(keys) == after).all()


def test_loads_decide_again_in_a_new_window_but_old_keys_stay():
    router = StaticTwoChoices().build(6)
    before = router.route(UNIVERSE[:500])
    router.begin_window()
    assert not router.loads.any()
    assert (router.route(UNIVERSE[:500]) == before).all()
