"""The coin synopsis: each guarantee of its docstring, with as many trials as a safe margin needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.hashing import hash_keys
from anabranch.sketches import CoinSynopsis, coin_synopsis
from anabranch.sketches.coin_synopsis import HOT

UNIVERSE = hash_keys(np.arange(100))


def margin(probability: float, n: int) -> float:
    """Five standard deviations of a share of n trials."""
    return 5 * math.sqrt(probability * (1 - probability) / n)


def check_structure(synopsis: CoinSynopsis) -> None:
    """Every key is found where the table says, none twice, none with an empty vector."""
    state, n = synopsis.state, len(synopsis)
    assert len(set(state.keys[:n].tolist())) == n
    assert (state.table[state.where[:n]] == np.arange(1, n + 1)).all()
    assert np.count_nonzero(state.table) == n
    assert (state.bits[:n] > 0).all()
    assert (state.bits[:n] < np.uint64(1) << np.uint64(synopsis.l)).all()
    assert (synopsis.estimate(state.keys[:n]) > 0).all()
    assert (synopsis.is_hot(state.keys[:n]) == state.hot[:n]).all()
    assert sorted(synopsis.hot_keys().tolist()) == sorted(state.keys[:n][state.hot[:n]].tolist())


# --- Theorem 1


def not_hot_after(n: int, r: int, l: int) -> float:  # noqa: E741
    """Exact chance that fewer than two different bits are set after n tuples of a key, without decline."""
    passes = 2.0**-r
    bits = [passes * 2.0 ** -(bit + 1) for bit in range(l - 1)]
    bits.append(passes - sum(bits))
    return sum((1 - passes + bit) ** n for bit in bits) - (l - 1) * (1 - passes) ** n


@pytest.mark.parametrize(("times", "bound"), [(128, 0.9928), (256, 0.9735), (512, 0.9098), (1024, 0.7353)])
def test_table_1(times, bound):
    """Without decline keys do not meet, so that each of 20 000 in one synopsis is alone."""
    n_keys = 20_000
    synopsis = CoinSynopsis(r=10, p=0, seed=times)
    keys = hash_keys(np.arange(n_keys))
    for _ in range(times - 1):
        synopsis.update(keys)
    late = 1 - len(synopsis.hot_keys()) / n_keys
    exact = not_hot_after(times - 1, r=10, l=16)
    assert exact >= bound
    assert abs(late - exact) <= margin(exact, n_keys)


@settings(max_examples=30)
@given(zeta=st.integers(1, 6), seed=st.integers(0, 100))
def test_a_key_is_hot_with_zeta_different_bits(zeta, seed):
    synopsis = CoinSynopsis(r=0, l=6, p=0, zeta=zeta, seed=seed)
    synopsis.update(np.random.default_rng(seed).choice(UNIVERSE, 300))
    keys, bits = synopsis.entries()
    assert (np.bitwise_count(bits) >= zeta).tolist() == synopsis.is_hot(keys).tolist()
    check_structure(synopsis)


def test_one_tuple_in_2_to_the_r_reaches_the_synopsis():
    for r in (0, 1, 4, 8):
        synopsis = CoinSynopsis(r=r, seed=r)
        synopsis.update(np.full(200_000, UNIVERSE[0]))
        assert abs(synopsis.n_updates / 200_000 - 2.0**-r) <= margin(2.0**-r, 200_000)


def test_bits_are_as_rare_as_the_heads_they_stand_for():
    n = 50_000
    synopsis = CoinSynopsis(r=0, l=4, p=0)
    synopsis.update(hash_keys(np.arange(n)))
    assert len(synopsis) == n
    # The highest bit stands for all that have as many heads or more.
    for bit, share in enumerate((0.5, 0.25, 0.125, 0.125)):
        found = np.mean(synopsis.entries()[1] == 1 << bit)
        assert abs(found - share) <= margin(share, n)


def test_other_seeds_throw_other_coins():
    one, same, other = (CoinSynopsis(r=2, seed=seed) for seed in (1, 1, 2))
    for synopsis in (one, same, other):
        synopsis.update(UNIVERSE.repeat(20))
    assert [array.tolist() for array in one.entries()] == [array.tolist() for array in same.entries()]
    assert [array.tolist() for array in one.entries()] != [array.tolist() for array in other.entries()]


# --- decline: Theorems 2 and 3


def test_theorem_2():
    """Five keys of rate 4p, twenty of 0.1p, and all other tuples of keys of their own."""
    p, n_updates, every = 0.01, 200_000, 25
    rng = np.random.default_rng(7)
    rates = np.cumsum([4 * p] * 5 + [0.1 * p] * 20)
    ranks = np.searchsorted(rates, rng.random(n_updates))
    stream = np.where(ranks < 25, UNIVERSE[ranks], hash_keys(np.arange(1000, 1000 + n_updates)))
    synopsis = CoinSynopsis(r=0, p=p)
    present = np.zeros(25)
    for start in range(0, n_updates, every):
        synopsis.update(stream[start : start + every])
        present += synopsis.estimate(UNIVERSE[:25]) > 0
    present /= n_updates / every
    # A vector changes about once in 1 / p updates: so many independent trials there are.
    trials = n_updates * p
    assert present[:5].mean() >= 0.98 - margin(0.98, 5 * trials)
    assert present[5:].mean() <= 0.25 + margin(0.25, 20 * trials)
    check_structure(synopsis)


@pytest.mark.parametrize("p", [0.1, 0.01])
@pytest.mark.parametrize("z", [None, 1.2])
def test_the_synopsis_holds_no_more_than_2_over_p_keys_on_average(p, z):
    """The most there can be is where every tuple has a key of its own."""
    rng = np.random.default_rng(1)
    n = 100_000
    stream = hash_keys(np.arange(n) if z is None else rng.zipf(z, n))
    synopsis = CoinSynopsis(r=0, p=p)
    sizes = []
    for start in range(0, n, 20):
        synopsis.update(stream[start : start + 20])
        sizes.append(len(synopsis))
    # The number of keys is Poisson, and new after about 2 / p updates.
    assert np.mean(sizes) <= 2 / p + 5 * math.sqrt(2 / p / (n * p / 4))
    assert max(sizes) < len(synopsis.state.keys)


def test_every_vector_declines_with_probability_p():
    """One update by a stranger at a time: each of the others is shifted with probability p, wherever it stands."""
    p, n_keys, n_trials = 0.2, 6, 3_000
    shifted = np.zeros(n_keys)
    synopsis = CoinSynopsis(r=0, p=p, l=40)
    for _ in range(n_trials):
        synopsis.load(UNIVERSE[:n_keys], np.full(n_keys, 1 << 30, dtype=np.uint64))
        places = synopsis.state.keys[:n_keys].copy()
        synopsis.update(UNIVERSE[50:51])
        shifted += synopsis.estimate(places) < 1 << 31
    assert np.abs(shifted / n_trials - p).max() <= margin(p, n_trials)


def test_a_key_that_comes_no_more_is_evicted():
    synopsis = CoinSynopsis(r=0, p=0.3)
    synopsis.update(np.full(100, UNIVERSE[0]))
    assert synopsis.is_hot(UNIVERSE[:1])[0]
    synopsis.update(np.full(200, UNIVERSE[1]))
    assert synopsis.estimate(UNIVERSE[:2]).tolist()[0] == 0
    assert synopsis.hot_keys().tolist() == UNIVERSE[1:2].tolist()


@settings(max_examples=40)
@given(p=st.sampled_from([0.05, 0.5, 0.9]), zeta=st.integers(1, 3), seed=st.integers(0, 10_000))
def test_keys_are_deleted_only_if_they_were_appended(p, zeta, seed):
    """Signals of single updates: a key is appended when it turns hot and deleted when it leaves, by turns."""
    rng = np.random.default_rng(seed)
    synopsis = CoinSynopsis(r=0, l=5, p=p, zeta=zeta, seed=seed)
    changes = np.empty(len(synopsis.state.keys) + 1, dtype=np.uint64)
    appended: set[int] = set()
    for key in rng.choice(UNIVERSE, 300):
        heads = int(rng.geometric(0.5)) - 1
        turned_hot, n_deleted = coin_synopsis.record(*synopsis.state, synopsis.coin, key, heads, changes)
        if turned_hot:
            assert int(key) not in appended
            appended.add(int(key))
        for deleted in changes[:n_deleted].tolist():
            assert deleted in appended
            appended.remove(deleted)
        assert appended == set(synopsis.hot_keys().tolist())


@settings(max_examples=25)
@given(p=st.sampled_from([0.02, 0.3, 0.9]), n_keys=st.sampled_from([3, 40, 3_000]), seed=st.integers(0, 1000))
def test_slots_and_table_agree_after_many_evictions(p, n_keys, seed):
    rng = np.random.default_rng(seed)
    synopsis = CoinSynopsis(r=0, p=p, l=6, seed=seed)
    for _ in range(30):
        synopsis.update(hash_keys(rng.integers(0, n_keys, 60)))
        check_structure(synopsis)


def test_a_full_synopsis_takes_no_new_key():
    synopsis = CoinSynopsis(r=0, p=0.9)
    capacity = len(synopsis.state.keys)
    bits = np.full(capacity, 1 << 15, dtype=np.uint64)
    synopsis.load(UNIVERSE[:capacity], bits)
    changes = np.empty(capacity + 1, dtype=np.uint64)
    coin = synopsis.coin._replace(p=0.0)
    assert coin_synopsis.record(*synopsis.state, coin, UNIVERSE[50], 3, changes) == (False, 0)
    assert coin_synopsis.record(*synopsis.state, coin, UNIVERSE[3], 3, changes) == (True, 0)
    check_structure(synopsis)
    assert synopsis.estimate(UNIVERSE[50:51])[0] == 0
    synopsis.state.hot[:] = True
    assert synopsis.is_hot(UNIVERSE[[50, 3]]).tolist() == [False, True]


# --- estimates, merging, loading


def test_an_estimate_is_the_order_of_magnitude():
    synopsis = CoinSynopsis(r=6, p=0.01)
    synopsis.load(UNIVERSE[:3], np.array([1, 0b100, 0b101], dtype=np.uint64))
    assert synopsis.estimate(UNIVERSE[:4]).tolist() == [2**7, 2**9, 2**9, 0]
    assert synopsis.is_hot(UNIVERSE[:4]).tolist() == [False, False, True, False]


def test_estimates_grow_with_the_count():
    synopsis = CoinSynopsis(r=4, p=0)
    counts = 4 ** np.arange(3, 9)
    keys = UNIVERSE[: len(counts)]
    synopsis.update(keys.repeat(counts))
    ratio = synopsis.estimate(keys)[2:] / counts[2:]
    assert (ratio > 1 / 16).all()
    assert (ratio < 64).all()


def test_merging_gives_a_key_the_bits_of_both():
    one, other = CoinSynopsis(zeta=2), CoinSynopsis(zeta=2)
    one.load(UNIVERSE[:2], np.array([0b1, 0b10], dtype=np.uint64))
    other.load(UNIVERSE[1:3], np.array([0b100, 0b1000], dtype=np.uint64))
    one.merge(other)
    found = dict(zip(*(array.tolist() for array in one.entries()), strict=True))
    assert found == dict(zip(UNIVERSE[:3].tolist(), [0b1, 0b110 | int(HOT), 0b1000], strict=True))
    assert one.hot_keys().tolist() == UNIVERSE[1:2].tolist()
    check_structure(one)


def test_a_hot_key_that_declined_stays_hot_when_it_is_passed_on():
    one, other = CoinSynopsis(zeta=2), CoinSynopsis(zeta=2)
    one.load(UNIVERSE[:2], np.array([0b11, 0b1], dtype=np.uint64))
    one.state.bits[:2] = 0b1
    other.load(*one.entries())
    assert other.hot_keys().tolist() == one.hot_keys().tolist() == UNIVERSE[:1].tolist()
    assert other.state.bits[:2].tolist() == [0b1, 0b1]


def test_loading_too_many_keeps_the_highest_vectors():
    synopsis = CoinSynopsis(r=0, p=0.9)
    capacity = len(synopsis.state.keys)
    synopsis.load(UNIVERSE, np.arange(1, len(UNIVERSE) + 1, dtype=np.uint64))
    assert set(synopsis.entries()[0].tolist()) == set(UNIVERSE[-capacity:].tolist())
    check_structure(synopsis)
