"""Which Python workers will run, asked before a query starts; without Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkFiles

import anabranch
from anabranch.errors import ConfigError
from anabranch.spark.interpreter import check_interpreter

SOURCES = str(Path(anabranch.__file__).parents[1])


class Session:
    """As much of a session as is asked."""

    def __init__(self, path: Path, **given: Any) -> None:
        self.given = {"master": "local[2]", "python": "python3", "sent": [], "PYTHONPATH": "", "settings": {}} | given
        variables = {"PATH": str(path), "PYTHONPATH": self.given["PYTHONPATH"]}
        system = SimpleNamespace(getenv=lambda: variables, getProperty=lambda name: str(path))
        self.sparkContext = SimpleNamespace(
            master=self.given["master"],
            pythonExec=self.given["python"],
            environment={},
            getConf=lambda: SimpleNamespace(contains=lambda name: name in self.given["settings"]),
            _python_includes=self.given["sent"],
            _jvm=SimpleNamespace(System=system),
        )
        self.conf = self.given["settings"]


@pytest.fixture
def bare(tmp_path, monkeypatch) -> Path:
    """A folder with a python3 that has no site packages, which is also where files are sent."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    return tmp_path


def test_a_python_that_lacks_what_tasks_import_is_refused_with_the_remedy(bare):
    message = (
        rf"^workers run {bare}/python3 where PYSPARK_PYTHON is not set, and it has no anabranch, numba, numpy, "
        r'pyarrow; before the session is made set os\.environ\["PYSPARK_PYTHON"\] = sys\.executable, or let anabranch'
    )
    with pytest.raises(ConfigError, match=message):
        check_interpreter(Session(bare))
    with pytest.raises(ConfigError, match="it has no numba, numpy, pyarrow;"):
        check_interpreter(Session(bare, PYTHONPATH=SOURCES))


def test_what_was_sent_to_workers_is_found(bare):
    for name in ("anabranch", "numpy", "pyarrow"):
        (bare / f"{name}.py").touch()
    (bare / "numba.zip").mkdir()
    (bare / "numba.zip" / "numba.py").touch()
    with pytest.raises(ConfigError, match="it has no numba;"):
        check_interpreter(Session(bare))
    check_interpreter(Session(bare, sent=["numba.zip"]))


@pytest.mark.parametrize(
    "given",
    [
        {"master": "spark://10.0.0.1:7077"},
        {"master": "local-cluster[2,1,1024]"},
        {"python": "/opt/python"},
        {"settings": {"spark.sql.execution.pyspark.python": "/opt/python"}},
        {"settings": {"spark.archives": "environment.tar.gz#environment"}},
    ],
)
def test_what_cannot_be_asked_is_taken_to_be_right(bare, given):
    check_interpreter(Session(bare, **given))


def test_a_session_over_connect_has_no_context():
    check_interpreter(object())
