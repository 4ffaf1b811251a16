"""Plans: balanced for each operator, the same whenever they are made, and local."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.chain import METHODS, Pairs, Placement, place
from anabranch.chain.planning.packing import pack
from anabranch.errors import ConfigError, InputError, MissingExtraError
from anabranch.groupings import TableGrouping
from anabranch.hashing import hash_keys

try:
    import pymetis  # noqa: F401
except ImportError:
    PLANNERS = ["greedy"]
else:
    PLANNERS = ["greedy", "metis"]

FIRST, SECOND = hash_keys(np.arange(400)), hash_keys(np.arange(1_000, 1_400))
planners = pytest.mark.parametrize("method", PLANNERS)
graphs = st.dictionaries(
    st.tuples(st.integers(0, 30), st.integers(0, 60)), st.integers(1, 200), min_size=1, max_size=150
)


def pairs_of(counts: dict[tuple[int, int], int], first: np.ndarray = FIRST, second: np.ndarray = SECOND) -> Pairs:
    left, right = np.array(list(counts)).T
    return Pairs.exact(first[left], second[right], np.array(list(counts.values())))


def random_pairs(n: int, seed: int) -> Pairs:
    rng = np.random.default_rng(seed)
    left = rng.zipf(1.5, n) % 300
    right = np.where(rng.random(n) < 0.7, left + rng.integers(0, 3, n), rng.integers(0, 400, n)) % 400
    return Pairs.exact(FIRST[left], SECOND[right])


def weights_of(pairs: Pairs, column: str) -> np.ndarray:
    _, inverse = np.unique(getattr(pairs, column), return_inverse=True)
    return np.bincount(inverse, pairs.counts).astype(np.int64)


def tables(placement: Placement) -> list[dict[int, int]]:
    return [dict(zip(t.keys.tolist(), t.workers.tolist(), strict=True)) for t in placement.tables]


# --- balance


@planners
@settings(max_examples=60)
@given(counts=graphs, n_servers=st.integers(1, 7), alpha=st.sampled_from([1.0, 1.03, 1.5]))
def test_every_operator_is_within_alpha_where_its_heavy_keys_let_it(method, counts, n_servers, alpha):
    pairs = pairs_of(counts)
    placement = place(pairs, n_servers, alpha=alpha, method=method)
    for loads, column in zip(placement.loads, ("first", "second"), strict=True):
        assert loads.sum() == pytest.approx(pairs.total)
        assert loads.max() <= pack(weights_of(pairs, column), n_servers, alpha).limit


@planners
@pytest.mark.parametrize("n_servers", [2, 6, 16])
def test_with_many_keys_both_operators_are_within_alpha(method, n_servers):
    rng = np.random.default_rng(1)
    left = rng.integers(0, 400, 200_000)
    pairs = Pairs.exact(FIRST[left], SECOND[(left + rng.integers(0, 5, len(left))) % 400])
    assert max(place(pairs, n_servers, method=method).makespans) <= 1.03


def test_a_key_too_heavy_for_a_server_is_named():
    pairs = pairs_of({(0, 0): 500, (0, 1): 400, (1, 2): 100, (2, 3): 100, (3, 4): 100})
    placement = place(pairs, 3, method="greedy")
    assert placement.heavy[0].tolist() == [int(FIRST[0])]
    assert placement.heavy[1].tolist() == [int(SECOND[0])]
    alone = place(pairs_of({(i, i): 10 for i in range(9)}), 3, method="greedy")
    assert [len(keys) for keys in alone.heavy] == [0, 0]


# --- determinism


@planners
def test_the_same_pairs_in_any_order_give_the_same_tables(method):
    pairs = random_pairs(20_000, 3)
    order = np.random.default_rng(0).permutation(len(pairs))
    shuffled = Pairs(pairs.first[order], pairs.second[order], pairs.counts[order], pairs.total)
    one, two = (place(each, 5, method=method, seed=4) for each in (pairs, shuffled))
    assert one.pack() == two.pack()


def test_a_pair_given_twice_counts_twice():
    pairs = random_pairs(2_000, 5)
    halves = Pairs(*(np.concatenate([x, x]) for x in (pairs.first, pairs.second, pairs.counts)), 2 * pairs.total)
    twice = Pairs(pairs.first, pairs.second, 2 * pairs.counts, 2 * pairs.total)
    assert place(halves, 4, method="greedy").pack() == place(twice, 4, method="greedy").pack()


# --- locality


def best_locality(counts: dict[tuple[int, int], int], n_servers: int, limits: list[int]) -> int:
    """Most tuples that can be local, by trying everything."""
    left, right = (sorted({pair[side] for pair in counts}) for side in (0, 1))
    most = 0
    for a in product(range(n_servers), repeat=len(left)):
        of_left = dict(zip(left, a, strict=True))
        load = np.zeros(n_servers)
        for (x, _), count in counts.items():
            load[of_left[x]] += count
        if load.max() > limits[0]:
            continue
        for b in product(range(n_servers), repeat=len(right)):
            of_right = dict(zip(right, b, strict=True))
            load = np.zeros(n_servers)
            for (_, y), count in counts.items():
                load[of_right[y]] += count
            if load.max() <= limits[1]:
                most = max(most, sum(n for (x, y), n in counts.items() if of_left[x] == of_right[y]))
    return most


tiny = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(1, 30), min_size=1, max_size=9)


@planners
@settings(max_examples=40)
@given(counts=tiny, n_servers=st.integers(1, 2), alpha=st.sampled_from([1.03, 1.3]))
def test_tiny_plans_beside_the_best_there_is(method, counts, n_servers, alpha):
    pairs = pairs_of(counts)
    limits = [pack(weights_of(pairs, column), n_servers, alpha).limit for column in ("first", "second")]
    best = best_locality(counts, n_servers, limits)
    found = place(pairs, n_servers, alpha=alpha, method=method).locality[0] * pairs.total
    # One that is better breaks the limits; half of the best is far from it, but no chance.
    assert best / 2 - 1e-6 <= found <= best + 1e-6


@planners
@pytest.mark.parametrize("n_servers", [2, 3, 6])
def test_keys_that_only_occur_together_stay_together(method, n_servers):
    counts = {(i, i): 100 + i % 7 for i in range(40 * n_servers)}
    placement = place(pairs_of(counts), n_servers, method=method)
    assert placement.locality == (1.0,)
    assert max(placement.makespans) <= 1.03


@planners
def test_planned_is_above_hash_and_hash_above_worst(method):
    pairs = random_pairs(30_000, 1)
    planned, hashed, worst = (place(pairs, 6, method=each).locality[0] for each in (method, "hash", "worst"))
    assert worst < hashed < 0.3 < planned
    assert hashed == pytest.approx(1 / 6, abs=0.1)


@pytest.mark.parametrize("method", [*PLANNERS, "hash", "worst"])
def test_what_is_promised_is_what_the_tables_do(method):
    pairs = random_pairs(5_000, 2).top(700)
    placement = place(pairs, 4, method=method)
    locality, loads = placement.measured([pairs])
    assert locality == pytest.approx(placement.locality)
    assert np.allclose(loads, placement.loads)


def test_hash_has_no_table_and_worst_is_balanced():
    pairs = random_pairs(20_000, 1)
    assert tables(place(pairs, 4, method="hash")) == [{}, {}]
    greedy, worst = place(pairs, 4, method="greedy"), place(pairs, 4, method="worst")
    assert np.array_equal(np.sort(greedy.loads), np.sort(worst.loads))
    together = {(i, i): 10 for i in range(40)}
    assert place(pairs_of(together), 4, method="worst").locality == (0.0,)
    assert place(pairs_of(together), 1, method="worst").locality == (1.0,)


# --- chains and what was there before


@planners
def test_an_operator_in_the_middle_has_one_table(method):
    third = hash_keys(np.arange(2_000, 2_400))
    counts = {(i, i): 50 for i in range(120)}
    chain = [pairs_of(counts), pairs_of(counts, SECOND, third)]
    placement = place(chain, 3, method=method)
    assert [len(table.keys) for table in placement.tables] == [120, 120, 120]
    assert placement.locality == (1.0, 1.0)
    assert max(placement.makespans) <= 1.03
    assert placement.measured(chain)[0] == (1.0, 1.0)


@planners
def test_servers_keep_their_numbers_where_little_has_changed(method):
    pairs = random_pairs(20_000, 1)
    before = place(pairs, 5, method=method)
    again = place(pairs, 5, method=method, seed=9, previous=before)
    keys = [table.keys for table in before.tables]
    moved = sum(int(changed.sum()) for changed in before.moved(again, keys))
    unnumbered = place(pairs, 5, method=method, seed=9)
    assert moved <= sum(int(changed.sum()) for changed in before.moved(unnumbered, keys))
    if method == "greedy":
        assert moved == 0


@planners
def test_servers_take_the_numbers_that_they_had_whatever_these_were(method):
    pairs = random_pairs(5_000, 1)
    found = place(pairs, 5, method=method)
    tables = tuple(TableGrouping(table.keys, (table.workers + 2) % 5) for table in found.tables)
    before = replace(found, tables=tables)
    again = place(pairs, 5, method=method, previous=before)
    keys = [table.keys for table in tables]
    assert not any(changed.any() for changed in before.moved(again, keys))
    assert all(changed.any() for changed in before.moved(found, keys))


def test_a_placement_of_another_size_is_no_previous_one():
    pairs = random_pairs(500, 1)
    with pytest.raises(
        ConfigError, match="previous must be a placement of 2 operators on 3 servers, got one of 2 on 4"
    ):
        place(pairs, 3, method="greedy", previous=Placement.hashed(2, 4))


# --- edges


def test_nothing_known_is_hash():
    nothing = Pairs.pooled([])
    assert tables(place(nothing, 3, method="greedy")) == [{}, {}]
    assert place(nothing, 3, method="greedy").makespans == (1.0, 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_servers": 0}, "n_servers must be at least 1, got 0"),
        ({"alpha": 0.9}, "alpha must be at least 1, got 0.9"),
        ({"alpha": float("nan")}, "alpha must be at least 1, got nan"),
        ({"method": "magic"}, f"method must be one of {', '.join(METHODS)}, got 'magic'"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ConfigError, match=message):
        place(random_pairs(10, 0), **{"n_servers": 2, "method": "greedy", **parameters})


def test_a_chain_without_pairs_is_refused():
    with pytest.raises(InputError, match="at least two operators"):
        place([], 3)


def test_without_pymetis_the_error_names_the_extra_and_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MissingExtraError, match=r"install anabranch\[locality\], or use method='greedy'"):
        place(random_pairs(100, 0), 3, method="metis")
