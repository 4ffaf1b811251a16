"""Drivers are killed at every step of a migration, and nothing is lost or doubled, to the last bit."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dev.cluster import Cluster

from anabranch.chain.spark.hop_report import hop_reports
from anabranch.chain.spark.tables import placement_name, tables_of
from anabranch.spark import Ledger

from .cluster import Driver
from .test_faults import CLUSTER, assert_repeated, struck, write
from .test_faults import cluster as cluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]

# Decided in the batch of this number, in which states stay on their workers but for those that move.
MOVED = 2
CHAIN = {"name": "chain", "chain": True, "n_workers": 3, "n_servers": 2, "every": 2, "flush_every": 4}
Answer = dict[Any, tuple[int, str]]


def tables(changes: int = 99) -> list[pa.Table]:
    """Keys and amounts of which most belong to one key, and doubles whose sum shows in which order it was made.

    In the batch `changes` the amounts come to belong to other keys.
    """
    rng = np.random.default_rng(3)
    made = []
    for batch in range(6):
        key = rng.integers(0, 20, 4000)
        own = (key + 7 * (batch >= changes) * (key % 3)) % 20
        amount = np.where(rng.random(4000) < 0.9, own * 10 + rng.integers(0, 3, 4000), rng.integers(0, 200, 4000))
        value = rng.standard_normal(4000) * 10.0 ** rng.integers(-8, 9, 4000)
        names = pa.array([f"ключ{i}" if i else None for i in key])
        made.append(pa.table({"key": names, "amount": amount, "value": value}))
    return made


def group_by(made: list[pa.Table], key: str) -> Answer:
    rows = defaultdict(list)
    for row in pa.concat_tables(made).to_pylist():
        rows[row[key]].append(row["value"])
    return {one: (len(values), math.fsum(values).hex()) for one, values in rows.items()}


def answer(folder: Path, key: str) -> Answer:
    """The last row of each key of an operator, which no batch has twice."""
    rows: Answer = {}
    for path in sorted((folder / "out").glob("*.parquet")):
        own = [row[key] for row in pq.read_table(path).to_pylist() if row["operator"] == key]
        batch = {row[key]: (row["n"], row["value"].hex()) for row in own}
        assert len(batch) == len(own)
        rows |= batch
    return rows


def decided(folder: Path) -> tuple[bytes | None, bytes | None]:
    """The placement of the batch, and what put it in force."""
    ledger = Ledger(str(folder / "ledger"))
    (query,) = ledger.queries()
    return ledger.found(query, placement_name(MOVED)), ledger.found(query, f"{MOVED:012d}/tables")


def test_a_driver_killed_at_any_step_of_a_migration_loses_and_doubles_nothing(java: None, tmp_path: Path) -> None:
    made, folder = tables(), tmp_path / "chain"
    faults = [("decided", MOVED, "driver"), ("written", MOVED, "driver")]
    job = {"master": "local[2]", "data": write(tmp_path / "data", made[:4]), "files_a_batch": 1}
    driver = Driver(tmp_path, {**job, "queries": [{**CHAIN, "faults": faults}]})

    # Decided, but nothing is written.
    assert driver.run(die=("idle", 99)) is None
    assert struck(folder) == {f"decided-{MOVED}"}
    assert decided(folder) == (None, None)
    # The placement is written, but it is not in force.
    assert driver.run(die=("idle", 99)) is None
    assert struck(folder) == {f"decided-{MOVED}", f"written-{MOVED}"}
    placement, nothing = decided(folder)
    assert placement is not None and nothing is None
    # It is in force; states have moved, but the sink has nothing of it.
    assert driver.run(die=("before the sink", MOVED)) is None
    placed, in_force = decided(folder)
    assert placed == placement and in_force is not None
    assert not (folder / "out" / f"{MOVED:06d}.parquet").exists()
    # The sink has it, but the batch is not committed.
    assert driver.run(die=("after the sink", MOVED)) is None
    first = pq.read_table(folder / "out" / f"{MOVED:06d}.parquet")
    # It is committed, and so is the next batch, in which all states are merged.
    assert driver.run(die=("idle", MOVED + 1)) is None
    assert decided(folder) == (placement, in_force)
    again = pq.read_table(folder / "out" / f"{MOVED:06d}.parquet")
    assert sorted(map(repr, again.to_pylist())) == sorted(map(repr, first.to_pylist()))
    for key in ("key", "amount"):
        assert answer(folder, key) == group_by(made[:4], key)

    write(tmp_path / "data", [*made[4:], *made[:2]], first=4)
    assert driver.run() is not None

    ledger = Ledger(str(folder / "ledger"))
    (query,) = ledger.queries()
    tables_then = tables_of(ledger, query, MOVED)
    assert tables_then is not None and tables_then.version == MOVED
    assert 0 < sum(report.flushed for report in hop_reports(ledger, query, MOVED)) == first.num_rows
    for key in ("key", "amount"):
        assert answer(folder, key) == group_by([*made, *made[:2]], key)


def surprises(made: list[pa.Table]) -> Answer:
    """By amount, how far the values of a key are from its smoothed ones before, one tuple after the other."""
    means: dict[Any, float] = defaultdict(float)
    rows = defaultdict(list)
    for batch in made:
        for row in sorted(batch.to_pylist(), key=lambda row: row["value"]):
            rows[row["amount"]].append(row["value"] - means[row["key"]])
            means[row["key"]] = 0.75 * means[row["key"]] + 0.25 * row["value"]
    return {one: (len(values), math.fsum(values).hex()) for one, values in rows.items()}


def test_states_that_travel_arrive_once_however_often_drivers_and_tasks_die_on_the_way(
    java: None, tmp_path: Path
) -> None:
    made, folder = tables(changes=MOVED), tmp_path / "step"
    again = 2 * MOVED
    strikes = [("handed-over", MOVED), ("taken-up", MOVED + 1), ("handed-over", again), ("taken-up", again + 1)]
    faults = [(stage, batch, "driver" if batch < again else "python") for stage, batch in strikes]
    job = {"master": "local[2,4]", "data": write(tmp_path / "data", made), "files_a_batch": 1}
    driver = Driver(
        tmp_path, {**job, "queries": [{**CHAIN, "name": "step", "step": True, "flush_every": 3, "faults": faults}]}
    )

    # States are in the ledger, but the batch in which they were left there is not committed.
    assert driver.run(die=("idle", 99)) is None
    assert struck(folder) == {f"handed-over-{MOVED}"}
    # They are taken up, but that is not committed.
    assert driver.run(die=("idle", 99)) is None
    assert struck(folder) == {f"handed-over-{MOVED}", f"taken-up-{MOVED + 1}"}
    # Then only tasks die, at the same moments of the next migration, and run again.
    assert driver.run() is not None
    assert struck(folder) == {f"{stage}-{batch}" for stage, batch in strikes}

    ledger = Ledger(str(folder / "ledger"))
    (query,) = ledger.queries()
    moved = [sum(one.flushed for one in hop_reports(ledger, query, batch) if not one.operator) for batch in range(6)]
    assert [number > 0 for number in moved] == [batch in (MOVED, again) for batch in range(6)]
    assert answer(folder, "amount") == surprises(made)


def test_states_that_travel_arrive_once_though_executors_die_and_copies_of_tasks_run(
    cluster: Cluster, tmp_path: Path
) -> None:
    made, folder = tables(changes=MOVED), tmp_path / "step"
    again = 2 * MOVED
    faults = [("handed-over", MOVED, "executor"), ("taken-up", MOVED + 1, "executor"), ("handed-over", again, "slow")]
    query = {**CHAIN, "name": "step", "step": True, "flush_every": 3, "faults": faults}
    job = {"master": cluster.master, "data": write(tmp_path / "data", made), "files_a_batch": 1, "queries": [query]}
    copies = {"spark_speculation": "true", "spark_speculation_quantile": "0.5", "spark_speculation_multiplier": "2"}

    assert Driver(tmp_path, job, {**CLUSTER, **copies}).run() == {"step": 0}

    assert struck(folder) == {f"{stage}-{batch}" for stage, batch, _ in faults}
    # Tasks that ran twice left the same states twice.
    for batch in (MOVED, again):
        assert_repeated(folder, batch)
    assert answer(folder, "amount") == surprises(made)
