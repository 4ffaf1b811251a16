"""What every test may use: one hypothesis profile, and one Spark session per run, started on first use.

With `-n` several processes share the run. Tests that kill processes mostly wait, so they go on beside the others.
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from dev.kafka import Broker
    from pyspark.sql import SparkSession

# Scripts that make test data are not tests, and --doctest-modules would import them.
collect_ignore = ["data"]

# The first example of a property may compile numba kernels: no time limit says anything about the property.
settings.register_profile(
    "anabranch",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make test-random`: other examples each time. A failure prints what repeats it.
settings.register_profile("random", settings.get_profile("anabranch"), derandomize=False, print_blob=True)
# `make mutants`: that a test fails is all that is asked.
settings.register_profile(
    "mutants", settings.get_profile("anabranch"), derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("anabranch")


@pytest.hookimpl(tryfirst=True)  # xdist looks at the groups in its own
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the session, and those of every other file, in one process each; begin with what lasts."""
    if not hasattr(config, "workerinput"):
        return

    def of_session(item: pytest.Item) -> bool:
        return not {"spark", "broker"}.isdisjoint(getattr(item, "fixturenames", ()))

    items.sort(key=lambda item: 0 if of_session(item) else 1 if item.get_closest_marker("slow") else 2)
    for item in items:
        file = f"{item.path.parent.name}/{item.path.stem}"
        item.add_marker(pytest.mark.xdist_group("session" if of_session(item) else file))


@pytest.fixture(scope="session")
def java() -> None:
    """Skip the test where Spark cannot run; for those that start their own drivers."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which(str(Path(home) / "bin" / "java") if home else "java") is None:
        pytest.skip("NO JAVA FOUND, SO NO SPARK TEST RUNS: install Java 17 or later (`make java`) or set JAVA_HOME")
    pytest.importorskip("pyspark", reason="NO PYSPARK FOUND, SO NO SPARK TEST RUNS: install the extra `spark`")


def _connector(request: pytest.FixtureRequest) -> str:
    """Jars of Spark's Kafka connector, where a test of this run needs a broker and they can be had."""
    if not any("broker" in getattr(item, "fixturenames", ()) for item in request.session.items):
        return ""
    from dev import kafka

    try:
        return ",".join(str(jar) for jar in sorted(kafka.connector_jars().glob("*.jar")))
    except kafka.KafkaMissing:
        return ""


PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[None]:
    """States in RocksDB, without which `transformWithState` does not run."""
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    yield
    spark.conf.set(PROVIDER, str(before))


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """Skip the test where neither broker nor connector can be had; for those that start their own broker."""
    from dev import kafka

    pyspark = pytest.importorskip("pyspark", reason="NO PYSPARK FOUND, SO NO KAFKA TEST RUNS")
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2):
        pytest.skip("NO KAFKA TEST RUNS: the connector that dev/kafka.py fetches needs Spark 4.2 or later")
    try:
        kafka.broker_jars()
        kafka.connector_jars()
    except kafka.KafkaMissing as error:
        pytest.skip(f"NO KAFKA FOUND, SO NO KAFKA TEST RUNS: {error}")


@pytest.fixture(scope="session")
def broker(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The run's only Kafka broker, a real one."""
    from dev import kafka

    with pytest.MonkeyPatch.context() as patch:
        # One name of a cluster in 64 begins with a hyphen: here always.
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=b"\xf8" + bytes(15)))
        started = kafka.Broker(tmp_path_factory.mktemp("kafka"))
        started.start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def spark(
    java: None, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SparkSession]:
    """The run's only Spark session, local with two cores; the test that uses it carries the marker ``spark``."""
    # Python workers start the system's python3, and the driver binds to an outside interface, unless told before start.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    from dev import SHORT_LIVED

    session = (
        SparkSession.builder.master("local[2]")
        .appName("anabranch-tests")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED)
        .config("spark.jars", _connector(request))
        # Python workers are forked from a process that has loaded numba: without it, loading takes most of the time.
        .config("spark.python.daemon.module", "anabranch.spark.daemon")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        # True by default since 4.2.
        .config("spark.sql.shuffle.orderIndependentChecksum.enabled", "true")
        .config("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "true")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield session
    session.stop()
