"""Flows: slots, linked lists and the hash table stay consistent whatever is learned and forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.groupings.spillway import flows
from anabranch.groupings.spillway.flows import CHUNKS, FREE, N_FREE, SPLIT, Flows

ANY = 2**31


def listed(kept: Flows, recent: int = ANY) -> dict[int, dict[int, float]]:
    """Shares by key and worker."""
    out: dict[int, dict[int, float]] = {}
    for key, worker, part in zip(*(array.tolist() for array in flows.listed(kept, recent)), strict=True):
        assert worker not in out.setdefault(key, {})
        out[key][worker] = part
    return out


def learn(kept: Flows, given_flows: dict[int, dict[int, float]], homes: dict[int, int], most: int = ANY) -> None:
    rows = [(key, homes[key], worker, part) for key, of in given_flows.items() for worker, part in of.items()]
    keys, home, workers, parts = zip(*rows, strict=True) if rows else ((), (), (), ())
    flows.learn(
        kept,
        np.array(keys, np.uint64),
        np.array(home, np.int32),
        np.array(workers, np.int32),
        np.array(parts, np.float64),
        most,
    )


def check(kept: Flows) -> None:
    """Every flow is in one list, of a key or of the free ones; the table finds every key; sizes are right."""
    seen: list[int] = []
    for slot in range(kept.counts[SPLIT]):
        assert flows.slot_of(kept.keys[slot], kept.keys, kept.table) == slot
        own = chain(kept, int(kept.first[slot]))
        assert len(own) == kept.sizes[slot] >= 1
        seen += own
    free = chain(kept, int(kept.counts[FREE]))
    assert len(free) == kept.counts[N_FREE]
    assert sorted(seen + free) == list(range(len(kept.workers)))
    assert np.count_nonzero(kept.table) == kept.counts[SPLIT]


def chain(kept: Flows, flow: int) -> list[int]:
    out = []
    while flow >= 0:
        out.append(flow)
        assert len(out) <= len(kept.workers)
        flow = int(kept.following[flow])
    return out


made = st.dictionaries(
    st.integers(0, 2**64 - 1),
    st.dictionaries(st.integers(0, 9), st.floats(0.01, 1), min_size=1, max_size=5),
    max_size=20,
)


def homes_of(*given_flows: dict[int, dict[int, float]]) -> dict[int, int]:
    return {key: key % 10 for one in given_flows for key in one}


@given(first=made)
def test_what_is_learned_is_listed_with_the_home_first(first):
    kept, homes = flows.empty(64), homes_of(first)
    learn(kept, first, homes)
    check(kept)
    # The home is always there; it carries nothing unless it was told to.
    assert listed(kept) == {key: {homes[key]: 0.0} | of for key, of in first.items()}
    for slot in range(kept.counts[SPLIT]):
        assert kept.workers[kept.first[slot]] == homes[int(kept.keys[slot])]


@given(first=made, second=made)
def test_a_key_that_was_split_already_keeps_its_shares_and_gets_the_new_flows_empty(first, second):
    second |= {key: {9: 1.0, 3: 0.5} for key in list(first)[:5]}
    kept, homes = flows.empty(64), homes_of(first, second)
    learn(kept, first, homes)
    before = listed(kept)
    learn(kept, second, homes)
    check(kept)
    after = listed(kept)
    assert set(after) == set(first) | set(second)
    for key, of in before.items():
        assert after[key] == dict.fromkeys(second.get(key, {}), 0.0) | of
    for key in set(second) - set(first):
        assert after[key] == {homes[key]: 0.0} | second[key]


@given(first=made, second=made, most=st.integers(1, 4))
def test_a_key_learns_no_more_flows_than_it_may_have(first, second, most):
    kept, homes = flows.empty(64), homes_of(first, second)
    learn(kept, first, homes, most)
    learn(kept, second, homes, most)
    check(kept)
    for key, of in listed(kept).items():
        wanted = {homes[key], *first.get(key, {}), *second.get(key, {})}
        assert homes[key] in of
        assert set(of) <= wanted
        assert len(of) == min(most, len(wanted))


@given(first=made, capacity=st.integers(1, 8))
def test_where_there_is_no_room_the_rest_is_left_out(first, capacity):
    kept, homes = flows.empty(capacity), homes_of(first)
    learn(kept, first, homes)
    check(kept)
    for key, of in listed(kept).items():
        assert set(of) <= {homes[key], *first[key]}
    assert kept.counts[SPLIT] == capacity or kept.counts[N_FREE] <= 1 or kept.counts[SPLIT] == len(first)


@given(heats=st.lists(st.integers(0, 5), min_size=7, max_size=8), ages=st.lists(st.integers(0, 20), min_size=8))
def test_when_slots_run_out_the_hotter_half_stays(heats, ages):
    kept = flows.empty(8)
    shares = {key: {key % 10: 0.5, (key + 1) % 10: 0.5} for key in range(100, 100 + len(heats))}
    learn(kept, shares, homes_of(shares))
    kept.counts[CHUNKS] = 20
    kept.heat[: len(heats)] = heats
    kept.seen[: len(heats)] = 20 - np.array(ages[: len(heats)])
    now = {key: flows.decayed(kept, slot) for slot, key in enumerate(shares)}
    flows.make_room(kept)
    check(kept)
    after = listed(kept)
    assert len(after) == len(heats) // 2
    assert after == {key: shares[key] for key in after}
    assert min(now[key] for key in after) >= max(now[key] for key in set(shares) - set(after))


def test_while_there_is_room_nothing_is_forgotten():
    kept = flows.empty(16)
    shares = {key: {key % 10: 1.0} for key in range(13)}
    learn(kept, shares, homes_of(shares))
    flows.make_room(kept)
    assert set(listed(kept)) == set(shares)
    learn(kept, {13: {3: 1.0}}, {13: 3})
    flows.make_room(kept)
    assert len(listed(kept)) == 7


def test_when_flows_run_out_half_of_the_keys_go():
    kept = flows.empty(16)
    shares = {key: {worker: 0.1 for worker in range(10)} for key in range(6)}
    learn(kept, shares, homes_of(shares))
    kept.heat[:6] = [6, 1, 5, 2, 4, 3]
    flows.make_room(kept)
    check(kept)
    assert set(listed(kept)) == {0, 2, 4}


def test_heat_halves_in_ten_chunks_and_recent_keys_are_told_apart():
    kept = flows.empty(4)
    learn(kept, {1: {1: 1.0}, 2: {2: 1.0}}, {1: 1, 2: 2})
    kept.heat[:2] = 8.0
    kept.counts[CHUNKS] = 20
    kept.seen[1] = 10
    assert flows.decayed(kept, 0) == pytest.approx(2.0)
    assert flows.decayed(kept, 1) == pytest.approx(4.0)
    assert set(listed(kept, recent=20)) == {1, 2}
    assert set(listed(kept, recent=19)) == {2}
    assert set(listed(kept, recent=9)) == set()
