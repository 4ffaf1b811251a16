"""Seats: plans are for servers, routes for workers, and the two agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.chain import Pairs, Placement, Seats, place
from anabranch.errors import InputError
from anabranch.groupings import TableGrouping


def pairs(seed: int, n: int = 200) -> Pairs:
    rng = np.random.default_rng(seed)
    return Pairs.exact(*rng.integers(0, 2**64, (2, 30), dtype=np.uint64)[:, rng.integers(0, 30, n)])


@given(seed=st.integers(0, 99), n_workers=st.integers(1, 6), n_hosts=st.integers(1, 4), operators=st.integers(2, 3))
def test_routes_to_workers_and_to_their_servers_agree(seed, n_workers, n_hosts, operators):
    rng = np.random.default_rng(seed)
    seats = Seats.of([[f"host{i}" for i in rng.integers(0, n_hosts, n_workers)] for _ in range(operators)])
    chain = [pairs(seed + i) for i in range(operators - 1)]
    now = Placement.hashed(operators, n_workers, seed)
    on_servers = seats.by_server(now, chain)
    planned = place(chain, seats.n_servers, method="greedy", seed=seed, previous=on_servers)
    on_workers = seats.by_worker(planned, now)
    assert (on_servers.n_servers, on_workers.n_servers) == (seats.n_servers, n_workers)
    for operator, own in enumerate(seats.servers):
        keys = chain[operator].first if operator < len(chain) else chain[-1].second
        before, after = now.routers()[operator].route(keys), on_workers.routers()[operator].route(keys)
        assert (on_servers.routers()[operator].route(keys) == own[before]).all()
        wanted = planned.routers()[operator].route(keys)
        there = np.isin(wanted, own)
        assert (own[after] == wanted)[there].all()
        # A key whose worker is on its server already, or for which that server has no worker, stays.
        assert (after == before)[(own[before] == wanted) | ~there].all()
        other = np.arange(50, dtype=np.uint64) << np.uint64(56)
        outside = ~np.isin(other, planned.tables[operator].keys)
        assert (now.routers()[operator].route(other) == on_workers.routers()[operator].route(other))[outside].all()


def test_keys_of_a_server_are_spread_over_its_workers():
    seats = Seats.of([["a", "b", "a", "b", "a", "b"]] * 2)
    keys = np.random.default_rng(0).integers(0, 2**64, 3000, dtype=np.uint64)
    nothing = np.zeros(0, np.uint64)
    to_b = TableGrouping(keys, np.ones(3000, np.int32))
    planned = Placement(2, (to_b, to_b), (1.0,), np.zeros((2, 2)), (nothing, nothing))
    for router in seats.by_worker(planned, Placement.hashed(2, 6)).routers():
        counts = np.bincount(router.route(keys), minlength=6)
        assert counts[[0, 2, 4]].sum() == 0
        assert counts[[1, 3, 5]].min() > 900


def test_hosts_are_numbered_alike_whatever_their_order():
    assert Seats.of([["b", "a"], ["c", "b"]]).servers.tolist() == [[1, 0], [2, 1]]


@pytest.mark.parametrize("servers", [np.zeros((0, 2), np.int32), np.zeros(3, np.int32), np.array([[0, -1]])])
def test_anything_but_numbers_of_servers_is_refused(servers):
    with pytest.raises(InputError, match="servers must be numbers from 0, one row per operator"):
        Seats(servers)
