"""A cluster of three hosts that have no anabranch: the same answers, from all of them, though an executor dies."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dev.cluster import Cluster

from anabranch.chain.spark.hop_report import hop_reports
from anabranch.chain.spark.metrics import locality_of
from anabranch.chain.spark.settings import TaskSettings
from anabranch.chain.spark.steering import seats_of
from anabranch.chain.spark.tables import tables_of
from anabranch.spark import Ledger

from .cluster import DRIVERS, Driver
from .test_chain_faults import answer as chain_answer
from .test_chain_faults import group_by as chain_group_by
from .test_faults import CLUSTER, Query, answer, group_by, struck, write
from .test_faults import tables as tables

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs loopback addresses beyond 127.0.0.1"),
]

KILLED: Query = {
    "name": "killed",
    "grouping": "spillway",
    "ledger": True,
    "faults": [("worker", 0, "executor")],
}
AFTERWARDS: Query = {"name": "afterwards", "grouping": "spillway", "edge": "local"}
CHAIN: Query = {"name": "chain", "chain": True, "n_workers": 3, "every": 1, "flush_every": 2}
Event = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "found").mkdir()
    with Cluster(folder, environment={"ANABRANCH_TEST_FOUND": str(folder / "found")}) as running:
        yield running


@pytest.fixture(scope="module")
def folder(cluster: Cluster, tables: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What three queries of one driver left: an executor is killed in the first, and has come back in the second."""
    folder = tmp_path_factory.mktemp("queries")
    (folder / "events").mkdir()
    conf = {
        **CLUSTER,
        "spark_executorEnv_PYTHONPATH": os.pathsep.join([str(DRIVERS), str(DRIVERS / "hosts")]),
        "spark_eventLog_enabled": "true",
        "spark_eventLog_compress": "false",
        "spark_eventLog_rolling_enabled": "false",
        "spark_eventLog_dir": f"file://{folder / 'events'}",
    }
    job = {"master": cluster.master, "data": write(folder / "data", tables), "files_a_batch": 4, "executors": 3}
    done = Driver(folder, job, conf).run(queries=[KILLED, AFTERWARDS, CHAIN])
    assert done == {"killed": 0, "afterwards": 0, "chain": 0}
    return folder


@pytest.fixture(scope="module")
def events(folder: Path) -> list[Event]:
    (log,) = (folder / "events").iterdir()
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_answers_are_those_of_a_plain_group_by(folder: Path, tables: list[pa.Table]) -> None:
    assert struck(folder / "killed") == {"worker-0"}
    for query in (KILLED, AFTERWARDS):
        assert answer(folder / query["name"]) == group_by(tables)


def test_workers_of_operators_in_a_row_say_on_which_host_they_are(
    cluster: Cluster, folder: Path, tables: list[pa.Table]
) -> None:
    for key in ("key", "amount"):
        assert chain_answer(folder / "chain", key) == chain_group_by(tables, key)
    ledger = Ledger(str(folder / "chain" / "ledger"))
    (query,) = ledger.queries()
    reports = hop_reports(ledger, query, 1)
    hosts = {report.host.rpartition("/")[2] for report in reports}
    assert len(hosts) > 1 and hosts <= set(cluster.hosts)
    seats, decided = seats_of(TaskSettings(2, 3), reports), tables_of(ledger, query, 1)
    assert seats is not None and seats.n_servers == len(hosts)
    # What the manager made of the first batch's pairs and hosts is what happened in it.
    assert decided is not None
    assert decided.measured == pytest.approx(locality_of(hop_reports(ledger, query, 0)), abs=1e-9)


def test_every_host_takes_part(cluster: Cluster, events: list[Event]) -> None:
    done = [event["Task Info"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    tasks = Counter(task["Host"] for task in done if not task["Failed"] and not task["Killed"])
    print("tasks per host:", dict(sorted(tasks.items())))
    assert set(tasks) == set(cluster.hosts)


def test_an_executor_that_was_killed_comes_back(cluster: Cluster, events: list[Event]) -> None:
    added = [event for event in events if event["Event"] == "SparkListenerExecutorAdded"]
    hosts = {event["Executor ID"]: event["Executor Info"]["Host"] for event in added}
    removed = [event["Executor ID"] for event in events if event["Event"] == "SparkListenerExecutorRemoved"]
    first, later = list(hosts)[: cluster.n_hosts], list(hosts)[cluster.n_hosts :]
    assert len(removed) == len(later) == 1 and removed[0] in first
    assert hosts[later[0]] == hosts[removed[0]]
    ran = [event["Task Info"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    assert any(task["Executor ID"] == later[0] and not task["Failed"] for task in ran)


def test_hosts_import_the_package_that_was_sent(cluster: Cluster, folder: Path) -> None:
    found = {path.name: path.read_text() for path in (cluster.folder / "found").iterdir()}
    assert set(found) == set(cluster.hosts)
    for host, origin in found.items():
        assert Path(origin).is_relative_to(cluster.folder / host)
        assert origin.endswith("/anabranch_package/anabranch/__init__.py")
