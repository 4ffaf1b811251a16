"""Hot keys are on several servers: spread behind an operator, in pieces before the first; balance holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.chain import KeyGraph, Manager, Pairs, Placement, Seats, place
from anabranch.chain.planning import splitting
from anabranch.chain.planning.splitting import in_pieces
from anabranch.errors import ConfigError
from anabranch.hashing import hash_keys

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
    heavy = np.unique(chain[0].first)
    parts, pieces = in_pieces(chain, KeyGraph.of(chain), heavy, n_servers)
    assert parts[1] is chain[1]
    before, after = chain[0], parts[0]
    assert after.total == before.total and after.counts.min() >= 1
    whole = Pairs.exact(pieces.named(after.first), after.second, after.counts)
    wanted = Pairs.exact(before.first, before.second, before.counts)
    for name in ("first", "second", "counts"):
        assert np.array_equal(getattr(whole, name), getattr(wanted, name))
    for key in heavy:
        own = pieces.keys[pieces.wholes == key]
        weights = [int(after.counts[after.first == one].sum()) for one in own]
        # What does not divide is dealt out row by row of the pairs.
        assert max(weights) - min(weights) <= int((before.first == key).sum())


@given(st.composite(chains)(), st.integers(2, 6), st.sampled_from(["greedy", "metis"]), st.sampled_from([0.01, 0.5]))
def test_an_operator_is_balanced_whatever_its_keys_weigh(chain, n_servers, method, share):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "HOT", share)
        whole = place(chain, n_servers, alpha=1.2, method=method)
        parts = place(chain, n_servers, alpha=1.2, method=method, split=True)
        shuffled = [Pairs(one.first[::-1], one.second[::-1], one.counts[::-1], one.total) for one in chain]
        again = place(shuffled, n_servers, alpha=1.2, method=method, split=True)
    assert again.tables == parts.tables
    assert parts.tables[0].split_keys.tolist() == whole.heavy[0].tolist()
    for table, weights in zip(parts.tables[1:], (_weights(chain[0]), _weights(chain[1])), strict=True):
        hot = {key for key, n in weights.items() if n * n_servers > share * sum(weights.values())}
        assert set(table.split_keys.tolist()) == hot and len(hot) <= n_servers / share
    # No piece has more than the mean load, and no key that is not split more than alpha times as much.
    assert parts.makespans[0] <= 1 + 1.2
    # What a plan promises is what its tables do with the same pairs.
    locality, loads = parts.measured(chain)
    assert np.allclose(loads, parts.loads) and locality == parts.locality
    assert np.allclose(loads.sum(axis=1), whole.loads.sum(axis=1))


def _weights(pairs: Pairs) -> dict[int, int]:
    keys, number = np.unique(pairs.second, return_inverse=True)
    return dict(zip(keys.tolist(), np.bincount(number, pairs.counts).astype(int).tolist(), strict=True))


@given(st.composite(chains)(), st.integers(2, 6))
def test_tuples_of_spread_keys_stay_where_they_are(chain, n_servers):
    """Where all keys behind the first operator are spread, nothing crosses the network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "HOT", 0.0)
        parts = place(chain, n_servers, method="greedy", split=True)
    assert parts.locality == pytest.approx((1.0, 1.0))
    assert np.allclose(parts.loads, parts.loads[0])
    senders = np.arange(n_servers, dtype=np.int32)
    for router, of in zip(parts.routers()[1:], chain, strict=True):
        for key in np.unique(of.second):
            assert router.route_from(np.full(n_servers, key), senders).tolist() == senders.tolist()


def hot(share: float, n: int = 40_000) -> Pairs:
    """Every second tuple has one tag; the others are correlated."""
    rng = np.random.default_rng(1)
    region = rng.integers(0, 60, n)
    tag = np.where(rng.random(n) < share, 999, region * 3 + rng.integers(0, 3, n))
    return Pairs.exact(KEYS[region], KEYS[tag])


