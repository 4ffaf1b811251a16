"""A real Apache Kafka broker on this machine, and the jars of Spark's Kafka connector: `python -m dev.kafka start`.

Everything is in `.kafka/` of the project. Jars are fetched once, by the Ivy that PySpark ships.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from dev import SHORT_LIVED

HOME = Path(__file__).parents[1] / ".kafka"
PORT = 9092
KAFKA = "4.1.0"
# One by one and without what they depend on: not every package index has the connector's own dependencies.
CONNECTOR = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
    ("org.scala-lang.modules", "scala-parallel-collections_2.13", "1.2.0"),
)
# Of the listeners that want a log-in.
USER, PASSWORD = "tester", "barracuda"
_START_S = 60.0
_SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{login},SASL_SSL://127.0.0.1:{secure}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{login},SASL_SSL://127.0.0.1:{secure},\\
  CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,\\
  SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\\
  org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PKCS12
ssl.keystore.location={key}
ssl.keystore.password={password}
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
num.partitions=4
"""


class KafkaMissing(RuntimeError):
    """Neither fetched before nor to be fetched now; the message says why."""


def broker_jars() -> Path:
    """Folder with the broker's jars, fetched if they are not there."""
    return _fetched("broker", (("org.apache.kafka", "kafka_2.13", KAFKA),), transitive=True)


def connector_jars() -> Path:
    """Folder with the jars of Spark's connector, fetched if they are not there."""
    return _fetched("connector", CONNECTOR, transitive=False)


def _fetched(name: str, modules: Sequence[tuple[str, str, str]], *, transitive: bool) -> Path:
    """Jars under `name`; the folder gets its name when it is whole, so a fetch that broke off does not count.

    Whoever comes second waits: Ivy's cache is not made for two at once.
    """
    folder = HOME / name
    HOME.mkdir(exist_ok=True)
    with _locked(HOME), tempfile.TemporaryDirectory(dir=HOME, prefix=f"{name}-") as made:
        if folder.is_dir():
            return folder
        ivy_file = Path(made) / "ivy.xml"
        ivy_file.write_text(_ivy_xml(modules, transitive))
        ivy = [java(), "-jar", str(_ivy()), "-cache", str(HOME / "cache"), "-ivy", str(ivy_file)]
        # Some jars call themselves bundles.
        ivy += ["-types", "jar", "bundle", "-retrieve", f"{made}/jars/[artifact]-[revision].[ext]"]
        done = subprocess.run(ivy, capture_output=True, text=True, check=False)
        wanted = [Path(made) / "jars" / f"{artifact}-{revision}.jar" for _, artifact, revision in modules]
        if done.returncode or not all(jar.exists() for jar in wanted):
            lines = [line.strip() for line in done.stdout.splitlines() if "::" not in line and line.strip()]
            raise KafkaMissing(f"the jars of the Kafka {name} could not be fetched: {' / '.join(lines[-3:])}")
        os.rename(Path(made) / "jars", folder)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _ivy_xml(modules: Sequence[tuple[str, str, str]], transitive: bool) -> str:
    conf = "default-&gt;default" if transitive else "default-&gt;master"
    lines = (
        f'<dependency org="{organisation}" name="{artifact}" rev="{revision}" conf="{conf}" '
        f'transitive="{str(transitive).lower()}"/>'
        for organisation, artifact, revision in modules
    )
    info = '<info organisation="anabranch" module="kafka"/>'
    return f'<ivy-module version="2.0">{info}<dependencies>{"".join(lines)}</dependencies></ivy-module>\n'


