"""The model of servers at its extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.chain import Servers
from anabranch.chain.planning.servers import traffic_of
from anabranch.errors import ConfigError

SERVERS = Servers()
matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 50), min_size=n, max_size=n), min_size=n, max_size=n)
)


def spread(n: int, remote: float, tuples: float = 1_000.0) -> np.ndarray:
    """Even loads; the given share of the tuples goes to another server, each of which gets as many."""
    hop = np.full((n, n), remote / (n - 1) if n > 1 else 0.0)
    np.fill_diagonal(hop, 1 - remote)
    return hop * tuples / n


@pytest.mark.parametrize("n", [1, 2, 6])
def test_local_tuples_scale_with_servers_and_not_with_bytes(n):
    rates = [SERVERS.throughput([spread(n, 0.0)], padding) for padding in (0, 20_000)]
    assert rates[0] == rates[1] == pytest.approx(n / (2 * SERVERS.cpu_s))


def test_large_tuples_are_as_slow_as_the_link():
    rate = SERVERS.throughput([spread(4, 0.5)], 10**6)
    assert rate == pytest.approx(SERVERS.bandwidth * 4 / 0.5 / (10**6 + SERVERS.tuple_bytes))


def test_one_busy_server_sets_the_pace():
    even, one = np.diag([10.0, 10.0]), np.diag([20.0, 0.0])
    assert SERVERS.throughput([even]) == pytest.approx(2 * SERVERS.throughput([one]))


@pytest.mark.parametrize("gathers", [True, False])
def test_a_server_pays_for_what_comes_in_and_for_what_goes_out(gathers):
    """Two servers send ten tuples each to the third, or get them from it."""
    hop = np.zeros((3, 3))
    hop[:2, 2] = 10.0
    hop = hop if gathers else hop.T
    busy = Servers(cpu_s=1.0, remote_s=0.5, bandwidth=1e9)
    assert busy.seconds([hop]) == pytest.approx(20 * (1.0 + 0.5))
    slow = Servers(cpu_s=1e-9, remote_s=0.0, bandwidth=5.0, tuple_bytes=3)
    assert slow.seconds([hop], 4) == pytest.approx(20 * (3 + 4) / 5.0)


def test_a_chain_is_as_slow_as_the_sum_of_its_operators():
    hop = spread(3, 0.0)
    assert SERVERS.seconds([hop, hop]) == pytest.approx(1.5 * SERVERS.seconds([hop]))


@given(hop=matrices, padding=st.integers(0, 20_000))
def test_remote_tuples_bytes_and_slow_networks_never_help(hop, padding):
    hop = np.array(hop, dtype=float)
    local = np.diag(hop.sum(axis=1))
    seconds = SERVERS.seconds([hop], padding)
    assert seconds <= SERVERS.seconds([hop], padding + 1_000)
    assert seconds <= Servers(bandwidth=1e8).seconds([hop], padding)
    if np.array_equal(hop.sum(axis=0), hop.sum(axis=1)):
        assert SERVERS.seconds([local], padding) <= seconds


@given(hop=matrices)
def test_traffic_counts_every_tuple(hop):
    hop = np.array(hop)
    sent, received = np.nonzero(hop)
    counts = hop[sent, received]
    n = len(hop)
    assert np.array_equal(traffic_of(sent.astype(np.int32), received.astype(np.int32), n, counts), hop)
    each = [of.repeat(counts).astype(np.int32) for of in (sent, received)]
    assert np.array_equal(traffic_of(*each, n), hop)


@pytest.mark.parametrize("name", ["cpu_s", "remote_s", "bandwidth", "tuple_bytes"])
def test_wrong_costs_are_refused(name):
    for value in (-1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=f"{name} must be"):
            Servers(**{name: value})
