from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.apps import (
    Balancing,
    Checkpoint,
    Connection,
    FolderSink,
    KafkaAddress,
    KafkaSink,
    KafkaSource,
    Pipeline,
    WordCount,
)
from anabranch.apps.kafka.produce import Produce
from anabranch.apps.kafka.read_topic import ReadTopic
from anabranch.errors import ConfigError, InputError, QueryError
from anabranch.groupings import KeyGrouping
from anabranch.streams import Zipf

ROOT = Path(__file__).parents[3]
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="sword\\"fish";'
PROPERTIES = """
# where the log-in is
security.protocol = SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="me" password="swordfish";
"""


def test_properties_come_from_a_file_and_the_environment_goes_before_it(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(PROPERTIES)
    environ = {"ANABRANCH_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512", "ANABRANCH_OTHER": "x", "PATH": "/bin"}
    for loaded in (
        Connection.load(str(file), environ),
        Connection.load(environ=environ | {"ANABRANCH_KAFKA_PROPERTIES": str(file)}),
    ):
        assert loaded.options() == {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="me" password="swordfish";',
        }
    assert Connection.load(environ={}) == Connection()


def test_neither_text_nor_errors_show_a_value():
    connection = Connection({"sasl.jaas.config": LOGIN, "security.protocol": "SASL_SSL", "ssl.key.password": "fish"})
    assert (
        repr(connection)
        == str(connection)
        == ("Connection(sasl.jaas.config=***, security.protocol=***, ssl.key.password=***)")
    )
    assert connection.redacted(f"cannot log in over SASL_SSL with {LOGIN}") == "cannot log in over SASL_SSL with ***"
    assert connection.redacted('wrong password sword\\"fish for me') == "wrong password *** for ***"
    assert connection.redacted("key fish") == "key ***"
    assert connection.redacted("no PlainLoginModule is required") == "no PlainLoginModule is required"
    unquoted = Connection({"sasl.jaas.config": "Module my-halibut password=mackerel;", "ssl.a.location": "/ca.pem"})
    assert unquoted.redacted("flag 'my-halibut', not mackerel; see /ca.pem") == "flag '***', not ***; see /ca.pem"
    assert Connection({"ssl.key.password": ""}).redacted("as it is") == "as it is"
    assert Connection({"sasl.username": "al"}).redacted("Local: no user al") == "Local: no user ***"


def test_librdkafka_gets_the_same_under_its_own_names():
    stores = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "me.pem",
        "ssl.key.password": "fish",
    }
    assert Connection(stores).for_librdkafka() == {
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.location": "me.pem",
        "ssl.key.password": "fish",
    }
    inline = {"ssl.truststore.certificates": "ca", "ssl.keystore.certificate.chain": "mine", "ssl.keystore.key": "key"}
    types = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    assert Connection(inline | types).for_librdkafka() == {
        "ssl.ca.pem": "ca",
        "ssl.certificate.pem": "mine",
        "ssl.key.pem": "key",
    }
    unchecked = {"ssl.endpoint.identification.algorithm": ""}
    assert Connection(unchecked).for_librdkafka() == {"ssl.endpoint.identification.algorithm": "none"}
    with pytest.raises(ConfigError, match=r"reads certificates in PEM files only; set ssl\.truststore\.type=PEM"):
        Connection({"ssl.truststore.location": "ca.jks"}).for_librdkafka()


def test_a_log_in_for_java_is_translated_for_librdkafka_or_refused():
    assert Connection({"sasl.jaas.config": LOGIN}).for_librdkafka() == {
        "sasl.username": "me",
        "sasl.password": 'sword"fish',
    }
    assert Connection({"sasl.jaas.config": LOGIN}).redacted('no sword"fish') == "no ***"
    kerberos = {"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required keyTab=halibut;"}
    with pytest.raises(ConfigError, match=r"add sasl\.username and sasl\.password for anabranch produce") as refused:
        Connection(kerberos).for_librdkafka()
    assert "halibut" not in str(refused.value)
    own = {"sasl.username": "I", "sasl.password": "pike"}
    assert Connection(kerberos | own).for_librdkafka() == own


def test_librdkafka_takes_what_it_gets():
    confluent_kafka = pytest.importorskip("confluent_kafka")
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": LOGIN}
    producing = Produce(KafkaAddress("127.0.0.1:1", "t"), Zipf(1, 1, 1.0), connection=Connection(properties))
    settings = producing._settings()
    assert settings | {"sasl.password": 'sword"fish', "security.protocol": "SASL_PLAINTEXT"} == settings
    confluent_kafka.Producer(settings)


