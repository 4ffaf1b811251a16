from __future__ import annotations

import signal
import subprocess
import sys
from socketserver import BaseServer
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext, accumulators, java_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import anabranch.apps.run.own_session as session_module
from anabranch.apps import end_java, own_session
from anabranch.apps.run.own_session import _deaf_java, _quieten
from anabranch.errors import InputError


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_java_ignores_the_signals_that_end_a_run_after_its_batch(name):
    ask = [sys.executable, "-c", f"import signal; print(signal.getsignal(signal.{name}) is signal.SIG_IGN)"]
    popen = java_gateway.Popen
    with _deaf_java():
        deaf = java_gateway.Popen(ask, stdout=subprocess.PIPE, text=True)
    assert deaf.communicate()[0] == "True\n"
    assert java_gateway.Popen is popen


SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_java_that_is_starting_ends_with_whoever_started_it():
    with pytest.raises(SystemExit), _deaf_java():
        java = java_gateway.Popen(SLEEP)
        raise SystemExit(143)
    assert java.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("program", "code"),
    [("import sys; sys.stdin.read(); sys.exit(7)", 7), ("import time; time.sleep(60)", -signal.SIGKILL)],
    ids=["ends by itself", "busy"],
)
def test_java_is_ended_with_or_without_its_consent(monkeypatch, program, code):
    java = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    monkeypatch.setattr(session_module, "_MOMENT_S", 20.0 if code == 7 else 0.1)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java))
    end_java()
    assert java.returncode == code


def test_a_java_of_somebody_else_is_left_alone(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", None)
    end_java()


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
