"""Where a topic of Kafka is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from anabranch.apps.kafka.answering import answering
from anabranch.apps.kafka.connection import Connection
from anabranch.apps.sources.source import KAFKA
from anabranch.errors import ConfigError, InputError
from anabranch.names import closest

_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+):(?P<port>\d{1,5})")
_SECRET = re.compile(r"(sasl|ssl|security|kafka)\.|password|secret|token|jaas", re.IGNORECASE)


@dataclass(frozen=True)
class KafkaAddress:
    """Where a topic is: ``kafka://HOST:PORT[,HOST:PORT…]/TOPIC``, for a source with parameters behind a question mark.

    Parameters
    ----------
    servers
        Brokers to ask first, with commas between.
    parameters
        Whatever stands behind the question mark.
    """

    servers: str
    topic: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for server in self.servers.split(","):
            found = _SERVER.fullmatch(server)
            if found is None or not 0 < int(found["port"]) < 1 << 16:
                raise ConfigError(f"a broker must be HOST:PORT, as in 127.0.0.1:9092, got {server!r}")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", self.topic) or self.topic in (".", ".."):
            raise ConfigError(f"a topic has letters, digits, dots, _ and - in its name, got {self.topic!r}")

    @classmethod
    def parse(cls, text: str, known: tuple[str, ...] = ()) -> KafkaAddress:
        """Read an address; parameters that are not `known` are refused.

        Examples
        --------
        >>> KafkaAddress.parse("kafka://127.0.0.1:9092/trades?format=csv", known=("format",))
        KafkaAddress(servers='127.0.0.1:9092', topic='trades', parameters={'format': 'csv'})
        """
        place, _, query = text.removeprefix(KAFKA).partition("?")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        # Neither is shown: it may hold a password.
        if "@" in place or any(_SECRET.search(name) for name in parameters):
            raise ConfigError(
                "users, passwords and other security options do not belong into an address, where others can see them; "
                "write them into a file for --kafka-properties, or into variables such as "
                "ANABRANCH_KAFKA_SECURITY_PROTOCOL"
            )
        if not text.startswith(KAFKA):
            raise ConfigError(f"the address of a topic must be kafka://HOST:PORT/TOPIC, got {place!r}; write it so")
        for name in parameters:
            if name not in known:
                takes = f"takes {', '.join(known)}" if known else "takes no parameters here"
                raise ConfigError(f"an address kafka://HOST:PORT/TOPIC {takes}, got {name!r}; leave it out")
        servers, _, topic = place.partition("/")
        if not topic:
            raise ConfigError(
                f"the address of a topic must be kafka://HOST:PORT/TOPIC, got {KAFKA}{place}; add the topic"
            )
        return cls(servers, topic, parameters)

    def check(self) -> None:
        """See that a broker can be reached; Kafka's own clients would try for minutes."""
        if not answering(self.servers):
            raise InputError(f"no Kafka broker answers at {self.servers}; start one there, or correct the address")

    def absent(self, known: Iterable[str] = ()) -> str:
        """That the topic is not there, where these are."""
        close = closest(self.topic, known)
        hint = f" (did you mean {close}?)" if close else ""
        return f"{self.servers} has no topic {self.topic}, or none that this user may see{hint}"

    def missing(self, known: Iterable[str] = ()) -> str:
        """That the topic is not there, and how to make it."""
        return (
            f"{self.absent(known)}; make it with anabranch produce kafka://{self.servers}/{self.topic}, "
            f"or kafka-topics.sh --create --topic {self.topic} --bootstrap-server {self.servers}"
        )

    def properties(self, connection: Connection) -> dict[str, str]:
        """What Kafka's own clients need."""
        return {"bootstrap.servers": self.servers, **connection.properties}

    def options(self, connection: Connection) -> dict[str, str]:
        """What both ends of Spark's connector need."""
        return {"kafka.bootstrap.servers": self.servers, **connection.options()}
