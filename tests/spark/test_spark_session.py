"""What a session of ours is made with, without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkRuntimeError

from anabranch.spark import spark_session
from anabranch.spark.spark_session import CHECKSUMS, ROCKSDB, _is_here, session

MASTERS = ("local[*]", "spark://10.0.0.1:7077")


class Builder:
    """Keeps what it is told; it stands for `SparkSession` and for its builder."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.builder = self

    def active(self) -> Any:
        raise PySparkRuntimeError("none is active")

    def master(self, master: str) -> Builder:
        return self.config("master", master)

    def appName(self, name: str) -> Builder:
        return self.config("name", name)

    def config(self, name: str, value: str) -> Builder:
        self.told[name] = value
        return self

    def getOrCreate(self) -> dict[str, str]:
        return self.told


@pytest.fixture
def compiled(monkeypatch) -> list[str]:
    """Kernels that were compiled and settings that were shipped; no session is active."""
    seen: list[str] = []
    monkeypatch.setattr(spark_session, "SparkSession", Builder())
    monkeypatch.setattr(spark_session, "_compile", lambda: seen.append("compiled"))
    monkeypatch.setattr(
        spark_session, "shipped", lambda settings, master: seen.append(master) or {**settings, "shipped": "true"}
    )
    for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return seen


@pytest.mark.parametrize("master", MASTERS)
def test_a_session_has_what_balanced_queries_need(compiled, master):
    made: Any = session("mine", master=master)
    assert (made["master"], made["name"]) == (master, "mine")
    assert made["spark.sql.streaming.stateStore.providerClass"] == ROCKSDB
    assert made["spark.python.daemon.module"] == "anabranch.spark.daemon"
    assert made["spark.ui.enabled"] == made["spark.ui.showConsoleProgress"] == "false"
    assert made["spark.log.level"] == "ERROR"
    assert [made[name] for name in CHECKSUMS] == ["true"] * 2


def test_partitions_and_memory_are_chosen_on_one_machine_only(compiled, monkeypatch):
    asked = ("spark.sql.shuffle.partitions", "spark.driver.memory", "spark.sql.execution.python.udf.buffer.size")
    for n_cpus, n_partitions in ((1, 2), (3, 6), (64, 8), (None, 8)):
        monkeypatch.setattr(spark_session.os, "cpu_count", lambda n_cpus=n_cpus: n_cpus)
        made: Any = session()
        assert [made[name] for name in asked] == [str(n_partitions), "4g", str(1 << 20)]
        assert made["spark.buffer.size"] == str(1 << 20)
        assert made["master"] == "local[*]"
    assert not compiled
    spark_session.SparkSession.told.clear()  # type: ignore[attr-defined]
    assert not {*asked, "spark.buffer.size"} & set(session(master=MASTERS[1]))  # type: ignore[call-overload]


def test_what_is_asked_for_comes_before_what_we_would_choose(compiled):
    made: Any = session(spark_ui_enabled="true", spark_driver_memory="8g")
    assert (made["spark.ui.enabled"], made["spark.driver.memory"]) == ("true", "8g")


def test_a_cluster_gets_the_package_with_its_kernels_compiled(compiled):
    made: Any = session(master=MASTERS[1])
    assert made["shipped"] == "true"
    assert compiled == ["compiled", MASTERS[1]]


def test_the_driver_keeps_to_loopback_where_the_master_does(compiled):
    for master in ("local[*]", "local", "spark://127.0.0.1:7077", "spark://localhost:7077", "spark://127.0.0.2:1"):
        assert _is_here(master)
    for master in ("yarn", "spark://10.0.0.1:7077", "spark://host:7077", "k8s://https://127.example:443"):
        assert not _is_here(master)
    session(master=MASTERS[1])
    assert "SPARK_LOCAL_IP" not in spark_session.os.environ
    session()
    assert spark_session.os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    interpreters = [spark_session.os.environ[name] for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")]
    assert interpreters == [spark_session.sys.executable] * 2


@pytest.mark.spark
def test_a_session_that_exists_says_what_it_ignores(spark, caplog):
    assert session("mine") is spark
    assert caplog.messages == []
    assert session(master="local[7]", spark_driver_memory="9g") is spark
    (said,) = caplog.messages
    assert said.endswith("these are ignored: master, spark_driver_memory")
