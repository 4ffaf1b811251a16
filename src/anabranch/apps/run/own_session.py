"""The Spark session of a command: it is quiet, and ends with the command."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socketserver import BaseServer
from typing import Any

from pyspark import SparkContext, accumulators, java_gateway
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from anabranch.apps.kafka.answering import answering
from anabranch.apps.run.cause import root_cause
from anabranch.apps.run.java_lines import filtered_stderr
from anabranch.errors import InputError, QueryError
from anabranch.spark import listener, session

_MOMENT_S = 3.0


@contextmanager
def own_session(app_name: str, master: str | None = None, **conf: str) -> Iterator[SparkSession]:
    """A quiet session that ends with the block; or the one that is active, which is left as it is.

    The parameters are those of `anabranch.spark.session`.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    _check_master(master)
    _quieten()
    # The command that runs a query tells in one line what goes wrong in it.
    try:
        with _deaf_java():
            spark = session(app_name, master=master, spark_log_level="OFF", **conf)
    except PySparkException as error:
        raise QueryError(f"Spark did not start: {root_cause(error)}; its own lines, above, say more") from None
    try:
        yield spark
    finally:
        with suppress(Exception):  # a signal to the whole process group has ended the JVM already
            spark.stop()


@contextmanager
def _deaf_java() -> Iterator[None]:
    """Have a Java that is started here ignore SIGTERM and SIGHUP, as PySpark has it ignore Ctrl-C, and print no noise.

    A signal to the whole process group would otherwise end it in the middle of the batch that is to be finished. It
    ends when Python does; at once where Python is told to end before it has started.
    """
    gateway: Any = java_gateway
    popen = gateway.Popen
    started = []

    def start(*args: Any, preexec_fn: Callable[[], object] = _no, **kwargs: Any) -> Any:
        def before() -> None:
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            preexec_fn()

        started.append(popen(*args, preexec_fn=before, **{"stderr": stderr, **kwargs}))
        return started[-1]

    stderr = filtered_stderr()
    gateway.Popen = start
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        gateway.Popen = popen
        os.close(stderr)


def end_java() -> None:
    """End the Java of this process without waiting for what it does; it gets a moment to remove its files."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return
    with suppress(OSError, subprocess.TimeoutExpired):
        # It reads there to learn that Python has ended.
        process.stdin.close()
        process.wait(_MOMENT_S)
    process.kill()
    process.wait()


def _quieten() -> None:
    """Have nothing said when Java ends before Python does, or of a query that Spark refuses.

    The command that runs it says so in one line.
    """
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    listener.log.setLevel(logging.CRITICAL)
    for server in vars(accumulators).values():
        if isinstance(server, type) and issubclass(server, BaseServer):
            server.handle_error = _no  # type: ignore[method-assign,assignment]


def _no(*_: object) -> None:
    return None


def _check_master(master: str | None) -> None:
    """See that a standalone master can be reached; Spark would try for a minute and end in a traceback."""
    if master is not None and master.startswith("spark://") and not answering(master.removeprefix("spark://")):
        raise InputError(f"no Spark master answers at {master}; start one there, or correct the address")
