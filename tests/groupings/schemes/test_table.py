"""Table grouping goes by its table, and by hash where the table says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hashing.murmur3_family import Murmur3

from anabranch.errors import ConfigError
from anabranch.groupings import KeyGrouping, Plan, TableGrouping
from anabranch.hashing import hash_keys

UNIVERSE = hash_keys(np.arange(3_000))
tables = st.dictionaries(st.integers(0, 300), st.integers(0, 12), max_size=120)


def grouping_of(table: dict[int, int], **parameters: object) -> TableGrouping:
    return TableGrouping(UNIVERSE[list(table)], np.array(list(table.values()), dtype=np.int32), **parameters)


@given(table=tables, n_workers=st.integers(1, 13), seed=st.integers(0, 3))
def test_keys_go_where_the_table_says_and_all_others_home(table, n_workers, seed):
    asked = UNIVERSE[:400]
    homes = KeyGrouping().build(n_workers, seed=seed).route(asked)
    expected = [table[i] if table.get(i, n_workers) < n_workers else homes[i] for i in range(400)]
    assert grouping_of(table).build(n_workers, seed=seed).route(asked).tolist() == expected


@given(table=tables, alive=st.sets(st.integers(0, 12), min_size=1))
def test_a_key_whose_worker_has_gone_goes_home_among_those_alive(table, alive):
    router = grouping_of(table).build(7)
    hashed = KeyGrouping().build(7)
    for each in (router, hashed):
        each.set_workers(alive)
    homes = hashed.route(UNIVERSE[:400])
    expected = [table[i] if table.get(i, -1) in alive else homes[i] for i in range(400)]
    assert router.route(UNIVERSE[:400]).tolist() == expected


@given(table=tables, n_workers=st.integers(1, 13))
def test_the_planned_edge_gets_the_same_table(table, n_workers):
    found = grouping_of(table).table(Plan(hot_keys=UNIVERSE[:50]), n_workers)
    routed = {int(key): found.workers_of(int(key)).tolist() for key in UNIVERSE[:301]}
    assert routed == {int(UNIVERSE[i]): [table[i]] if table.get(i, 99) < n_workers else [] for i in range(301)}


splits = st.dictionaries(st.integers(0, 40), st.lists(st.integers(0, 8), min_size=1, max_size=6), max_size=30)


def split_grouping(table: dict[int, list[int]]) -> TableGrouping:
    rows = [(UNIVERSE[i], worker) for i, workers in table.items() for worker in workers]
    return TableGrouping(np.array([row[0] for row in rows], np.uint64), np.array([row[1] for row in rows], np.int32))


@given(table=splits, n_workers=st.integers(1, 9), asked=st.lists(st.integers(0, 60)), cut=st.integers(0, 40))
def test_a_key_that_is_named_several_times_goes_to_its_workers_in_turn(table, n_workers, asked, cut):
    keys = UNIVERSE[np.array(asked, dtype=np.int64)]
    homes = KeyGrouping().build(n_workers).route(keys)
    turns = {i: [worker for worker in table.get(i, []) if worker < n_workers] for i in asked}
    expected = []
    for i, home in zip(asked, homes.tolist(), strict=True):
        expected.append(turns[i][0] if turns[i] else home)
        turns[i] = turns[i][1:] + turns[i][:1]
    router = split_grouping(table).build(n_workers)
    resumed = split_grouping(table).build(n_workers)
    found = router.route(keys[:cut]).tolist()
    resumed.restore(router.snapshot())
    assert found + resumed.route(keys[cut:]).tolist() == expected
    # In a new window the turns begin anew.
    router.begin_window()
    assert router.route(keys).tolist() == expected
    found_table = split_grouping(table).table(Plan(), n_workers)
    alive = {i: [worker for worker in workers if worker < n_workers] for i, workers in table.items()}
    assert {i: found_table.workers_of(int(UNIVERSE[i])).tolist() for i in table} == alive


@given(
    table=splits,
    alive=st.sets(st.integers(0, 8), min_size=1),
    asked=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20))),
)
def test_a_split_key_has_a_worker_for_every_sender_and_any_of_them_may_get_it(table, alive, asked):
    router = split_grouping(table).build(9)
    router.set_workers(alive)
    numbers = [number for number, _ in asked]
    keys = UNIVERSE[np.array(numbers, dtype=np.int64)]
    senders = np.array([sender for _, sender in asked], dtype=np.int32)
    found = router.route_from(keys, senders)
    homes = split_grouping({}).build(9)
    homes.set_workers(alive)
    for number, sender, worker, home in zip(numbers, senders, found, homes.route(keys), strict=True):
        named = [one for one in table.get(number, []) if one in alive]
        assert worker == (named[sender % len(named)] if named else home)
    for worker in alive:
        mine = router.may_get(keys, worker)
        for number, there, home in zip(numbers, mine, homes.route(keys), strict=True):
            named = [one for one in table.get(number, []) if one in alive]
            assert there == (worker in (named or [home]))


def test_any_hash_may_be_in_the_table():
    """Zero, and hashes that begin their search at the same place."""
    keys = np.array([0, 2**64 - 1, *(i << 40 for i in range(1, 60))], dtype=np.uint64)
    router = TableGrouping(keys, np.arange(len(keys)) % 5).build(5)
    assert router.route(keys).tolist() == (np.arange(len(keys)) % 5).tolist()


def test_an_empty_table_is_key_grouping():
    for family in (KeyGrouping().family, Murmur3()):
        routes = TableGrouping(family=family).build(6, seed=2).route(UNIVERSE)
        assert np.array_equal(routes, KeyGrouping(family=family).build(6, seed=2).route(UNIVERSE))


def test_tables_are_compared_by_what_they_say():
    one, same = grouping_of({1: 0, 2: 3}), grouping_of({1: 0, 2: 3})
    assert one == same
    assert hash(one) == hash(same)
    assert one != grouping_of({1: 0, 2: 4})
    assert one != grouping_of({1: 0, 2: 3}, family=Murmur3())
    assert one != "table"


def test_a_snapshot_does_not_hold_the_table():
    router = TableGrouping(UNIVERSE, np.zeros(len(UNIVERSE))).build(3)
    assert len(router.snapshot()) < 1_000 < router.nbytes


@pytest.mark.parametrize(
    ("keys", "workers", "message"),
    [
        ([1, 2], [0], "keys and workers must be equally long, got 2 and 1"),
        ([1, 2], [0, -1], "workers must not be negative, got -1"),
    ],
)
def test_tables_that_are_none_are_refused(keys, workers, message):
    with pytest.raises(ConfigError, match=message):
        TableGrouping(np.array(keys, dtype=np.uint64), np.array(workers))
