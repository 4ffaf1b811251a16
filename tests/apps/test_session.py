from __future__ import annotations

import subprocess
import sys
from socketserver import BaseServer

import pytest

pytest.importorskip("pyspark")

from pyspark import accumulators, java_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from anabranch.apps import own_session
from anabranch.apps.session import _deaf_java, _quieten
from anabranch.errors import InputError


def test_java_ignores_the_signal_that_ends_a_run_after_its_batch():
    ask = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGTERM) is signal.SIG_IGN)"]
    popen = java_gateway.Popen
    with _deaf_java():
        deaf = java_gateway.Popen(ask, stdout=subprocess.PIPE, text=True)
    assert deaf.communicate()[0] == "True\n"
    assert java_gateway.Popen is popen


def test_java_that_ends_before_python_leaves_no_traceback(monkeypatch, capsys):
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        monkeypatch.setattr(server, "handle_error", BaseServer.handle_error)
    _quieten()
    server = accumulators.AccumulatorTCPServer(("127.0.0.1", 0), None, "token")  # type: ignore[arg-type]
    server.handle_error(None, None)
    server.server_close()
    assert capsys.readouterr().err == ""


def test_a_query_that_spark_refuses_leaves_no_log(capsys):
    _quieten()
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).exception("refused", errorClass="UNRESOLVED_COLUMN")
    assert capsys.readouterr().err == ""


def test_a_master_that_does_not_answer_is_named_before_spark_starts(monkeypatch):
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    refused = pytest.raises(InputError, match=r"no Spark master answers at spark://127\.0\.0\.1:1; start one there")
    with refused, own_session("none", "spark://127.0.0.1:1"):
        pass