def test_a_hot_key_keeps_no_server_busy_alone():
    pairs, key = hot(0.5), KEYS[999]
    whole, parts = (place(pairs, 6, method="greedy", split=split) for split in (False, True))
    assert whole.makespans[1] > 2.9 and parts.makespans[1] <= 1.03
    assert whole.locality[0] < 0.6 and parts.locality[0] > 0.95
    assert key in parts.tables[1].split_keys and parts.heavy[1].tolist() == [key]
    assert not len(parts.tables[0].split_keys)
    # By the tuples themselves, too.
    first, second = (np.repeat(of, pairs.counts) for of in (pairs.first, pairs.second))
    sent = parts.routers()[0].route(first)
    received = parts.routers()[1].route_from(second, sent)
    assert np.bincount(received, minlength=6).max() * 6 / pairs.total < 1.04
    assert (sent == received).mean() == pytest.approx(parts.locality[0])
    only_first = place(pairs, 6, method="greedy", split=[0])
    assert only_first.tables[1] == whole.tables[1]
    packed = Placement.unpack(parts.pack())
    assert packed.tables[1] == parts.tables[1]


@pytest.mark.parametrize(("seed", "z", "n_keys"), [(3, 1.5, 300), (4, 1.5, 300), (4, 2.0, 400), (10, 1.3, 600)])
def test_what_spread_keys_bring_is_evened_out_by_the_other_keys(seed, z, n_keys):
    """The keys of the operator before move last, and what they leave behind moves with them."""
    rng = np.random.default_rng(seed)
    region = rng.zipf(z, 20_000) % n_keys
    own, any_tag = (region * 7 + rng.integers(0, 3, 20_000)) % n_keys, rng.zipf(1.2 + 0.1 * (z == 1.5), 20_000) % n_keys
    tag = np.where(rng.random(20_000) < 0.5, own, any_tag)
    parts = place(Pairs.exact(hash_keys(region), hash_keys(2000 + tag)), 6, method="greedy", split=True)
    assert len(parts.tables[1].split_keys)
    assert parts.makespans[1] <= 1.03


@pytest.mark.parametrize(
    "hosts",
    [
        [["a", "b", "c"] * 2] * 2,
        [["a", "b", "c"] * 2, ["c", "a", "a", "b", "c", "b"]],
        [["a", "b", "c"] * 2, ["a", "b"] * 3],
    ],
)
def test_a_spread_key_is_with_every_worker_that_sends_and_on_its_server(hosts):
    pairs, key = hot(0.5), KEYS[999]
    seats = Seats.of(hosts)
    parts = place(pairs, 3, method="greedy", split=True)
    workers = seats.by_worker(parts, Placement.hashed(2, 6))
    assert workers.tables[1].split_keys.tolist() == parts.tables[1].split_keys.tolist()
    for sender, server in enumerate(seats.servers[0]):
        to = workers.routers()[1].route_from(np.array([key]), sender)[0]
        there = np.isin(server, seats.servers[1])
        assert seats.servers[1][to] == server if there else to == sender
        assert workers.routers()[1].may_get(np.array([key]), to)[0]
    back = seats.by_server(workers, [pairs])
    if set(seats.servers[1]) == {0, 1, 2}:
        assert back.measured([pairs])[0] == pytest.approx(parts.measured([pairs])[0])
        assert np.allclose(back.measured([pairs])[1], parts.measured([pairs])[1])


def test_a_heavy_key_of_the_first_operator_stays_split_on_workers_and_back():
    pairs = hot(0.5)
    turned = Pairs(pairs.second, pairs.first, pairs.counts, pairs.total)
    seats = Seats.of([["a", "b", "c"] * 2] * 2)
    parts = place(turned, 3, method="greedy", split=[0])
    assert parts.tables[0].split_keys.tolist() == [KEYS[999]]
    back = seats.by_server(seats.by_worker(parts, Placement.hashed(2, 6)), [turned])
    assert back.measured([turned])[0] == pytest.approx(parts.measured([turned])[0])
    assert np.allclose(back.measured([turned])[1], parts.measured([turned])[1])


@pytest.mark.parametrize("split", ["yes", [2], [-1], [0.5]])
def test_operators_that_are_not_there_cannot_be_split(split):
    with pytest.raises(ConfigError, match="split must be True, False or numbers of operators from 0 to 1, got"):
        place(hot(0.5), 3, method="greedy", split=split)


def test_the_worst_tables_split_nothing():
    assert place(hot(0.5), 3, method="worst", split=True).tables == place(hot(0.5), 3, method="worst").tables


def test_a_manager_who_may_split_does_and_then_rests():
    manager = Manager(3, method="greedy", split=True)
    begun = manager.decide([hot(0.5)])
    assert begun.migrates and begun.placement.makespans[1] <= 1.03
    assert not manager.decide([hot(0.5)], begun).migrates
