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

from .cluster import DRIVERS, Driver
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
Event = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Takes the session only to be skipped where that is: without Java."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "found").mkdir()
    with Cluster(folder, environment={"ANABRANCH_TEST_FOUND": str(folder / "found")}) as running:
        yield running


@pytest.fixture(scope="module")
def folder(cluster: Cluster, tables: list[pa.Table], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two queries of one driver left: an executor is killed in the first, and has come back in the second."""
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
    assert Driver(folder, job, conf).run(queries=[KILLED, AFTERWARDS]) == {"killed": 0, "afterwards": 0}
    return folder


@pytest.fixture(scope="module")
def events(folder: Path) -> list[Event]:
    (log,) = (folder / "events").iterdir()
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_answers_are_those_of_a_plain_group_by(folder: Path, tables: list[pa.Table]) -> None:
    assert struck(folder / "killed") == {"worker-0"}
    for query in (KILLED, AFTERWARDS):
        assert answer(folder / query["name"]) == group_by(tables)


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
