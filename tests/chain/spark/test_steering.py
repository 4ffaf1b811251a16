"""Tables of a chain: decided from what workers counted, written once, and never a reason to stop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql.datasource import InputPartition

from anabranch.chain import Manager, Pairs, Placement
from anabranch.chain.spark import steering
from anabranch.chain.spark.hop_report import HopReport, hop_reports
from anabranch.chain.spark.metrics import locality_of
from anabranch.chain.spark.settings import Reconfiguration, TaskSettings
from anabranch.chain.spark.steering import settle
from anabranch.chain.spark.tables import (
    FIRST,
    Tables,
    in_force,
    moved_name,
    placement_name,
    placement_of,
    tables_of,
)
from anabranch.errors import InputError, SnapshotError
from anabranch.spark.plans.ledger import KEPT_BATCHES, Ledger
from anabranch.spark.plans.unwritten import UNPLANNED, UNWRITTEN
from anabranch.spark.task import Task

KEYS = np.random.default_rng(0).integers(0, 2**64, (2, 40), dtype=np.uint64)


@pytest.fixture
def settings(tmp_path: Path) -> TaskSettings:
    return TaskSettings(2, 4, str(tmp_path / "ledger"), reconfiguration=Reconfiguration(every=2))


@pytest.fixture
def ledger(settings: TaskSettings) -> Ledger:
    return Ledger(str(settings.ledger))


def report(ledger: Ledger, batch: int, hosts: str = "aabbabab", turn: int = 0) -> None:
    """What the workers of two operators leave behind: pairs of which each key has one partner, and their hosts."""
    pairs = Pairs.exact(KEYS[0], np.roll(KEYS[1], turn), np.full(40, 1000))
    for worker in range(4):
        ledger.put("q", f"{batch:012d}/pairs-000-{worker:06d}", pairs.pack())
        for operator in range(2):
            sent = np.full(4 * (operator == 0), 10)
            HopReport(operator, worker, hosts[4 * operator + worker], 40, 0.5, 7, 0, sent).write(ledger, "q", batch)


def test_correlated_keys_come_to_one_host_at_the_batch_of_the_decision(settings, ledger):
    for batch in (0, 1):
        assert settle(settings, "q", batch).version == FIRST
        report(ledger, batch)
    tables = settle(settings, "q", 2)
    assert (tables.version, tables.promised, tables.trust) == (2, 1.0, 1.0)
    assert tables.measured < 0.8 and tables.moved > 0 and tables.gain_s > tables.cost_s > 0
    first, second = (
        router.route(keys) for router, keys in zip(in_force(settings, Task("q", 2, 0))[1], KEYS, strict=True)
    )
    assert (np.array(list("aabb"))[first] == np.array(list("abab"))[second]).all()
    assert len(np.unique(first)) == len(np.unique(second)) == 4
    before = in_force(settings, Task("q", 1, 0))[1]
    assert (before[0].route(KEYS[0]) == Placement.hashed(2, 4).routers()[0].route(KEYS[0])).all()
    # In between nothing is decided, and without better tables nothing changes.
    report(ledger, 2)
    assert settle(settings, "q", 3) == tables
    report(ledger, 3)
    assert settle(settings, "q", 4).version == 2


def test_a_replayed_batch_has_the_tables_that_it_had(settings, ledger):
    report(ledger, 0)
    report(ledger, 1)
    tables = settle(settings, "q", 2)
    placement = placement_of(settings, "q", 2).pack()
    report(ledger, 1, turn=7)
    assert settle(settings, "q", 2) == tables
    # Written, but a crash came before it was in force: the batch has that placement when it is replayed.
    ledger.remove("q", f"{2:012d}/tables")
    assert settle(settings, "q", 2).version == 2
    assert placement_of(settings, "q", 2).pack() == placement


def test_tables_that_hosts_no_longer_fit_are_replaced(settings, ledger):
    for batch in range(2):
        report(ledger, batch)
    assert settle(settings, "q", 2).version == 2
    for batch in (2, 3):
        report(ledger, batch, hosts="aabbbaba")
    assert settle(settings, "q", 4).version == 4


def test_a_plan_remembers_as_many_periods_as_it_is_told(settings, ledger):
    longer = replace(settings, reconfiguration=Reconfiguration(every=1, history=3, fade=0.5))
    for batch in range(1, 6):
        pairs = Pairs.exact(KEYS[0][batch : batch + 1], KEYS[1][batch : batch + 1], np.array([1000]))
        # Decided twice, as by a batch that is replayed.
        for _ in range(2):
            (chain,) = steering._remembered(longer, ledger, "q", batch, [pairs])
    assert chain.first.tolist() == KEYS[0][[5, 4, 3]].tolist()
    assert (chain.counts / chain.scale).tolist() == [1000, 500, 250]
    assert [name for name in ledger.names("q") if "period" in name] == [f"period-{i:012d}-000" for i in (3, 4, 5)]


@pytest.mark.parametrize("hosts", ["aaaaaaaa", "aabbaba"])
def test_one_host_or_a_worker_that_did_not_report_changes_nothing(settings, ledger, hosts):
    report(ledger, 0)
    report(ledger, 1, hosts.ljust(8, "?"))
    if "?" in hosts.ljust(8, "?"):
        ledger.remove("q", f"{1:012d}/worker-001-000003")
    assert settle(settings, "q", 2).pack() == Tables().pack()


def test_a_planner_that_fails_changes_nothing_and_says_so(settings, ledger, monkeypatch, caplog):
    report(ledger, 0)
    report(ledger, 1)

    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("no planner here")

    monkeypatch.setattr(Manager, "decide", failing)
    monkeypatch.setattr(Task, "current", classmethod(lambda cls: Task("q", 2, 0)))
    (row,) = steering._TablesReader(settings).read(InputPartition(0))
    assert (row[UNWRITTEN].to_pylist(), row[UNPLANNED].to_pylist()) == ([0], [1])
    assert settle(settings, "q", 2).version == FIRST
    assert "no new plan for batch 2, so the last one stays in force: no planner here" in caplog.text


def test_the_source_never_raises(tmp_path, monkeypatch, caplog):
    (tmp_path / "ledger").write_text("in the way")
    monkeypatch.setattr(Task, "current", classmethod(lambda cls: Task("q", 3, 0)))
    reader = steering._TablesReader(TaskSettings(2, 2, str(tmp_path / "ledger")))
    assert [batch[UNWRITTEN].to_pylist() for batch in reader.read(InputPartition(0))] == [[1]]
    assert f"ledger {tmp_path}/ledger was not written" in caplog.text


@pytest.mark.parametrize("damage", [b"", b"nonsense", Tables().pack()[:-3]])
def test_what_is_damaged_is_as_if_it_were_not_there(settings, ledger, damage):
    report(ledger, 0)
    report(ledger, 1)
    settle(settings, "q", 2)
    ledger.put("q", f"{1:012d}/pairs-000-000001", damage)
    ledger.put("q", f"{2:012d}/tables", damage)
    assert tables_of(ledger, "q", 2) is None
    ledger.put("q", "placement-000000000002", damage)
    assert placement_of(settings, "q", 2).pack() == Placement.hashed(2, 4).pack()


@pytest.mark.parametrize("damage", [b"", b"nonsense", Tables().pack()])
def test_a_plan_does_without_the_damaged_pairs_of_earlier_periods(settings, ledger, damage, caplog):
    settings = replace(settings, reconfiguration=Reconfiguration(every=2, history=2))
    for batch in range(4):
        settle(settings, "q", batch)
        report(ledger, batch, turn=batch // 2)
    names = [name for name in ledger.names("q") if name.startswith("period-")]
    for name in names:
        ledger.put("q", name, damage)
    assert names and settle(settings, "q", 4).version == 4
    assert "no new plan" not in caplog.text


def test_damaged_tables_of_the_batch_itself_are_refused_by_name(settings, ledger):
    ledger.put("q", f"{0:012d}/tables", b"nonsense")
    with pytest.raises(SnapshotError):
        settle(settings, "q", 0)


def test_new_tables_are_dropped_if_nobody_was_called_to_hand_states_over(settings, ledger):
    settings = replace(settings, steps=(1,))
    for batch in (0, 1):
        settle(settings, "q", batch)
        report(ledger, batch)
    assert [settle(settings, "q", batch).version for batch in (2, 3)] == [2, FIRST]


def test_a_stateful_step_goes_by_the_tables_before_in_the_batch_of_the_decision(settings, ledger, monkeypatch):
    settings = replace(settings, steps=(1,))
    for batch in (0, 1):
        settle(settings, "q", batch)
        report(ledger, batch)
    assert settle(settings, "q", 2).version == 2
    ledger.put("q", moved_name(2, 1, 0), b"handed over")
    assert (settle(settings, "q", 3).version, settle(settings, "q", 3).previous) == (2, FIRST)
    hashed, placed = Placement.hashed(2, 4).routers(), placement_of(settings, "q", 2).routers()
    for batch, routers in ((1, hashed), (2, [placed[0], hashed[1]]), (3, placed)):
        for router, wanted, keys in zip(in_force(settings, Task("q", batch, 0))[1], routers, KEYS, strict=True):
            assert (router.route(keys) == wanted.route(keys)).all()
    # It cannot do without them, where aggregates go by hash.
    with pytest.raises(InputError, match="has no tables of 4"):
        in_force(settings, Task("q", 4, 0))
    ledger.remove("q", placement_name(2))
    with pytest.raises(InputError, match="has no placement-000000000002"):
        placement_of(settings, "q", 2)
    monkeypatch.setattr(steering, "settle", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(steering._TablesReader(settings).read(InputPartition(0)))


def test_on_one_host_hot_keys_are_shared_out_among_its_workers(settings, ledger):
    """Half of all tuples have one key of the second operator; without leave to split, nothing is planned there."""
    manager = Manager(1, method="greedy", split=True)
    settings = replace(settings, reconfiguration=replace(settings.reconfiguration, manager=manager))
    second = np.where(np.arange(40) % 2, KEYS[1], KEYS[1, 0])
    hot = Pairs.exact(KEYS[0], second, np.full(40, 10_000))
    for batch in (0, 1):
        report(ledger, batch, hosts="a" * 8)
        for worker in range(4):
            ledger.put("q", f"{batch:012d}/pairs-000-{worker:06d}", hot.pack())
    tables = settle(settings, "q", 2)
    placement = placement_of(settings, "q", tables.version)
    assert tables.version == 2 and placement.n_servers == 4
    assert KEYS[1, 0] in placement.tables[1].split_keys and tables.split == len(placement.tables[1].split_keys)
    assert max(placement.makespans) < 1.1 < max(Placement.hashed(2, 4).measured([hot])[1][1]) / 200_000


@pytest.mark.parametrize("step", [0, 1])
def test_hot_keys_are_split_but_for_those_of_stateful_steps(settings, ledger, step):
    """The first operator has one key, which is heavier than any server, the second 40 keys with a fortieth each."""
    reconfiguration = replace(settings.reconfiguration, manager=Manager(1, method="greedy", split=True))
    settings = replace(settings, steps=(step,), reconfiguration=reconfiguration)
    hot = Pairs.exact(np.full(40, KEYS[0, 5]), KEYS[1], np.full(40, 10_000))
    for batch in (0, 1):
        report(ledger, batch)
        ledger.put("q", f"{batch:012d}/pairs-000-000000", hot.pack())
    first, second = placement_of(settings, "q", settle(settings, "q", 2).version).tables
    assert first.split_keys.tolist() == ([] if step == 0 else [KEYS[0, 5]])
    assert second.split_keys.tolist() == ([] if step == 1 else sorted(KEYS[1].tolist()))


def test_old_batches_and_placements_are_removed(settings, ledger):
    for batch in range(KEPT_BATCHES + 7):
        settle(settings, "q", batch)
        report(ledger, batch, turn=5 * (batch // 2))
    kept = [tables_of(ledger, "q", batch).version for batch in ledger.batches("q")]
    assert len(kept) == KEPT_BATCHES + 1
    assert [name for name in ledger.names("q") if "placement" in name] == [
        f"placement-{version:012d}" for version in dict.fromkeys(kept)
    ]


def test_reports_are_read_back_and_say_how_local_tuples_were(ledger):
    report(ledger, 0)
    reports = hop_reports(ledger, "q", 0)
    assert [(r.operator, r.worker, r.host, r.tuples, r.partials) for r in reports[3:5]] == [
        (0, 3, "b", 40, 7),
        (1, 0, "a", 40, 7),
    ]
    assert reports[0].sent.tolist() == [10] * 4
    assert locality_of(reports) == 0.5
    assert locality_of(reports, n_servers=4) == 0.25
    assert locality_of(reports[4:]) is None
