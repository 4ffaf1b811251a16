from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

import anabranch.apps.kafka.topics as topics
from anabranch.errors import InputError

SERVERS = {"bootstrap.servers": "h:9092"}


@pytest.fixture
def asked(monkeypatch):
    """Have the question end in this error."""

    def fail(error: Exception) -> None:
        def raising(*_: object) -> None:
            raise error

        monkeypatch.setattr(topics, "_asked", raising)
        monkeypatch.setattr(topics.SparkContext, "_active_spark_context", SimpleNamespace(_jvm=None))

    return fail


def test_without_a_java_of_ours_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(topics.SparkContext, "_active_spark_context", None)
    assert topics.topics_of(SERVERS) is None


def test_a_log_in_that_fails_is_left_to_spark_to_tell(asked):
    asked(RuntimeError("SaslAuthenticationException: no"))
    assert topics.topics_of(SERVERS) is None


def test_a_broker_that_does_not_answer_is_named_with_what_to_look_at(asked):
    asked(RuntimeError("java.util.concurrent.TimeoutException"))
    with pytest.raises(InputError, match=r"^h:9092 takes connections and gives no answer; .* security\.protocol"):
        topics.topics_of(SERVERS)
