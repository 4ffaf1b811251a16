"""Placements: tables with hash behind them, and what moves from one to the next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.chain import Pairs, Placement, place
from anabranch.errors import ConfigError, SnapshotError
from anabranch.hashing import hash_keys

KEYS = hash_keys(np.arange(2_000))


def some_pairs(seed: int = 0) -> Pairs:
    rng = np.random.default_rng(seed)
    return Pairs.exact(KEYS[rng.integers(0, 100, 5_000)], KEYS[rng.integers(0, 300, 5_000)])


@settings(max_examples=10)
@given(n_servers=st.integers(1, 9), seed=st.integers(0, 5))
def test_keys_outside_the_tables_go_by_hash(n_servers, seed):
    placement = place(some_pairs(), n_servers, method="greedy", seed=seed)
    hashed = Placement.hashed(2, n_servers, seed)
    for router, plain in zip(placement.routers(), hashed.routers(), strict=True):
        assert np.array_equal(router.route(KEYS[300:]), plain.route(KEYS[300:]))


def test_operators_hash_independently():
    """A key that both operators have is local by chance, not always."""
    first, second = Placement.hashed(2, 5).routers()
    together = (first.route(KEYS) == second.route(KEYS)).mean()
    assert together == pytest.approx(1 / 5, abs=0.05)


def test_bytes_hold_all_of_it():
    placement = place([some_pairs(1), some_pairs(2)], 4, method="greedy", seed=3)
    again = Placement.unpack(placement.pack())
    assert again.pack() == placement.pack()
    assert again.tables == placement.tables
    assert again.locality == placement.locality
    for one, other in zip(placement.routers(), again.routers(), strict=True):
        assert np.array_equal(one.route(KEYS), other.route(KEYS))
    with pytest.raises(SnapshotError, match="hold pairs, not a placement"):
        Placement.unpack(some_pairs().pack())
    for damaged in (b"", b"garbage", placement.pack()[:-9]):
        with pytest.raises(SnapshotError, match=r"these bytes hold no whole placement: .*; pass Placement\.pack\(\)"):
            Placement.unpack(damaged)


def test_what_moves_is_what_is_routed_elsewhere():
    before, after = (place(some_pairs(seed), 4, method="greedy") for seed in (1, 2))
    for operator, changed in enumerate(before.moved(after, [KEYS, KEYS])):
        routes = [placement.routers()[operator].route(KEYS) for placement in (before, after)]
        assert np.array_equal(changed, routes[0] != routes[1])
    assert not any(changed.any() for changed in before.moved(before, [KEYS, KEYS]))


def test_uncounted_tuples_are_local_by_chance():
    pairs = some_pairs()
    more = Pairs(pairs.first, pairs.second, pairs.counts, 2 * pairs.total)
    placement = place(pairs, 4, method="greedy")
    (locality,), loads = placement.measured([more])
    assert locality == pytest.approx((placement.locality[0] + 1 / 4) / 2)
    assert loads.sum(axis=1).tolist() == pytest.approx([more.total] * 2)


def test_a_chain_of_another_length_is_refused():
    with pytest.raises(ConfigError, match="a chain of 3 operators has pairs for 2 hops, got 1"):
        Placement.hashed(3, 4).measured([some_pairs()])


def test_loads_and_locality_are_those_of_each_operator_and_hop():
    chain = [some_pairs(1), some_pairs(2), some_pairs(3)]
    placement = place(chain, 4, method="greedy")
    routers = placement.routers()
    locality, loads = placement.measured(chain)
    from_each = [(routers[i].route(of.first), routers[i + 1].route(of.second), of) for i, of in enumerate(chain)]
    wanted = [np.bincount(from_each[0][0], chain[0].counts, 4)]
    wanted += [np.bincount(received, of.counts, 4) for _, received, of in from_each]
    assert loads == pytest.approx(np.array(wanted))
    local = [of.counts[sent == received].sum() / of.total for sent, received, of in from_each]
    assert locality == pytest.approx(local)
