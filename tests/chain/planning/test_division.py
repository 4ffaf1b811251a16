"""Divisions: loads are those of the keys, and heavy keys change places where no single move helps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.chain import KeyGraph, Pairs
from anabranch.chain.planning.division import Division, matched

graphs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 25), st.integers(1, 99)), min_size=1, max_size=80)


def graph_of(listed: list[tuple[int, int, int]]) -> KeyGraph:
    first, second, counts = np.array(listed).T
    return KeyGraph.of([Pairs.exact(first.astype(np.uint64), second.astype(np.uint64), counts)])


def check(division: Division) -> None:
    graph = division.graph
    assert division.servers.min() >= 0
    assert division.servers.max() < division.n_servers
    for operator in range(graph.n_operators):
        at = graph.vertices(operator)
        loads = np.bincount(division.servers[at], graph.weights[at], division.n_servers)
        assert np.array_equal(loads, division.loads[operator])
        assert loads.max() <= division.packings[operator].limit


@settings(max_examples=60)
@given(listed=graphs, n_servers=st.integers(1, 5), seed=st.integers(0, 9), alpha=st.sampled_from([1.0, 1.03, 1.4]))
def test_whatever_it_begins_with_every_operator_ends_within_its_limit(listed, n_servers, seed, alpha):
    graph = graph_of(listed)
    rng = np.random.default_rng(seed)
    begun = rng.integers(-1, n_servers, int(graph.starts[-1])).astype(np.int32)
    division = Division(graph, n_servers, alpha, begun)
    division.finish()
    check(division)


def test_two_heavy_keys_change_places():
    """Four keys of equal weight on two servers, paired wrongly: no server has room for a third."""
    graph = graph_of([(key, tag + 10 * (key // 2), 10) for key in range(4) for tag in range(8)])
    division = Division(graph, 2, 1.03, np.array([0, 1, 0, 1] + [0, 1] * 8, dtype=np.int32))
    division.finish()
    check(division)
    assert division.local() == 4 * 8 * 10
    assert division.servers[:4].tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])


def test_local_counts_the_tuples_of_pairs_on_one_server():
    graph = graph_of([(0, 0, 5), (0, 1, 7), (1, 1, 11)])
    division = Division(graph, 2, 2.0, np.array([0, 1, 0, 1], dtype=np.int32))
    assert division.local() == 5 + 11


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_matched_gives_each_row_a_column_of_its_own(n):
    common = np.random.default_rng(n).integers(0, 50, (n, n))
    columns = matched(common)
    assert sorted(columns.tolist()) == list(range(n))
    # No two rows gain by an exchange.
    own = common[np.arange(n), columns]
    assert (own[:, None] + own >= common[:, columns] + common[:, columns].T).all()


def test_matched_exchanges_what_greed_got_wrong():
    assert matched(np.array([[5, 4], [4, 0]])).tolist() == [1, 0]