def _ivy() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise KafkaMissing("the jars are fetched by the Ivy in PySpark, which is not installed")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def java() -> str:
    """The Java that Spark would take."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if found is None:
        raise KafkaMissing("Kafka needs Java 17 or later, and none was found")
    return found


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@dataclass
class Broker:
    """One broker that is its own controller, on 127.0.0.1; in a `with` block it runs as long as the block does.

    Parameters
    ----------
    folder
        Its settings, data and log; a broker that is started on the same folder has the same topics.
    port
        Where clients find it; any free one unless given.
    """

    folder: Path
    port: int = field(default_factory=free_port)
    pid: int | None = None
    _controller: int = field(default_factory=free_port)
    _login: int = field(default_factory=free_port)
    _secure: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def servers(self) -> str:
        """Its address, as clients take it."""
        return f"127.0.0.1:{self.port}"

    @property
    def login_servers(self) -> str:
        """The address at which it wants the log-in of USER with PASSWORD, by SASL's PLAIN without TLS."""
        return f"127.0.0.1:{self._login}"

    @property
    def secure_servers(self) -> str:
        """The address at which it wants the same log-in by SCRAM-SHA-512, over TLS."""
        return f"127.0.0.1:{self._secure}"

    @property
    def certificate(self) -> Path:
        """The certificate, in PEM, by which clients know that it is this broker."""
        return self.folder / "broker.pem"

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / "broker.log"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        jars = broker_jars()
        if self.answers():
            raise RuntimeError(f"something listens on {self.servers} already; choose another port")
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self.folder / "server.properties"
        ports = {"port": self.port, "login": self._login, "secure": self._secure, "controller": self._controller}
        places = {"data": self.folder / "data", "key": self._key}
        settings.write_text(_SERVER.format(**ports, **places, user=USER, password=PASSWORD))
        if not (self.folder / "data" / "meta.properties").exists():
            self._certify()
            # With an equals sign, for one in 64 begins with a hyphen and would be taken for an option.
            cluster = "--cluster-id=" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            login = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
            tool = ("kafka.tools.StorageTool", "format", cluster, "--add-scram", login, "-c", str(settings))
            self._java(jars, *tool).wait()
        # Ctrl-C is for whoever started it: the broker is in a group of its own.
        self._process = self._java(jars, "kafka.Kafka", str(settings))
        self.pid = self._process.pid
        self._wait()

    @property
    def _key(self) -> Path:
        return self.folder / "broker.p12"

    def _certify(self) -> None:
        """Give it a key of its own, and write the certificate that clients trust."""
        keytool = [str(Path(java()).resolve().with_name("keytool")), "-alias", "broker", "-storepass", PASSWORD]
        keytool += ["-keystore", str(self._key), "-J-XX:TieredStopAtLevel=1"]
        made = ("-genkeypair", "-keyalg", "EC", "-dname", "CN=127.0.0.1", "-ext", "SAN=IP:127.0.0.1")
        for command in (made, ("-exportcert", "-rfc", "-file", str(self.certificate))):
            subprocess.run([*keytool, *command], capture_output=True, check=True)

    def _java(self, jars: Path, *args: str) -> subprocess.Popen[bytes]:
        options = ["-Xmx512m", *SHORT_LIVED.split()]
        with self.log.open("ab") as log:
            command = [java(), *options, "-cp", f"{jars}/*", *args]
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)

    def _wait(self) -> None:
        assert self._process is not None
        end = time.monotonic() + _START_S
        while not self._has_topics():
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                last = self.log.read_text(errors="replace").splitlines()[-5:]
                raise RuntimeError(f"the broker did not start; {self.log} ends with {' / '.join(last)}")
            time.sleep(0.2)

    def _has_topics(self) -> bool:
        """Whether it answers a client's question; a port that is open proves little."""
        if not self.answers():
            return False
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            return bool(AdminClient({"bootstrap.servers": self.servers}).list_topics(timeout=5).brokers)
        except KafkaException:
            return False

    def answers(self) -> bool:
        """Whether something listens on its port."""
        with socket.socket() as client:
            client.settimeout(1)
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an operator would."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Start it again on the same port with the same data."""
        self.stop()
        self.start()

    def _end(self, number: int) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(number)
                self._process.wait()
            self._process = self.pid = None


def _start(port: int) -> None:
    pid_file = HOME / "broker.pid"
    if _running(pid_file):
        print(f"the broker runs already, as process {pid_file.read_text().strip()}")
        return
    broker = Broker(HOME / "run", port)
    broker.start()
    pid_file.write_text(f"{broker.pid}\n")
    print(f"Kafka {KAFKA} answers on {broker.servers}; log {broker.log}; connector {connector_jars()}")


def _stop() -> None:
    pid_file = HOME / "broker.pid"
    if _running(pid_file):
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        while _running(pid_file):
            time.sleep(0.2)
        print(f"stopped process {pid}")
    else:
        print("no broker runs")
    pid_file.unlink(missing_ok=True)


def _running(pid_file: Path) -> bool:
    """Whether the process in the file is a broker: the number may belong to another process by now."""
    if not pid_file.exists():
        return False
    command = subprocess.run(
        ["ps", "-o", "stat=,args=", "-p", pid_file.read_text().strip()], capture_output=True, text=True, check=False
    ).stdout.strip()
    return "kafka.Kafka" in command and not command.startswith("Z")


def main() -> None:
    """Start or stop a broker that outlives this process, or only fetch the jars."""
    parser = argparse.ArgumentParser(prog="python -m dev.kafka", description=main.__doc__)
    parser.add_argument("do", choices=["start", "stop", "jars"])
    parser.add_argument("--port", type=int, default=PORT)
    asked = parser.parse_args()
    try:
        if asked.do == "start":
            _start(asked.port)
        elif asked.do == "stop":
            _stop()
        else:
            print(broker_jars(), connector_jars(), sep="\n")
    except RuntimeError as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
