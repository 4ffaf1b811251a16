"""The ledger: who writes first wins, what is damaged is left out, what is old goes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import snapshot
from anabranch.chain.spark.hop_report import HopReport, hop_reports
from anabranch.chain.spark.tables import tables_of
from anabranch.errors import ConfigError, InputError, SnapshotError
from anabranch.groupings import Fish, KeyGrouping, Plan, Report, Table, WChoices
from anabranch.groupings.plan import unpack_plan
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.settings import QuerySettings

Damage = bytes | int | tuple[int, bytes] | Callable[[bytes], bytes]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "ledger"))


def report(tuples: int) -> Report:
    return Report(tuples=tuples, hot_keys=np.array([2**64 - 1], np.uint64), hot_counts=np.array([tuples], np.int64))


def folder_of(ledger: Ledger, query: str, batch: int) -> Path:
    return Path(ledger.uri) / query / f"{batch:012d}"


def test_what_is_written_is_read_back(ledger):
    table = Table(np.array([5], np.uint64), np.array([0, 2]), np.array([1, 3], np.int32))
    ledger.settle_plan("q", 3, Plan(version=7, tuples=9, sources=2, now=1.5, step_s=0.25, table=table))
    ledger.write_report("q", 3, "edge-000000", report(4))
    plan, reports = ledger.plan("q", 3), ledger.reports("q", 3)
    assert plan is not None
    assert plan.table is not None
    assert (plan.version, plan.tuples, plan.sources, plan.now, plan.step_s) == (7, 9, 2, 1.5, 0.25)
    assert plan.table.workers_of(5).tolist() == [1, 3]
    assert list(reports) == ["edge-000000"]
    assert (reports["edge-000000"].tuples, reports["edge-000000"].hot_keys.tolist()) == (4, [2**64 - 1])
    assert ledger.queries() == ["q"]


def test_what_is_not_there_is_none_or_empty(ledger):
    assert ledger.plan("q", 0) is None
    assert ledger.reports("q", 0) == {}
    assert ledger.batches("q") == ledger.queries() == []
    ledger.forget("q", 10)


def test_a_plan_is_never_replaced(ledger):
    assert ledger.settle_plan("q", 0, Plan(version=1)).version == 1
    assert ledger.settle_plan("q", 0, Plan(version=2)).version == 1
    found = ledger.plan("q", 0)
    assert found is not None
    assert found.version == 1


def test_of_many_that_write_a_plan_at_once_all_get_the_same_one(ledger):
    for batch in range(5):
        barrier = threading.Barrier(16)

        def settle(version: int, batch: int = batch, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            return ledger.settle_plan("q", batch, Plan(version=version, tuples=version)).version

        with ThreadPoolExecutor(16) as pool:
            settled = list(pool.map(settle, range(16)))
        assert len(set(settled)) == 1
        # Nothing temporary stays.
        assert [path.name for path in folder_of(ledger, "q", batch).iterdir()] == ["plan"]


def test_a_reader_never_sees_half_a_report(ledger):
    large = Report(hot_keys=np.arange(20_000, dtype=np.uint64), hot_counts=np.arange(20_000))
    ledger.write_report("q", 0, "worker-000000", large)
    seen, done = [], threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(len(ledger.reports("q", 0)))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        ledger.write_report("q", 0, "worker-000000", large)
    done.set()
    reader.join()
    assert set(seen) == {1}


def test_a_task_that_runs_again_replaces_its_report(ledger):
    ledger.write_report("q", 0, "edge-000001", report(4))
    ledger.write_report("q", 0, "edge-000001", report(5))
    assert [one.tuples for one in ledger.reports("q", 0).values()] == [5]


def test_reports_come_in_the_order_of_their_names_and_by_kind(ledger):
    for name in ("worker-000000", "edge-000010", "observed-0", "edge-000002"):
        ledger.write_report("q", 0, name, report(1))
    ledger.settle_plan("q", 0, Plan())
    assert list(ledger.reports("q", 0)) == ["edge-000002", "edge-000010", "observed-0", "worker-000000"]
    assert list(ledger.reports("q", 0, "edge")) == ["edge-000002", "edge-000010"]


def older(data: bytes) -> bytes:
    """The same file, of a format that has been given up."""
    return data[:4] + b"\0" + data[5:]


def with_less(data: bytes) -> bytes:
    """A whole file of a version that wrote fewer numbers."""
    header, arrays = snapshot.unpack(data)
    return snapshot.pack({"kind": header["kind"]}, arrays)


def nonsense(data: bytes) -> bytes:
    """A checksum over what is no snapshot."""
    content = (2**31).to_bytes(4, "little") + b"{"
    return data[:5] + hashlib.blake2b(content, digest_size=16).digest() + content


@given(
    damage=st.one_of(
        st.just(b""),
        st.binary(max_size=60),
        st.integers(1, 60),
        st.sampled_from([older, with_less, nonsense]),
        st.tuples(st.integers(0, 40), st.binary(max_size=200)),
    )
)
def test_damaged_files_are_as_if_they_were_not_there(tmp_path_factory, damage):
    ledger = Ledger(str(tmp_path_factory.mktemp("ledger")))
    ledger.settle_plan("q", 0, Plan(version=1))
    for name in ("edge-000000", "edge-000001"):
        ledger.write_report("q", 0, name, report(4))
    for name in ("plan", "edge-000000"):
        path = folder_of(ledger, "q", 0) / name
        path.write_bytes(damaged(path.read_bytes(), damage))
    assert ledger.plan("q", 0) is None
    assert list(ledger.reports("q", 0)) == ["edge-000001"]
    with pytest.raises(SnapshotError):
        ledger.settle_plan("q", 0, Plan(version=2))


def damaged(data: bytes, damage: Damage) -> bytes:
    if isinstance(damage, int):
        return data[:-damage]
    if isinstance(damage, tuple):
        return data[: damage[0]] + damage[1]
    return damage if isinstance(damage, bytes) else damage(data)


def test_tables_and_hop_reports_of_another_version_are_left_out(ledger):
    ledger.put("q", "000000000000/tables", snapshot.pack({"kind": "tables", "version": 1, "other": 2}, {}))
    assert tables_of(ledger, "q", 0) is None
    whole = HopReport(0, 1, "host", 5, 0.5, 3, 0, np.array([2, 3]))
    whole.write(ledger, "q", 0)
    ledger.write_report("q", 0, "worker-000-000000", Report(sketch=snapshot.pack({"kind": "hop", "operator": 0}, {})))
    assert [found.name for found in hop_reports(ledger, "q", 0)] == [whole.name]


def test_a_plan_in_place_of_a_report_is_left_out(ledger):
    ledger.settle_plan("q", 0, Plan(version=1))
    folder = folder_of(ledger, "q", 0)
    (folder / "edge-000000").write_bytes((folder / "plan").read_bytes())
    assert ledger.reports("q", 0) == {}
    with pytest.raises(SnapshotError, match="expected a plan, found 'report'"):
        ledger.write_report("q", 0, "worker-000000", report(1))
        unpack_plan((folder / "worker-000000").read_bytes())


def test_old_batches_are_forgotten_and_others_stay(ledger):
    for query in ("q", "other"):
        for batch in range(5):
            ledger.write_report(query, batch, "edge-000000", report(1))
    ledger.forget("q", 3)
    assert ledger.batches("q") == [3, 4]
    assert ledger.batches("other") == [0, 1, 2, 3, 4]


def test_a_claim_is_for_one_configuration(ledger):
    mine = QuerySettings(Fish(), 4, "adaptive", keys=("key",)).identity()
    ledger.claim(mine)
    ledger.claim(mine)
    for other, message in [
        (QuerySettings(KeyGrouping(), 4, "adaptive", keys=("key",)), r"with grouping 'fish', this one has 'key'"),
        (QuerySettings(Fish(), 5, "adaptive", keys=("key",)), r"with n_workers 4, this one has 5"),
        (QuerySettings(Fish(), 4, "local", keys=("key",)), r"with edge 'adaptive', this one has 'local'"),
        (QuerySettings(Fish(), 4, "adaptive", keys=("word",)), r"with keys \['key'\], this one has \['word'\]"),
        (QuerySettings(Fish(), 4, "adaptive", seed=1, keys=("key",)), "with seed 0, this one has 1"),
    ]:
        with pytest.raises(ConfigError, match=f"{message}; keep the old settings, or name a new ledger"):
            ledger.claim(other.identity())
    ledger.claim(mine)


def test_parameters_of_a_grouping_belong_to_the_claim(ledger):
    ledger.claim(QuerySettings(WChoices(), 4, "planned", keys=("key",)).identity())
    with pytest.raises(ConfigError, match="belongs to a query with parameters"):
        ledger.claim(QuerySettings(WChoices(theta=0.5), 4, "planned", keys=("key",)).identity())


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"null", b"1", b"\xff\xfe\x00"])
def test_a_damaged_claim_is_an_error(ledger, damage):
    ledger.claim({"grouping": "fish"})
    (Path(ledger.uri) / "anabranch.json").write_bytes(damage)
    with pytest.raises(InputError, match=r"damaged: anabranch\.json is not JSON; use a new folder"):
        ledger.claim({"grouping": "fish"})


def test_a_claim_can_be_read(ledger):
    ledger.claim({"grouping": "fish", "n_workers": 3})
    assert json.loads((Path(ledger.uri) / "anabranch.json").read_text()) == {"grouping": "fish", "n_workers": 3}


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for uri in (tmp_path / "file", tmp_path / "file" / "ledger"):
        with pytest.raises(InputError, match=r"cannot be written.*name a folder that tasks can write"):
            Ledger(str(uri)).claim({})


def test_a_location_may_be_a_uri_and_an_unknown_one_is_an_error(tmp_path):
    Ledger(f"file://{tmp_path}/ledger").claim({"a": 1})
    assert (tmp_path / "ledger" / "anabranch.json").exists()
    with pytest.raises(InputError, match="is not a location that pyarrow or fsspec opens"):
        Ledger("nowhere://bucket/ledger").claim({})


def test_a_relative_path_is_meant_from_where_the_driver_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Ledger("ledger").claim({})
    assert (tmp_path / "ledger" / "anabranch.json").exists()
