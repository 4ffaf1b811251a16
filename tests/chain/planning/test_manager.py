"""The manager moves state where that pays, and leaves it where it does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.chain import Manager, Pairs, Placement, Servers
from anabranch.errors import ConfigError
from anabranch.hashing import hash_keys

FIRST, SECOND = hash_keys(np.arange(600)), hash_keys(np.arange(1_000, 1_600))
MANAGER = Manager(n_servers=4, method="greedy", padding=4_000)


def shifted(by: int, times: int = 1_000) -> Pairs:
    """Key i always occurs with key i + by."""
    return Pairs.exact(FIRST, np.roll(SECOND, by), np.full(600, times))


def drawn(seed: int) -> Pairs:
    rng = np.random.default_rng(seed)
    return Pairs.exact(FIRST[rng.integers(0, 600, 30_000)], SECOND[rng.integers(0, 600, 30_000)])


def test_it_begins_with_hash_and_moves_to_what_is_local():
    decision = MANAGER.decide([shifted(0)])
    assert decision.migrates
    assert decision.locality_now < 0.4
    assert decision.locality_candidate == 1.0 == decision.placement.locality[0]
    assert decision.gain_s > decision.cost_s > 0


def test_nothing_moves_while_nothing_changes():
    first = MANAGER.decide([shifted(0)])
    second = MANAGER.decide([shifted(0)], first)
    assert not second.migrates
    assert second.placement is first.placement
    assert second.locality_now == 1.0
    assert [len(keys) for keys in second.moved] == [0, 0]


def test_it_follows_when_the_pairs_change():
    first = MANAGER.decide([shifted(0)])
    second = MANAGER.decide([shifted(150)], first)
    assert second.migrates
    assert second.placement.locality[0] == 1.0
    before, after = first.placement.routers(), second.placement.routers()
    for operator, keys in enumerate((FIRST, SECOND)):
        changed = before[operator].route(keys) != after[operator].route(keys)
        assert np.array_equal(np.sort(keys[changed]), second.moved[operator])


@pytest.mark.parametrize(
    "reluctant",
    [
        Manager(n_servers=4, method="greedy", state_bytes=1e12),
        Manager(n_servers=4, method="greedy", hysteresis=0.99),
        Manager(n_servers=4, method="greedy", horizon=0.0),
        Manager(n_servers=1, method="greedy"),
        Manager(n_servers=4, method="hash"),
    ],
    ids=["dear state", "hysteresis", "no future", "one server", "hash"],
)
def test_it_stays_where_moving_does_not_pay(reluctant):
    decision = reluctant.decide([shifted(0)])
    assert not decision.migrates
    assert [len(table.keys) for table in decision.placement.tables] == [0, 0]


def test_a_longer_horizon_pays_for_dearer_state():
    size = 600 * 1000 * 10.0
    short, long = (
        Manager(4, method="greedy", padding=4_000, state_bytes=size, horizon=horizon) for horizon in (0.1, 1_000.0)
    )
    assert not short.decide([shifted(0)]).migrates
    assert long.decide([shifted(0)]).migrates


def test_promises_that_were_not_kept_count_for_less():
    """Pairs without any correlation: a plan is local on those it knows and on no others."""
    decision, trusts = None, []
    for seed in range(4):
        decision = MANAGER.decide([drawn(seed)], decision)
        trusts.append(decision.trust)
    assert trusts[0] == 1.0
    assert trusts[-1] < 0.6
    kept = MANAGER.decide([shifted(0)], MANAGER.decide([shifted(0)]))
    assert kept.trust == 1.0


def test_a_longer_memory_is_weighed_by_the_last_period():
    """Twice the same period to plan from gains as much as one."""
    period = shifted(0)
    alone = MANAGER.decide([period])
    longer = MANAGER.decide([Pairs.pooled([period, period])], recent=[period])
    assert longer.gain_s == pytest.approx(alone.gain_s)
    begun = MANAGER.decide([period])
    disappointed = MANAGER.decide([Pairs.pooled([period, shifted(150)])], begun, recent=[shifted(150)])
    assert disappointed.trust < MANAGER.decide([Pairs.pooled([period, shifted(150)])], begun).trust


def test_load_alone_is_reason_enough():
    """All tuples on one server, all of them local: moving some of them is faster."""
    pairs = shifted(0)
    routers = Placement.hashed(2, 2).routers()
    here = (routers[0].route(pairs.first) == 0) & (routers[1].route(pairs.second) == 0)
    crowded = Pairs(pairs.first[here], pairs.second[here], pairs.counts[here], int(pairs.counts[here].sum()))
    decision = Manager(n_servers=2, method="greedy").decide([crowded])
    assert decision.locality_now == 1.0
    assert decision.migrates
    assert max(decision.placement.makespans) <= 1.05


def test_moving_takes_as_long_as_the_server_that_sends_or_receives_most():
    """All keys are on one of four servers, and are dealt out to all."""
    routers = Placement.hashed(2, 4).routers()
    here = (routers[0].route(FIRST) == 0) & (routers[1].route(SECOND) == 0)
    manager = Manager(4, method="greedy", servers=Servers(remote_s=0.25, bandwidth=100.0), state_bytes=50.0)
    decision = manager.decide([Pairs.exact(FIRST[here], SECOND[here], np.full(here.sum(), 10**9))])
    moved = sum(map(len, decision.moved))
    assert moved > here.sum()
    assert decision.cost_s == pytest.approx(moved * (0.25 + 50 / 100))
    # The way back takes as long: what several have sent, one receives.
    back = manager._cost_s(decision.placement, Placement.hashed(2, 4), decision.moved)
    assert back == pytest.approx(decision.cost_s)


@settings(max_examples=5)
@given(seed=st.integers(0, 50), by=st.integers(0, 5))
def test_the_same_history_gives_the_same_decision(seed, by):
    one, two = (MANAGER.decide([shifted(by)], MANAGER.decide([drawn(seed)])) for _ in range(2))
    assert one.placement.pack() == two.placement.pack()
    assert (one.migrates, one.gain_s, one.cost_s, one.trust) == (two.migrates, two.gain_s, two.cost_s, two.trust)


def test_a_slower_network_makes_locality_worth_more():
    gains = [
        Manager(4, method="greedy", padding=4_000, servers=Servers(bandwidth=rate)).decide([shifted(0)]).gain_s
        for rate in (1.25e9, 0.125e9)
    ]
    assert gains[1] > 5 * gains[0]


@pytest.mark.parametrize("name", ["padding", "state_bytes", "horizon", "hysteresis"])
def test_wrong_parameters_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name} must be 0 or more, got -1"):
        Manager(3, **{name: -1})
