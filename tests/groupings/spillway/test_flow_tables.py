"""Flows as tables and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.groupings.plan import Plan, Table, pack_plan, pack_table, unpack_plan
from anabranch.groupings.spillway.flow_tables import flows_of, pooled_flows, table_of, without_idle

# Shares of a key by worker; 0 for a flow that carries nothing at the moment.
shares = st.dictionaries(st.integers(0, 40), st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]), min_size=1, max_size=8)
made = st.dictionaries(st.integers(0, 2**64 - 1), shares, max_size=10)


def table(given_flows: dict[int, dict[int, float]]) -> Table:
    rows = [(key, worker, part) for key, of in given_flows.items() for worker, part in of.items()]
    keys, workers, parts = zip(*rows, strict=True) if rows else ((), (), ())
    return table_of(np.array(keys, np.uint64), np.array(workers, np.int32), np.array(parts, np.float64))


def listed(one: Table) -> dict[int, dict[int, float]]:
    out: dict[int, dict[int, float]] = {}
    for key, worker, part in zip(*(array.tolist() for array in flows_of(one)), strict=True):
        out.setdefault(key, {})[worker] = part
    return out


@given(given_flows=made)
def test_shares_survive_a_table_to_its_resolution(given_flows):
    one = table(given_flows)
    assert one.offsets[0] == 0
    assert one.offsets[-1] == len(one.workers)
    found = listed(one)
    assert {key: set(of) for key, of in found.items()} == {key: set(of) for key, of in given_flows.items()}
    for key, of in given_flows.items():
        whole = sum(of.values())
        even = 1 / len(of)
        for worker, part in of.items():
            wanted = part / whole if whole else even
            # Off by a place of 16 for each flow, and the places of a key by one for each flow.
            assert found[key][worker] == pytest.approx(wanted, abs=(even + wanted) / 15)
        assert sum(found[key].values()) == pytest.approx(1.0)


@given(given_flows=made)
def test_a_table_of_the_flows_of_a_table_is_about_the_same(given_flows):
    first = listed(table(given_flows))
    second = listed(table(first))
    assert {key: set(of) for key, of in first.items()} == {key: set(of) for key, of in second.items()}
    for key, of in first.items():
        assert second[key] == pytest.approx(of, abs=1 / 16)


@given(sources=st.lists(made, max_size=4))
def test_pooled_flows_are_those_of_all_sources_with_mean_shares(sources):
    common = 12345
    sources = [one | {common: {0: 1.0, i + 1: 1.0}} for i, one in enumerate(sources)]
    pooled = pooled_flows([pack_table(table(one)) for one in sources])
    if not sources:
        assert pooled is None
        return
    found = listed(pooled)
    wanted: dict[int, set[int]] = {}
    for one in sources:
        for key, of in one.items():
            wanted.setdefault(key, set()).update(of)
    assert {key: set(of) for key, of in found.items()} == wanted
    assert pooled.keys.tolist() == sorted(wanted)
    n = len(sources)
    assert found[common][0] == pytest.approx(0.5, abs=0.05)
    assert [found[common][i + 1] for i in range(n)] == pytest.approx([0.5 / n] * n, abs=0.05)


def test_no_flows_are_an_empty_table():
    none = table({})
    assert [len(none.keys), len(none.workers), none.offsets.tolist()] == [0, 0, [0]]
    assert listed(none) == {}
    pooled = pooled_flows([pack_table(none), pack_table(none)])
    assert pooled is not None
    assert len(pooled.keys) == 0


def plan_of(given_flows: dict[int, dict[int, float]], used: list[int], previous: Plan | None) -> Plan:
    """The plan after a batch in which sources had these flows, and tuples of the `used` keys."""
    return without_idle(Plan(table=table(given_flows), hot_keys=np.array(used, np.uint64)), previous)


def test_a_key_that_no_source_has_seen_for_64_plans_is_forgotten():
    flows = {key: {key: 0.5, key + 1: 0.5} for key in (3, 5, 7)}
    plan, sizes = None, []
    for batch in range(140):
        # 3 is always there; 5 comes back in time; 7 is seen in the first batch only.
        used = [3, 5, 7] if batch == 0 else [3, 5] if batch == 64 else [3]
        known = flows if plan is None else {key: flows[key] for key in plan.table.keys.tolist()}
        plan = unpack_plan(pack_plan(plan_of(known, used, plan)))
        sizes.append(plan.table.keys.tolist())
    assert sizes[:64] == [[3, 5, 7]] * 64
    assert sizes[64] == [3, 5, 7]
    assert sizes[65:129] == [[3, 5]] * 64
    assert sizes[129:] == [[3]] * 11
    assert listed(plan.table) == {3: {3: 0.5, 4: 0.5}}
    assert len(plan.idle) == 0


def test_a_plan_says_how_long_its_keys_have_been_idle():
    first = plan_of({3: {1: 1.0}, 5: {1: 1.0}}, [3, 5], None)
    assert len(first.idle) == 0
    second = plan_of({3: {1: 1.0}, 4: {2: 1.0}, 5: {1: 1.0}}, [5], first)
    assert (second.table.keys.tolist(), second.idle.tolist()) == ([3, 4, 5], [1, 1, 0])
    third = plan_of({3: {1: 1.0}, 5: {1: 1.0}}, [5], unpack_plan(pack_plan(second)))
    assert (third.table.keys.tolist(), third.idle.tolist()) == ([3, 5], [2, 0])
    assert without_idle(Plan(), third).table is None
