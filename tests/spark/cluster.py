"""A standalone cluster on loopback addresses, and drivers in processes of their own; nothing outlives its owner."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyspark

_DRIVERS = Path(__file__).parent / "drivers"
# Long, because it only has to end what hangs.
_TIMEOUT_S = 1200
_CONF = {
    "spark_driver_memory": "1g",
    "spark_ui_enabled": "false",
    "spark_sql_shuffle_partitions": "4",
    "spark_sql_execution_arrow_maxRecordsPerBatch": "2000",
    # A lost executor's blocks are gone for good: asking for them again is only waiting.
    "spark_shuffle_io_maxRetries": "1",
    "spark_shuffle_io_retryWait": "1s",
}


def environment(address: str, **more: str) -> dict[str, str]:
    """Of every process here: this interpreter in the Python workers, which find the drivers' modules."""
    path = os.pathsep.join([str(_DRIVERS), *filter(None, [os.environ.get("PYTHONPATH")])])
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}
    return {**os.environ, **python, "SPARK_LOCAL_IP": address, **more}


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started, unless it has ended: its number may then be another's."""
    if process.poll() is not None:
        return
    try:
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        family = []
    for one in family:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait(30)


@dataclass
class Cluster:
    """One master and two workers of one core each, every one on a host of its own.

    Parameters
    ----------
    folder
        For logs and executors.
    """

    folder: Path
    master: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Cluster:
        try:
            self._start("master", "127.0.0.1", "org.apache.spark.deploy.master.Master", "--port", "0")
            self.master = self._said("master", r"Starting Spark master at (spark://\S+)")
            for host in ("127.0.0.2", "127.0.0.3"):
                options = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / host), self.master]
                self._start(host, host, "org.apache.spark.deploy.worker.Worker", *options)
            for host in ("127.0.0.2", "127.0.0.3"):
                self._said(host, r"(Successfully registered) with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            end(process)

    def _start(self, name: str, host: str, main: str, *options: str) -> None:
        spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
        more = {
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self.folder / "blocks"),
            # It would listen on a fixed port.
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        command = [str(spark_class), main, "--host", host, "--webui-port", "0", *options]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment(host, **more))
            )

    def _said(self, name: str, pattern: str) -> str:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            text = (self.folder / f"{name}.log").read_text()
            if found := re.search(pattern, text):
                return found[1]
            time.sleep(0.1)
        raise TimeoutError(f"{name} did not start: {text[-2000:]}")


@dataclass(frozen=True)
class Driver:
    """Runs jobs of queries in a process of its own, as often as the test wants them started.

    Parameters
    ----------
    folder
        For the job's files; a query keeps its checkpoint, ledger and sink in a folder of its name here.
    job
        As `drivers/drive.py` reads it.
    conf
        More settings of the session.
    """

    folder: Path
    job: dict[str, Any]
    conf: dict[str, str] = field(default_factory=dict)

    def run(self, *, die: tuple[str, int] | None = None, **changes: Any) -> dict[str, int] | None:
        """Restarts of each query when they came to their end; None when the driver was killed as it was told to be."""
        path = self.folder / "job.json"
        local = {"spark_local_dir": str(self.folder / "blocks")}
        job = {"folder": str(self.folder), "die": die, **self.job, **changes}
        path.write_text(json.dumps({**job, "conf": {**_CONF, **local, **self.conf}}))
        done = path.with_suffix(".done")
        done.unlink(missing_ok=True)
        code, said = self._run(path)
        if die and code == -9:
            return None
        if code or not done.exists():
            raise AssertionError(f"the driver ended with {code}, where it was told to die {die}:\n{said[-6000:]}")
        restarts: dict[str, int] = json.loads(done.read_text())
        return restarts

    def _run(self, path: Path) -> tuple[int, str]:
        log = self.folder / "driver.log"
        with log.open("wb") as out:
            command = [sys.executable, str(_DRIVERS / "drive.py"), str(path)]
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment("127.0.0.1"))
            try:
                code = process.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                code = 1
            finally:
                end(process)
        return code, log.read_text(errors="replace")
