"""What a broker says of its topics, asked through the Kafka client that Spark's connector brings along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import SparkContext

from anabranch.errors import InputError

_ANSWER_S = 30


def topics_of(properties: Mapping[str, str]) -> set[str] | None:
    """Names of the topics that a client with these properties may see; None where nobody can be asked.

    Why nobody can be asked, a wrong password for instance, is left to Spark's connector to tell: it asks the same, and
    says so at once. Only a broker that never answers would keep it waiting for minutes.

    Parameters
    ----------
    properties
        Those of Kafka's own clients in Java, ``bootstrap.servers`` among them.
    """
    context = SparkContext._active_spark_context
    if context is None:
        return None
    try:
        return _asked(context._jvm, properties)
    except Exception as error:  # py4j has one class for whatever Java throws, and another for a class that is not there
        if "TimeoutException" not in str(error):
            return None
        raise InputError(
            f"{properties['bootstrap.servers']} takes connections and gives no answer; see that it is a Kafka broker, "
            "and that security.protocol in --kafka-properties is the listener's"
        ) from None


def _asked(jvm: Any, properties: Mapping[str, str]) -> set[str]:
    given = jvm.java.util.Properties()
    for name, value in properties.items():
        given.setProperty(name, value)
    client = jvm.org.apache.kafka.clients.admin.AdminClient.create(given)
    try:
        found = client.listTopics().names().get(_ANSWER_S, jvm.java.util.concurrent.TimeUnit.SECONDS)
        return {str(name) for name in found}
    finally:
        client.close(jvm.java.time.Duration.ZERO)
