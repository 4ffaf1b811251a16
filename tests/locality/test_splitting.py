"""A key that is too heavy for a server is planned in pieces, and balance holds whatever its weight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.hashing import hash_keys
from anabranch.locality import Manager, Pairs, Placement, Seats, plan
from anabranch.locality.splitting import Pieces, in_pieces

KEYS = hash_keys(np.arange(1000))


def chains(draw: st.DrawFn) -> list[Pairs]:
    """Two hops with keys of many tuples, of which some operators have keys heavier than a server."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    chain = []
    n = draw(st.integers(3, 60))
    columns = [rng.zipf(draw(st.floats(1.1, 2.5)), n) % 12 for _ in range(3)]
    counts = rng.integers(1, 200, n)
    for first, second in ((0, 1), (1, 2)):
        chain.append(Pairs.exact(KEYS[columns[first]], KEYS[columns[second]], counts))
    return chain


@given(st.composite(chains)(), st.integers(2, 6))
def test_pieces_keep_all_tuples_and_are_as_heavy_as_each_other(chain, n_servers):
    heavy = [np.unique(chain[0].first), np.unique(chain[0].second)[:1], np.zeros(0, np.uint64)]
    parts, pieces = in_pieces(chain, heavy, n_servers)
    for before, after, left, right in zip(chain, parts, pieces[:-1], pieces[1:], strict=True):
        assert after.total == before.total and after.counts.min() >= 1
        whole = Pairs.exact(left.named(after.first), right.named(after.second), after.counts)
        for name in ("first", "second", "counts"):
            assert np.array_equal(
                getattr(whole, name), getattr(Pairs.exact(before.first, before.second, before.counts), name)
            )
    for key in heavy[0]:
        own = pieces[0].keys[pieces[0].wholes == key]
        weights = [int(parts[0].counts[parts[0].first == one].sum()) for one in own]
        # What does not divide is dealt out row by row of the pairs, and there are as many as the second key is split.
        rows = int((chain[0].first == key).sum()) * max(len(pieces[1].keys), 1)
        assert max(weights) - min(weights) <= rows


@given(st.composite(chains)(), st.integers(2, 6))
def test_an_operator_is_balanced_whatever_its_keys_weigh(chain, n_servers):
    whole = plan(chain, n_servers, alpha=1.2, method="greedy")
    parts = plan(chain, n_servers, alpha=1.2, method="greedy", split=True)
    shuffled = [Pairs(one.first[::-1], one.second[::-1], one.counts[::-1], one.total) for one in chain]
    again = plan(shuffled, n_servers, alpha=1.2, method="greedy", split=True)
    assert [table.split_keys.tolist() for table in parts.tables] == [keys.tolist() for keys in whole.heavy]
    assert again.tables == parts.tables
    # No key or piece has more than alpha times the mean load, so no server needs more than one such above the mean.
    assert max(parts.makespans) <= 1 + 1.2
    # What a plan promises is what its tables do with the same pairs, but for what does not divide.
    locality, loads = parts.measured(chain)
    assert np.allclose(loads.sum(axis=1), parts.loads.sum(axis=1))
    assert np.abs(loads - parts.loads).max() <= len(chain[0]) * n_servers**2
    assert np.abs(np.subtract(locality, parts.locality)).max() <= len(chain[0]) * n_servers**2 / chain[0].total


def hot(share: float, n: int = 40_000) -> Pairs:
    """Every second tuple has one tag; the others are correlated."""
    rng = np.random.default_rng(1)
    region = rng.integers(0, 60, n)
    tag = np.where(rng.random(n) < share, 999, region * 3 + rng.integers(0, 3, n))
    return Pairs.exact(KEYS[region], KEYS[tag])


def test_a_hot_key_keeps_no_server_busy_alone():
    pairs, key = hot(0.5), KEYS[999]
    whole, parts = (plan(pairs, 6, method="greedy", split=split) for split in (False, True))
    assert whole.makespans[1] > 2.9 and parts.makespans[1] <= 1.03
    assert parts.tables[1].split_keys.tolist() == [key] == parts.heavy[1].tolist()
    assert not len(parts.tables[0].split_keys)
    # By the tuples themselves, too.
    routed = parts.routers()[1].route(np.repeat(pairs.second, pairs.counts))
    assert np.bincount(routed, minlength=6).max() * 6 / pairs.total < 1.04
    only_first = plan(pairs, 6, method="greedy", split=[0])
    assert only_first.tables[1] == whole.tables[1]
    packed = Placement.unpack(parts.pack())
    assert packed.tables[1] == parts.tables[1]


def test_a_split_key_stays_split_on_workers_and_back():
    pairs = hot(0.5)
    seats = Seats.of([["a", "b", "c"] * 2] * 2)
    parts = plan(pairs, 3, method="greedy", split=True)
    workers = seats.by_worker(parts, Placement.hashed(2, 6))
    assert workers.tables[1].split_keys.tolist() == [KEYS[999]]
    back = seats.by_server(workers, [pairs])
    assert back.measured([pairs])[0] == pytest.approx(parts.measured([pairs])[0])
    assert np.allclose(back.measured([pairs])[1], parts.measured([pairs])[1])


def test_a_manager_who_may_split_does_and_then_rests():
    manager = Manager(3, method="greedy", split=True)
    begun = manager.decide([hot(0.5)])
    assert begun.migrates and begun.placement.makespans[1] <= 1.03
    assert not manager.decide([hot(0.5)], begun).migrates


def test_pieces_of_no_key_change_nothing():
    keys, servers = KEYS[:5], np.arange(5, dtype=np.int32)
    table = Pieces().table(keys, servers)
    assert np.array_equal(table.keys, keys) and np.array_equal(table.workers, servers)
