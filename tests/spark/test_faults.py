"""Exactly once: real processes are killed, and the answer stays that of a plain `groupBy`, to the last bit."""

from __future__ import annotations

import math
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dev.cluster import Cluster

from anabranch.groupings import Report
from anabranch.spark import Ledger

from .cluster import Driver

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and loopback addresses beyond 127.0.0.1"),
]

N_FILES, ROWS = 8, 15_000
Query = dict[str, Any]
PARTIAL_KEY: Query = {"name": "partial-key", "grouping": "partial-key"}
FISH: Query = {"name": "fish", "grouping": "fish", "ledger": True}
PLANNED: Query = {"name": "planned", "grouping": "w-choices", "edge": "planned", "ledger": True}
RESIDENT: Query = {"name": "resident", "grouping": "fish", "ledger": True, "regime": "resident", "flush_every": 2}
RESIZED: Query = {**PARTIAL_KEY, "name": "resized"}
CLUSTER = {
    "spark_executor_memory": "768m",
    "spark_driver_host": "127.0.0.1",
    "spark_sql_shuffle_partitions": "6",
    "spark_scheduler_minRegisteredResourcesRatio": "1.0",
}
Answer = dict[Any, tuple[int, int, str]]


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    """Skewed keys, null and unicode among them, and doubles whose sum shows the order in which it was made."""
    rng = np.random.default_rng(5)
    names = np.array([f"ключ{i}" if i else None for i in range(1000)], dtype=object)
    return [
        pa.table(
            {
                "key": pa.array(names[rng.zipf(1.3, ROWS) % 1000], pa.string()),
                "amount": rng.integers(-100, 1000, ROWS),
                "value": rng.standard_normal(ROWS) * 10.0 ** rng.integers(-8, 9, ROWS),
            }
        )
        for _ in range(N_FILES)
    ]


def write(folder: Path, tables: list[pa.Table], first: int = 0) -> str:
    """A file a table, in the order in which a stream takes them: by age."""
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables, first):
        pq.write_table(table, folder / f".{number}")
        os.utime(folder / f".{number}", (1_700_000_000 + number,) * 2)
        os.rename(folder / f".{number}", folder / f"{number:03d}.parquet")
    return str(folder)


def group_by(tables: list[pa.Table]) -> Answer:
    """The plain answer: count, sum of integers, and the bits of the exact sum of doubles."""
    rows = defaultdict(list)
    for row in pa.concat_tables(tables).to_pylist():
        rows[row["key"]].append(row)
    return {
        key: (len(own), sum(r["amount"] for r in own), math.fsum(r["value"] for r in own).hex())
        for key, own in rows.items()
    }


def answer(folder: Path) -> Answer:
    """What the sink holds: the last row of each key, which no batch has twice."""
    rows: Answer = {}
    for path in sorted((folder / "out").glob("*.parquet")):
        table = pq.read_table(path)
        batch = {r["key"]: (r["n"], r["amount"], r["value"].hex()) for r in table.to_pylist()}
        assert len(batch) == table.num_rows
        rows |= batch
    return rows


def struck(folder: Path) -> set[str]:
    return {path.name.removeprefix("struck-") for path in (folder / "faults").glob("struck-*")}


def witnesses(folder: Path, batch: int) -> dict[int, list[str]]:
    """Tuples and digests of the partial states of each worker, one for every time that it ran."""
    found = defaultdict(list)
    for path in (folder / "faults").glob(f"witness-{batch}-*"):
        _, _, worker, tuples, digest, _ = path.name.split("-")
        found[int(worker)].append(f"{tuples} {digest}")
    return found


def assert_repeated(folder: Path, batch: int) -> None:
    """Some workers of the batch ran again, and all of them gave the same rows whenever they ran."""
    found = witnesses(folder, batch)
    assert max(len(times) for times in found.values()) > 1
    assert {worker: set(times) for worker, times in found.items() if len(set(times)) > 1} == {}


@pytest.fixture(scope="module")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), n_hosts=2) as running:
        yield running


