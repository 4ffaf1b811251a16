"""How Kafka clients log in, read from places where secrets may be, and never shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.errors import ConfigError, InputError

# ANABRANCH_KAFKA_SASL_JAAS_CONFIG is the property sasl.jaas.config: no property has an underscore in its name.
PREFIX = "ANABRANCH_KAFKA_"
FILE = "ANABRANCH_KAFKA_PROPERTIES"
HIDDEN = "***"
_ADDRESS = "bootstrap.servers"
# Their values are not secret, and an error is hard to understand without them.
_SHOWN = re.compile(r"security\.protocol|sasl\.mechanism|ssl\..*\.(location|type)")
_JAAS = "sasl.jaas.config"
# What a certificate in the properties themselves is called there; in files it is ….location.
_INLINE = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_QUOTED = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
# Errors about a log-in quote words of it. Words that every log-in has are not secret.
_WORDS = re.compile(r"""[\s"'=;]+""")
_PLAIN = {"required", "requisite", "sufficient", "optional", "username", "password"}
_SHORTEST = 4


@dataclass(frozen=True)
class Connection:
    """Properties of Kafka clients (``security.*``, ``sasl.*``, ``ssl.*`` and any other), under Kafka's own names.

    Guarantees
    ----------
    Its text shows the names of the properties and none of their values; `redacted` takes them out of any other text.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if _ADDRESS in self.properties:
            raise ConfigError(f"{_ADDRESS} comes from the address kafka://HOST:PORT/TOPIC; leave the property out")

    @classmethod
    def load(cls, file: str | None = None, environ: Mapping[str, str] | None = None) -> Connection:
        """Properties of a file, and of the environment, which goes before the file.

        Parameters
        ----------
        file
            Lines ``name=value`` as in Kafka's own clients; the file that ANABRANCH_KAFKA_PROPERTIES names unless given.
        environ
            Variables such as ANABRANCH_KAFKA_SASL_JAAS_CONFIG for ``sasl.jaas.config``.

        Examples
        --------
        >>> Connection.load(environ={"ANABRANCH_KAFKA_SSL_KEY_PASSWORD": "swordfish"})
        Connection(ssl.key.password=***)
        """
        environ = os.environ if environ is None else environ
        file = file or environ.get(FILE)
        named = {name: value for name, value in environ.items() if name.startswith(PREFIX) and name != FILE}
        found = {name.removeprefix(PREFIX).lower().replace("_", "."): value for name, value in named.items()}
        return cls((_read(file) if file else {}) | found)

    def options(self) -> dict[str, str]:
        """As Spark's connector takes them."""
        return {f"kafka.{name}": value for name, value in self.properties.items()}

    def redacted(self, text: str) -> str:
        """The text with every value, and every quoted part and longer word of one, replaced by ``***``."""
        values = [value for name, value in self.properties.items() if not _SHOWN.fullmatch(name)]
        parts = [form for value in values for _, part in _QUOTED.findall(value) for form in (part, _plain(part))]
        words = [word for value in values for word in _WORDS.split(value) if len(word) >= _SHORTEST]
        parts += [word for word in words if word not in _PLAIN and not word.endswith("LoginModule")]
        # The longest first: one may be a part of another.
        for secret in sorted({*values, *parts} - {""}, key=len, reverse=True):
            # A short one may be a part of any word, and hiding that would tell it.
            whole = rf"(?<!\w){re.escape(secret)}(?!\w)" if len(secret) < _SHORTEST else re.escape(secret)
            text = re.sub(whole, HIDDEN, text)
        return text

    def for_librdkafka(self) -> dict[str, str]:
        """As confluent-kafka takes them: without JAAS, and with certificates in PEM files.

        Examples
        --------
        >>> login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="x";'
        >>> sorted(Connection({"sasl.jaas.config": login}).for_librdkafka().items())
        [('sasl.password', 'x'), ('sasl.username', 'me')]
        """
        made = self._login()
        for name, value in self.properties.items():
            if name.startswith(("ssl.truststore.", "ssl.keystore.")):
                made |= self._pem(name, value)
            elif name == _HOST_CHECK:
                made[name] = value or "none"
            elif name != _JAAS:
                made[name] = value
        return made

    def _login(self) -> dict[str, str]:
        """User and password of a log-in for Java; those that stand by themselves go before it."""
        if _JAAS not in self.properties or "sasl.username" in self.properties:
            return {}
        parts = dict(_QUOTED.findall(self.properties[_JAAS]))
        if not {"username", "password"} <= parts.keys():
            raise ConfigError(
                f'{_JAAS} must have username="…" and password="…", got a log-in that only Java knows; '
                "add sasl.username and sasl.password for anabranch produce"
            )
        return {f"sasl.{name}": _plain(parts[name]) for name in ("username", "password")}

    def _pem(self, name: str, value: str) -> dict[str, str]:
        store, _, part = name.removeprefix("ssl.").partition(".")
        if self.properties.get(f"ssl.{store}.type", "JKS").upper() != "PEM":
            raise ConfigError(f"anabranch produce reads certificates in PEM files only; set ssl.{store}.type=PEM")
        if name in _INLINE:
            return {_INLINE[name]: value}
        if part != "location":
            return {}
        if store == "truststore":
            return {"ssl.ca.location": value}
        return {"ssl.certificate.location": value, "ssl.key.location": value}

    def __repr__(self) -> str:
        return f"Connection({', '.join(f'{name}={HIDDEN}' for name in self.properties)})"


def _plain(quoted: str) -> str:
    """What stands between the quotes, as Java reads it."""
    return re.sub(r"\\(.)", r"\1", quoted)


def _read(file: str) -> dict[str, str]:
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the Kafka properties in {file!r}: {type(error).__name__}; name a file") from None
    lines = (line.strip() for line in re.sub(r"\\\n\s*", "", text).splitlines())
    found = {}
    for number, line in enumerate(lines, 1):
        if not line or line[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z][\w.-]*", name.strip()):
            # The line itself may hold a secret.
            raise InputError(f"{file!r} must have lines such as security.protocol=SASL_SSL; line {number} is another")
        found[name.strip()] = value.strip()
    return found
