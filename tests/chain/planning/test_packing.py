"""How evenly keys can be packed: never worse than heaviest first, and the others always fit."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anabranch.chain.planning.packing import pack
from anabranch.groupings.schemes.offline_greedy import place_heaviest_first

all_weights = st.lists(st.integers(1, 40), min_size=1, max_size=30)
alphas = st.sampled_from([1.0, 1.03, 1.2, 2.0])


def bins_of(weights: np.ndarray, n_servers: int, alpha: float) -> tuple[np.ndarray, int]:
    """Load of each server when the heavy keys are packed and each other one goes to the emptiest."""
    packing = pack(weights, n_servers, alpha)
    loads = np.bincount(packing.bins, weights[packing.heavy], n_servers)
    for light in np.delete(weights, packing.heavy):
        loads[np.argmin(loads)] += light
    return loads, packing.limit


@given(weights=all_weights, n_servers=st.integers(1, 6), alpha=alphas)
def test_the_others_fit_beside_the_heavy_keys(weights, n_servers, alpha):
    loads, limit = bins_of(np.array(weights), n_servers, alpha)
    assert loads.max() <= limit
    assert loads.sum() == sum(weights)


@given(weights=all_weights, n_servers=st.integers(1, 6), alpha=alphas)
def test_the_limit_is_alpha_or_what_heaviest_first_needs(weights, n_servers, alpha):
    ordered = np.sort(np.array(weights))[::-1]
    loads = np.zeros(n_servers, dtype=np.int64)
    place_heaviest_first(ordered, loads, np.empty(len(ordered), dtype=np.int32))
    bound = alpha * sum(weights) / n_servers
    limit = pack(np.array(weights), n_servers, alpha).limit
    assert int(bound) <= limit <= max(bound, loads.max()) + 1e-6


@given(weights=st.lists(st.integers(1, 20), min_size=1, max_size=6), n_servers=st.integers(1, 3))
def test_few_keys_are_packed_nearly_as_evenly_as_can_be(weights, n_servers):
    best = min(
        np.bincount(servers, weights, n_servers).max() for servers in product(range(n_servers), repeat=len(weights))
    )
    loads, _ = bins_of(np.array(weights), n_servers, 1.0)
    assert best <= loads.max() <= 7 / 6 * best + 1e-9


def test_keys_are_exchanged_where_heaviest_first_is_stuck():
    loads, limit = bins_of(np.array([3, 3, 2, 2, 2]), 2, 1.0)
    assert loads.tolist() == [6, 6]
    assert limit == 6
