"""A standalone Spark cluster on this machine, every host on a loopback address of its own.

``python -m dev.cluster start`` leaves one running and prints its master's URL; ``stop`` ends it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pyspark

from dev import SHORT_LIVED
from dev.links import Links

FOLDER = Path(__file__).parents[1] / ".cluster"
_PROCESSES = "processes.json"
_START_S = 60


@dataclass
class Cluster:
    """One master and a Spark worker on each of `n_hosts` hosts: 127.0.0.2, 127.0.0.3 and so on.

    As a context manager it ends with the block.

    Parameters
    ----------
    folder
        For logs, executors and their blocks.
    n_hosts, cores, memory
        Hosts, and what each of them offers.
    environment
        More variables of every process, which executors inherit.
    links
        Hosts in network namespaces to run on instead, which are there as long as the cluster is.
    """

    folder: Path
    n_hosts: int = 3
    cores: int = 1
    memory: str = "1g"
    environment: Mapping[str, str] = field(default_factory=dict)
    links: Links | None = None
    master: str = ""
    processes: list[psutil.Process] = field(default_factory=list)

    @property
    def hosts(self) -> list[str]:
        """Addresses of the hosts."""
        return self.links.hosts if self.links else [f"127.0.0.{number}" for number in range(2, 2 + self.n_hosts)]

    @property
    def own_host(self) -> str:
        """Address of the master, and of a driver on this machine."""
        return self.links.gateway if self.links else "127.0.0.1"

    def __enter__(self) -> Cluster:
        try:
            self._start("master", self.own_host, "org.apache.spark.deploy.master.Master", "--port", "0")
            self.master = self._said("master", r"Starting Spark master at (spark://\S+)")
            for host in self.hosts:
                self.start_worker(host)
            for host in self.hosts:
                self._said(host, r"(Successfully registered) with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            end(process)

    def start_worker(self, host: str) -> None:
        """Start the Spark worker of a host."""
        options = ["--cores", str(self.cores), "--memory", self.memory, "--work-dir", str(self.folder / host)]
        self._start(host, host, "org.apache.spark.deploy.worker.Worker", *options, self.master)

    def kill_worker(self, host: str) -> None:
        """End a host's Spark worker and its executors, as a power cut would."""
        (process,) = (one for one in self.processes if _is_worker(one, host))
        end(process)
        self.processes.remove(process)

    def _start(self, name: str, host: str, main: str, *options: str) -> None:
        if self.links is None:
            _check_address(host)
        spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        variables = {
            "PYSPARK_PYTHON": sys.executable,
            # Web pages, too, are served on this address only.
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
            "SPARK_LOCAL_DIRS": str(self.folder / "blocks"),
            # It would listen on a fixed port.
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        within = self.links.command(host) if self.links else []
        command = [*within, str(spark_class), main, "--host", host, "--webui-port", "0", *options]
        with (self.folder / f"{name}.log").open("wb") as log:
            started = psutil.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables, **self.environment},
                # It outlives the terminal that it was started from.
                start_new_session=True,
            )
        self.processes.append(started)

    def _said(self, name: str, pattern: str) -> str:
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            text = (self.folder / f"{name}.log").read_text(errors="replace")
            if found := re.search(pattern, text):
                return found[1]
            time.sleep(0.1)
        raise TimeoutError(f"{name} did not start: {text[-2000:]}")


def _is_worker(process: psutil.Process, host: str) -> bool:
    try:
        command = process.cmdline()
    except psutil.NoSuchProcess:
        return False
    return "org.apache.spark.deploy.worker.Worker" in command and host in command


def _check_address(host: str) -> None:
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
    except OSError as error:
        raise SystemExit(
            f"{host} must be an address of this machine: {error}; on macOS: sudo ifconfig lo0 alias {host}"
        ) from None


def end(process: psutil.Process) -> None:
    """Kill a process and all that it started, unless it has ended: its number may then be another's."""
    try:
        family = [*process.children(recursive=True), process] if process.is_running() else []
    except psutil.NoSuchProcess:
        family = []
    for one in family:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=30)


def start(folder: Path, *, n_hosts: int, cores: int, memory: str) -> str:
    """Leave a cluster running; gives its master's URL."""
    if any(process.is_running() for process in _running(folder)):
        raise SystemExit(f"a cluster is running already, see {folder}; end it first: make cluster-stop")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cluster = Cluster(folder, n_hosts, cores, memory).__enter__()
    known = {"master": cluster.master, "processes": [[one.pid, one.create_time()] for one in cluster.processes]}
    (folder / _PROCESSES).write_text(json.dumps(known))
    return cluster.master


def stop(folder: Path) -> int:
    """End what `start` left running; gives the number of processes that were."""
    found = [process for process in _running(folder) if process.is_running()]
    for process in reversed(found):
        end(process)
    (folder / _PROCESSES).unlink(missing_ok=True)
    return len(found)


def _running(folder: Path) -> list[psutil.Process]:
    """The processes that `start` wrote down: a number that has become another's since is none of them."""
    path = folder / _PROCESSES
    found = []
    for pid, created in json.loads(path.read_text())["processes"] if path.exists() else []:
        try:
            process = psutil.Process(pid)
        except psutil.NoSuchProcess:
            continue
        if process.create_time() == created:
            found.append(process)
    return found


def main() -> None:
    """Start or stop the cluster of this folder."""
    parser = argparse.ArgumentParser(prog="python -m dev.cluster", description=__doc__)
    parser.add_argument("what", choices=["start", "stop"])
    parser.add_argument("--workers", type=int, default=3, help="hosts with a Spark worker (default 3)")
    parser.add_argument("--cores", type=int, default=1, help="cores of each (default 1)")
    parser.add_argument("--memory", default="1g", help="memory of each (default 1g)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for logs and process ids (default .cluster)")
    given = parser.parse_args()
    if not 1 <= given.workers <= 250:
        parser.error(f"--workers must be from 1 to 250, got {given.workers}")
    if given.what == "start":
        print(start(given.folder, n_hosts=given.workers, cores=given.cores, memory=given.memory))
    else:
        print(f"{stop(given.folder)} processes ended")


if __name__ == "__main__":
    main()