def test_killed_executors_change_no_answer(cluster: Cluster, tables: list[pa.Table], tmp_path: Path) -> None:
    """Killed when the last stage of a batch is half done, and when the workers of another are."""
    last, worker = ("last", 1, "executor"), ("worker", 2, "executor")
    # First, while nothing else has been lost yet: its edge must have run on both executors.
    unrepeatable = {**PARTIAL_KEY, "name": "unrepeatable", "random_routes": True, "faults": [last]}
    faults = [(PARTIAL_KEY, [last, worker]), (FISH, [last]), (PLANNED, [last])]
    queries: list[Query] = [{**query, "faults": own} for query, own in faults]
    data = write(tmp_path / "data", tables)
    job = {"master": cluster.master, "data": data, "files_a_batch": 3, "queries": [unrepeatable, *queries]}

    restarts = Driver(tmp_path, job, CLUSTER).run()

    for query in queries:
        folder = tmp_path / query["name"]
        assert struck(folder) == {f"{stage}-{batch}" for stage, batch, _ in query["faults"]}
        for _, batch, _ in query["faults"]:
            assert_repeated(folder, batch)
        assert answer(folder) == group_by(tables)
    # Where routes do not repeat, Spark notices and gives the batch up; the checkpoint saves the answer.
    assert restarts is not None and restarts.pop("unrepeatable") > 0
    assert answer(tmp_path / "unrepeatable") == group_by(tables)
    # Where they do, it never has to.
    assert restarts == {query["name"]: 0 for query in queries}


def test_failed_tasks_change_no_answer(java: None, tables: list[pa.Table], tmp_path: Path) -> None:
    """Python workers are killed in edge and worker; source, edge, worker and last stage fail with half of it done."""
    killed = [("edge", 1, "python"), ("worker", 1, "python")]
    failed = [("source", 0, "error"), ("last", 1, "error"), ("edge", 2, "error"), ("worker-output", 2, "error")]
    queries = [{**query, "faults": killed + failed} for query in (PARTIAL_KEY, FISH, PLANNED, RESIDENT)]
    # Local mode gives a task one attempt unless told.
    job = {"master": "local[2,4]", "data": write(tmp_path / "data", tables), "files_a_batch": 2, "queries": queries}

    Driver(tmp_path, job).run()

    for query in queries:
        folder = tmp_path / query["name"]
        expected = {f"{stage}-{batch}" for stage, batch, _ in killed + failed}
        # The resident worker writes blobs, one a worker: there is no half of it.
        assert struck(folder) == expected - ({"worker-output-2"} if query is queries[3] else set())
        for batch in range(3):
            assert all(len(set(times)) == 1 for times in witnesses(folder, batch).values())
        assert answer(folder) == group_by(tables)


@pytest.mark.parametrize("queries", [[PARTIAL_KEY, FISH, PLANNED, RESIZED], [RESIDENT]], ids=["batch", "resident"])
def test_killed_drivers_change_no_answer(
    java: None, tables: list[pa.Table], tmp_path: Path, queries: list[Query]
) -> None:
    """Killed before and after the sink wrote a batch, and between batches; each time the checkpoint takes over."""
    data = write(tmp_path / "data", tables[:6])
    driver = Driver(tmp_path, {"master": "local[2]", "data": data, "files_a_batch": 2})

    assert driver.run(die=("before the sink", 1), queries=queries) is None
    before = {query["name"]: learned(tmp_path / query["name"], 1) for query in queries if "ledger" in query}
    assert driver.run(die=("after the sink", 2), queries=resized(queries, 5)) is None
    after = {name: learned(tmp_path / name, 1) for name in before}
    if RESIDENT not in queries:  # its batches take long, and between them nothing is different from other queries
        assert driver.run(die=("idle", 2), queries=resized(queries, 11)) is None
    write(tmp_path / "data", tables[6:], first=6)
    assert driver.run(queries=queries) is not None

    assert before == after and all(len(what) > 1 for what in before.values())
    for query in queries:
        folder = tmp_path / query["name"]
        for batch in () if query is RESIZED else (1, 2):
            assert_repeated(folder, batch)
        assert answer(folder) == group_by(tables)


def resized(queries: list[Query], n_workers: int) -> list[Query]:
    """Without a ledger and resident states workers may come and go."""
    return [{**query, "n_workers": n_workers} if query is RESIZED else query for query in queries]


def learned(folder: Path, batch: int) -> dict[str, Any]:
    """What must not change when a batch is replayed: its plan, byte for byte, and what its tasks counted."""
    ledger = Ledger(str(folder / "ledger"))
    (query,) = ledger.queries()
    plan = (folder / "ledger" / query / f"{batch:012d}" / "plan").read_bytes()
    reports = ledger.reports(query, batch)
    return {"plan": plan, **{name: counted(report) for name, report in reports.items()}}


def counted(report: Report) -> tuple[Any, ...]:
    return report.tuples, report.worker_tuples.tolist(), report.hot_keys.tolist(), report.hot_counts.tolist()
