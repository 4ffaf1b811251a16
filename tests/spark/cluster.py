"""Drivers in processes of their own, which do not outlive the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from dev.cluster import end

from dev import SHORT_LIVED

DRIVERS = Path(__file__).parent / "drivers"
# Long, because it only has to end what hangs.
_TIMEOUT_S = 1200
_CONF = {
    "spark_driver_memory": "1g",
    "spark_driver_extraJavaOptions": SHORT_LIVED,
    "spark_executor_extraJavaOptions": SHORT_LIVED,
    "spark_ui_enabled": "false",
    "spark_sql_shuffle_partitions": "4",
    "spark_sql_execution_arrow_maxRecordsPerBatch": "2000",
    # A lost executor's blocks are gone for good: asking for them again is only waiting.
    "spark_shuffle_io_maxRetries": "1",
    "spark_shuffle_io_retryWait": "1s",
    "spark_executorEnv_PYTHONPATH": str(DRIVERS),
}


def environment() -> dict[str, str]:
    """Of every driver: this interpreter in the Python workers too, which find the drivers' modules."""
    path = os.pathsep.join([str(DRIVERS), *filter(None, [os.environ.get("PYTHONPATH")])])
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": path}
    return {**os.environ, **python, "SPARK_LOCAL_IP": "127.0.0.1"}


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
            command = [sys.executable, str(DRIVERS / "drive.py"), str(path)]
            process = psutil.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment())
            try:
                code = process.wait(_TIMEOUT_S)
            except psutil.TimeoutExpired:
                code = 1
            finally:
                end(process)
        return code, log.read_text(errors="replace")
