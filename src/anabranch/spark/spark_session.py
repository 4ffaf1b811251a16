"""A Spark session that just works: local, or on a cluster that knows nothing of anabranch."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from anabranch.spark.shipping import shipped

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHECKSUMS = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)


def session(app_name: str = "anabranch", *, master: str | None = None, **conf: str) -> SparkSession:
    """The session that is active, or a new one with everything set that balanced queries need.

    A session that exists is returned as it is: nothing in it is overridden. A new one serves no web page (Spark's own,
    on port 4040, comes with ``spark_ui_enabled="true"``), and binds to the loopback address unless the master is on
    another machine, whose executors must be able to reach the driver.

    To a cluster the package is shipped as an archive, with the kernels that are compiled; numba, numpy and pyarrow must
    be there.

    Parameters
    ----------
    app_name, master
        As in Spark; the master is ``local[*]`` unless told otherwise.
    **conf
        More settings, with underscores for dots: ``spark_driver_memory="8g"``.
    """
    with suppress(PySparkException):
        return SparkSession.active()
    master = master or "local[*]"
    # Python workers start the system's python3 unless told, and a host name may resolve to an outside interface.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if _is_here(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(app_name)
    settings = {**_defaults(master), **{name.replace("_", "."): value for name, value in conf.items()}}
    if not master.startswith("local"):
        _compile()
        settings = shipped(settings, master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _is_here(master: str) -> bool:
    host = urlsplit(master).hostname or ""
    return master.startswith("local") or host == "localhost" or host.startswith("127.")


def _compile() -> None:
    """Have the kernels that nearly every query runs compiled before they are shipped: here once, not on every host."""
    from anabranch.spark.daemon import load_kernels

    load_kernels()


def _defaults(master: str) -> dict[str, str]:
    settings = {name: "true" for name in CHECKSUMS} | {
        "spark.log.level": "ERROR",
        # Python workers are forked from a process that has loaded numba and the kernels.
        "spark.python.daemon.module": "anabranch.spark.daemon",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        # Each shuffle partition of a stateful query is a state store: many of them cost seconds a batch on one machine.
        settings["spark.sql.shuffle.partitions"] = str(min(8, 2 * (os.cpu_count() or 4)))
        settings["spark.driver.memory"] = "4g"
        # Unix sockets would be some 10 % faster, but Spark's own daemon prints a traceback for every worker it leaves.
        settings["spark.sql.execution.python.udf.buffer.size"] = settings["spark.buffer.size"] = str(1 << 20)
    return settings
