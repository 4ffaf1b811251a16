"""Ledgers and checkpoints that an earlier version left behind are gone on with."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from anabranch.hashing import hash_keys
from anabranch.spark import Ledger

from . import queries_of_before as before
from .running import Run, run, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("rocksdb")]

STORED = Path(__file__).parents[1] / "data" / "before.tar.gz"


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Ledgers and checkpoints, made by tests/data/make_before.py, by query."""
    with tarfile.open(STORED) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "before"


def resume(spark, folder: Path, name: str) -> Run:
    """The batch that comes after those of the fixture."""
    files = write_files(folder / "files", [before.rows_of_batch(number) for number in range(before.N_BATCHES)])
    before.renamed(folder / "checkpoint", {before.FILES: str(files), before.CHECKPOINT: str(folder / "checkpoint")})
    return run(before.QUERIES[name](spark, files, str(folder / "ledger")), folder / "checkpoint")


def all_rows() -> pa.Table:
    return pa.concat_tables(before.rows_of_batch(number) for number in range(before.N_BATCHES))


def totals(rows: pa.Table) -> dict[str, tuple[int, int]]:
    grouped = rows.group_by("key").aggregate([([], "count_all"), ("v", "sum")])
    return {row["key"]: (row["count_all"], row["v_sum"]) for row in grouped.to_pylist()}


@pytest.mark.parametrize("name", ["batch_regime", "kept_router"])
def test_totals_go_on(spark, stored, name):
    done = resume(spark, stored / name, name)
    changed = set(before.rows_of_batch(before.N_BEFORE)["key"].to_pylist())
    found = {row["key"]: (row["n"], row["s"]) for table in done.tables for row in table.to_pylist()}
    assert found == {key: total for key, total in totals(all_rows()).items() if key in changed}
    assert done.progress[0]["batchId"] == before.N_BEFORE


def test_states_on_workers_go_on(spark, stored):
    """They come out at the end of a bounded run, those of keys that did not come again too."""
    done = resume(spark, stored / "resident_regime", "resident_regime")
    found = {row["key"]: (row["n"], row["s"]) for table in done.tables for row in table.to_pylist()}
    assert found == totals(all_rows())


def test_operators_in_a_row_go_on(spark, stored):
    """Totals of the first, and the stateful step's counts, of which the last operator counts tuples."""
    done = resume(spark, stored / "operators", "operators")
    rows = [row for table in done.tables for row in table.to_pylist()]
    changed = set(before.rows_of_batch(before.N_BEFORE)["key"].to_pylist())
    found = {row["key"]["key"]: (row["key"]["n"], row["key"]["s"]) for row in rows if row["operator"] == "key"}
    assert found == {key: total for key, total in totals(all_rows()).items() if key in changed}
    counted = {row["seen"]["seen"]: row["seen"]["n"] for row in rows if row["operator"] == "seen"}
    assert counted.items() <= tuples_by_those_before(all_rows()).items()
    assert max(counted) == max(tuples_by_those_before(all_rows()))


def tuples_by_those_before(rows: pa.Table) -> dict[int, int]:
    """How many tuples came after so many of their tag, for each number."""
    counts = rows.group_by("tag").aggregate([([], "count_all")])["count_all"].to_pylist()
    return {seen: sum(count > seen for count in counts) for seen in range(max(counts))}


def test_the_batch_after_follows_what_was_learned_before(spark, stored):
    """Its plan is made from the plan and the reports of the batch before, which only the fixture has."""
    done = resume(spark, stored / "batch_regime", "batch_regime")
    plan = Ledger(str(stored / "batch_regime" / "ledger")).plan(done.query, before.N_BEFORE)
    assert plan is not None and hottest() in plan.hot_keys.tolist()


def hottest() -> int:
    keys, counts = np.unique(hash_keys(all_rows()["key"]), return_counts=True)
    return int(keys[counts.argmax()])
