from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.apps import Connection
from anabranch.errors import ConfigError, InputError

ROOT = Path(__file__).parents[2]
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
    with pytest.raises(ConfigError, match=r"reads certificates in PEM files only; set ssl\.truststore\.type=PEM"):
        Connection({"ssl.truststore.location": "ca.jks"}).for_librdkafka()


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
