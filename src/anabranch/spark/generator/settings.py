"""What the built-in source generates, read from a data source's options."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from anabranch.errors import ConfigError
from anabranch.streams import Stream, named
from anabranch.streams.generated import require_count, require_number
from anabranch.streams.registry import parameters_of

MICROSECONDS = 1_000_000
# A stream that never ends: no counter gets there.
_ENDLESS = 2**62
_OWN = ("stream", "seed", "rate", "batch", "tuples", "partitions", "start")
# Streams whose course depends on their length.
_NEEDS_END = {"evolving-zipf": "flips its ranks", "country": "ends its skew"}


@dataclass(frozen=True)
class GeneratorSettings:
    """The options of the built-in source, checked; see `generate` for what they mean.

    Parameters
    ----------
    stream
        As long as `tuples`, or practically endless.
    start
        Event time of tuple 0 in microseconds since 1970, or None for the moment the query is first started.
    """

    stream: Stream
    seed: int = 0
    rate: float = 0.0
    batch: int = 100_000
    tuples: int | None = None
    partitions: int = 2
    start: int | None = None

    def __post_init__(self) -> None:
        require_number("rate", self.rate, at_least=0.0)
        require_count("batch", self.batch)
        require_count("partitions", self.partitions)
        if self.tuples is not None:
            require_count("tuples", self.tuples)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> GeneratorSettings:
        """Read options; their names are not case-sensitive, as everywhere in Spark.

        Examples
        --------
        >>> GeneratorSettings.of({"stream": "zipf", "n_keys": "10", "z": "1.4", "tuples": "1e6"}).stream
        Zipf(n_tuples=1000000, n_keys=10, z=1.4)
        """
        given = {name.lower(): text for name, text in options.items()}
        name = given.get("stream", "zipf")
        if name == "replay":
            raise ConfigError("stream must be a synthetic one, got 'replay'; read files with Spark's own sources")
        tuples = None if given.get("tuples") is None else _whole("tuples", given["tuples"])
        own: dict[str, Any] = {"tuples": tuples}
        own |= {option: _whole(option, given[option]) for option in ("seed", "batch", "partitions") if option in given}
        if "rate" in given:
            own["rate"] = _number("rate", given["rate"])
        if "start" in given:
            own["start"] = _microseconds(given["start"])
        return cls(_stream(name, tuples, {k: v for k, v in given.items() if k not in _OWN}), **own)


def _stream(name: str, tuples: int | None, given: Mapping[str, str]) -> Stream:
    accepted = parameters_of(name)
    parameters: dict[str, object] = {"n_tuples": _ENDLESS if tuples is None else tuples}
    for parameter, text in given.items():
        kind = str(accepted[parameter].annotation) if parameter in accepted else "str"
        parameters[parameter] = _READ.get(kind, _text)(parameter, text)
    if tuples is None and name in _NEEDS_END and (name != "country" or parameters.get("half_skew")):
        raise ConfigError(f"stream {name} {_NEEDS_END[name]} at a share of its length, got no tuples; add the option")
    return named(name, **parameters)


def _number(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{option} must be a number such as 1.4 or 1e6, got {text!r}")
    return value


def _whole(option: str, text: str) -> int:
    # Not through float where it can be helped: above 2**53 that is not the same number.
    try:
        return int(text)
    except ValueError:
        value = _number(option, text)
    if value != int(value):
        raise ConfigError(f"{option} must be a whole number, got {text!r}")
    return int(value)


def _flag(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{option} must be true or false, got {text!r}")
    return text.lower() == "true"


def _text(option: str, text: str) -> str:
    return text


_READ = {"int": _whole, "float": _number, "bool": _flag}


def _microseconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"start must be a moment such as 2024-01-31T12:00:00Z, got {text!r}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * MICROSECONDS)
