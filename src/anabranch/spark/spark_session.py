"""A Spark session that just works: local, or on a cluster that knows nothing of anabranch."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
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
log = logging.getLogger(__name__)


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
        More settings, with underscores for dots: ``spark_driver_memory="8g"``. A name with a dot is taken as it is:
        ``**{"spark.executorEnv.LD_LIBRARY_PATH": "/opt/lib"}``.
    """
    with suppress(PySparkException):
        active = SparkSession.active()
        if ignored := [*(["master"] if master else []), *conf]:
            log.warning("a session exists already and stays as it is, so these are ignored: %s", ", ".join(ignored))
        return active
    master = master or "local[*]"
    # Python workers start the system's python3 unless told, and a host name may resolve to an outside interface.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if _is_here(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName(app_name)
    options = {**_defaults(master), **dotted(conf)}
    if not master.startswith("local"):
        _compile()
        options = shipped(options, master)
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def dotted(conf: Mapping[str, str]) -> dict[str, str]:
    """Names as Spark has them; one that has a dot already may mean its underscores.

    Examples
    --------
    >>> dotted({"spark_driver_memory": "8g", "spark.executorEnv.LD_LIBRARY_PATH": "/opt/lib"})
    {'spark.driver.memory': '8g', 'spark.executorEnv.LD_LIBRARY_PATH': '/opt/lib'}
    """
    return {name if "." in name else name.replace("_", "."): value for name, value in conf.items()}


def _is_here(master: str) -> bool:
    host = urlsplit(master).hostname or ""
    return master.startswith("local") or host == "localhost" or host.startswith("127.")


def _compile() -> None:
    """Have the kernels that nearly every query runs compiled before they are shipped: here once, not on every host."""
    from anabranch.spark.daemon import load_kernels

    load_kernels()


def _defaults(master: str) -> dict[str, str]:
    options = {name: "true" for name in CHECKSUMS} | {
        "spark.log.level": "ERROR",
        # Python workers are forked from a process that has loaded numba and the kernels.
        "spark.python.daemon.module": "anabranch.spark.daemon",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        # Each shuffle partition of a stateful query is a state store. Many cost seconds per batch on one machine.
        options["spark.sql.shuffle.partitions"] = str(min(8, 2 * (os.cpu_count() or 4)))
        options["spark.driver.memory"] = "4g"
        # Unix sockets would be some 10 % faster, but Spark's own daemon prints a traceback for every worker it leaves.
        options["spark.sql.execution.python.udf.buffer.size"] = options["spark.buffer.size"] = str(1 << 20)
    return options