def test_a_file_that_cannot_be_read_is_an_error_that_shows_no_line_of_it(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the Kafka properties in .*: FileNotFoundError; name a file"):
        Connection.load(str(tmp_path / "none"))
    (tmp_path / "odd").write_text("sasl.mechanism=PLAIN\nswordfish\n")
    with pytest.raises(InputError, match=r"must have lines such as .*; line 2 is another") as refused:
        Connection.load(str(tmp_path / "odd"))
    assert "swordfish" not in str(refused.value)


def test_brokers_come_from_the_address():
    with pytest.raises(ConfigError, match=r"comes from the address kafka://HOST:PORT/TOPIC"):
        Connection({"bootstrap.servers": "a:1"})


def listener(broker, tls):
    """The address of one that wants a log-in, and the properties that open it."""
    if not tls:
        return broker.login_servers, PROPERTIES
    scram = PROPERTIES.replace("SASL_PLAINTEXT", "SASL_SSL").replace("=PLAIN", "=SCRAM-SHA-512")
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={broker.certificate}\n"
    return broker.secure_servers, scram.replace("plain.PlainLogin", "scram.ScramLogin") + trust


@pytest.mark.spark
@pytest.mark.parametrize("tls", [False, True], ids=["PLAIN", "SCRAM over TLS"])
def test_a_log_in_opens_a_broker_to_producer_reader_and_writer(spark, broker, tmp_path, tls):
    from dev.kafka import PASSWORD, USER

    from dev import topics

    file = tmp_path / "client.properties"
    servers, properties = listener(broker, tls)
    file.write_text(properties.replace('"me"', f'"{USER}"').replace("swordfish", PASSWORD))
    known, out = Connection.load(str(file), {}), topics.create(broker.servers, f"opened-out-{tls}")
    address = KafkaAddress(servers, f"opened-{tls}")
    done = Produce(address, Zipf(50, 5, 1.0), format="text", partitions=1, connection=known).run()
    assert (done.sent, done.failed) == (50, 0)
    pipeline = Pipeline(
        WordCount(),
        KafkaSource(f"kafka://{address.servers}/{address.topic}?format=text", connection=known),
        KafkaSink(f"kafka://{address.servers}/{out}", "word", known),
        Checkpoint(str(tmp_path / "state")),
        Balancing(KeyGrouping(), 2),
        once=True,
    )
    pipeline.run(spark)
    assert sum(json.loads(record.value)["count"] for record in topics.read(broker.servers, out)) == 50
    written = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert PASSWORD.encode() not in written
    with pytest.raises(InputError, match=f"{servers} has no topic closed, or none that this user may see"):
        ReadTopic(KafkaAddress(servers, "closed"), known, Checkpoint(str(tmp_path / "closed"))).check()

    other = LOGIN.replace("plain.PlainLogin", "scram.ScramLogin") if tls else LOGIN
    wrong = Connection(dict(known.properties) | {"sasl.jaas.config": other})
    with pytest.raises(QueryError, match=r"SASL authentication error: .*; see that security\.protocol") as refused:
        Produce(address, Zipf(50, 5, 1.0), connection=wrong).run()
    failing = replace(pipeline, source=replace(pipeline.source, connection=wrong))
    with pytest.raises(QueryError, match=r"word-count failed: .*Authentication failed") as failed:
        failing.run(spark)
    for error in (refused.value, failed.value):
        assert not {"fish", PASSWORD} & set(re.findall(r"\w+", str(error)))


@pytest.mark.spark
def test_a_broker_whose_certificate_nobody_vouches_for_gets_no_log_in(spark, broker, tmp_path):
    file = tmp_path / "client.properties"
    servers, properties = listener(broker, tls=True)
    file.write_text(properties.partition("ssl.truststore")[0])
    stranger = Connection.load(str(file), {})
    with pytest.raises(QueryError, match=r"certificate verify failed.*; see that security\.protocol"):
        Produce(KafkaAddress(servers, "unseen"), Zipf(50, 5, 1.0), connection=stranger).run()
    with pytest.raises((InputError, QueryError), match="certificat"):
        Pipeline(
            WordCount(),
            KafkaSource(f"kafka://{servers}/unseen?format=text", connection=stranger),
            FolderSink(str(tmp_path / "answers")),
            Checkpoint(str(tmp_path / "state")),
            Balancing(KeyGrouping(), 2),
            once=True,
        ).run(spark)


@pytest.mark.spark
def test_a_run_that_fails_shows_no_secret_anywhere(broker, tmp_path):
    from dev.kafka import connector_jars

    from dev import topics

    topic = topics.create(broker.servers, "locked")
    # Kafka's own complaint about this log-in repeats parts of it.
    secrets = ("swordfish", "halibut", "mackerel")
    login = f"{secrets[0]} optional-{secrets[1]} password={secrets[2]}"
    environ = os.environ | {"ANABRANCH_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "SPARK_LOCAL_IP": "127.0.0.1"}
    address = f"kafka://{broker.servers}/{topic}"
    asked = ["run", "word-count", "--source", address, "--checkpoint", str(tmp_path / "state"), "--once"]
    asked += ["--jars", str(connector_jars()), "--workers", "2", "--grouping", "key", "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-c", "from anabranch.cli import main; main()", *asked],
        env=environ | {"ANABRANCH_KAFKA_SASL_JAAS_CONFIG": login, "ANABRANCH_KAFKA_SASL_MECHANISM": "PLAIN"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Error: word-count failed: " in done.stderr
    assert "login module control flag '***'" in done.stderr.lower()
    shown = done.stdout + done.stderr
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert written
    for secret in secrets:
        assert secret not in shown
        assert secret.encode() not in written
