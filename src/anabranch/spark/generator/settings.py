"""What the built-in source generates, read from a data source's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from anabranch.errors import ConfigError
from anabranch.names import parameters_of, read
from anabranch.streams import Stream
from anabranch.streams.generated import require_count, require_number
from anabranch.streams.registry import STREAMS

MICROSECONDS = 1_000_000
# A stream that never ends: no counter gets there.
_ENDLESS = 2**62
_EXAMPLE = "zipf(z=1.4, keys=100k, rate=50k)"


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
        """Read options, whose names are not case-sensitive, as everywhere in Spark.

        The brackets of ``stream`` may hold all of the others, too, and go before them.

        Examples
        --------
        >>> GeneratorSettings.of({"stream": "zipf(keys=10, z=1.4, rate=2k)", "tuples": "1M"}).stream
        Zipf(n_tuples=1000000, n_keys=10, z=1.4)
        """
        given = {name.lower(): [text] for name, text in options.items()}
        (text,) = given.pop("stream", ["zipf"])
        name, in_brackets = read(text, _EXAMPLE)
        if name == "replay":
            raise ConfigError("stream must be a synthetic one, got 'replay'; read files with Spark's own sources")
        own = parameters_of(cls)
        for option in given:
            if option not in own:
                raise ConfigError(
                    f"the generator has no option {option!r}; it takes stream, {', '.join(own)}; "
                    f"parameters of the stream stand in its brackets: {_EXAMPLE}"
                )
        given |= {name: pieces for name, pieces in in_brackets.items() if name in own}
        start = given.pop("start", None)
        chosen = {name: own[name].one(pieces) for name, pieces in given.items()}
        if start is not None:
            chosen["start"] = _microseconds(start[0].strip("'\""))
        of_stream = {name: pieces for name, pieces in in_brackets.items() if name not in own}
        stream = STREAMS.made(name, of_stream, own, n_tuples=chosen.get("tuples", _ENDLESS))
        if stream.needs_end and "tuples" not in chosen:
            raise ConfigError(f"stream {name} changes at a share of its length, got no tuples; add tuples=N")
        return cls(stream, **chosen)


def _microseconds(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"start must be a moment such as 2024-01-31T12:00:00Z, got {text!r}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * MICROSECONDS)
