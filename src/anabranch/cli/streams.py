"""Streams on the command line: made from a text, or replayed from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from anabranch.streams import Stream

_TUPLES = 1_000_000
Vary = dict[str, list[Any]]


def choose(
    stream: str | None,
    tuples: int | None,
    input: Path | None,
    key: str | None,
    *,
    timestamp: str | None = None,
    columns: Sequence[str] = (),
) -> tuple[Callable[..., Stream], Vary]:
    """What makes the stream that the options say, and the values of its parameters; all have been tried."""
    from anabranch.streams import Replay

    if input is None:
        named = {"--key": key, "--timestamp": timestamp, "--columns": ",".join(columns) or None}
        for option in (option for option, column in named.items() if column is not None):
            raise ConfigError(f"{option} is about columns of --input; give --input FILE with it")
        return _synthetic(stream or "zipf", tuples)
    if stream is not None:
        raise ConfigError("--input replays a file and takes no --stream; leave one of them out")
    if key is None:
        raise ConfigError("--input needs --key COLUMN: which column holds the key?")
    replay = Replay(str(input), key, timestamp=timestamp, columns=columns)
    return lambda: replay, {}


def one(verb: str, make: Callable[..., Stream], vary: Vary) -> Stream:
    """The stream that `choose` has found, for a verb that takes a single one."""
    if any(len(listed) > 1 for listed in vary.values()):
        raise ConfigError(f"{verb} takes one value per parameter of --stream; sweep with a loop around the command")
    return make(**{parameter: listed[0] for parameter, listed in vary.items()})


def _synthetic(text: str, tuples: int | None) -> tuple[Callable[..., Stream], Vary]:
    from anabranch.streams.registry import STREAMS

    if text.partition("(")[0].strip() == "replay":
        raise ConfigError("--stream takes no replay; use --input FILE --key COLUMN")
    make, vary = STREAMS.sweep(text)
    if tuples is not None and "n_tuples" in vary:
        raise ConfigError(f"--tuples and tuples= in --stream both say the length, got {text!r}; leave one of them out")
    vary.setdefault("n_tuples", [tuples or _TUPLES])
    first = {parameter: listed[0] for parameter, listed in vary.items()}
    for parameter, listed in vary.items():
        for value in listed:
            make(**first | {parameter: value})
    return make, vary


def most_tuples(stream: Stream, limit: int | None) -> int | None:
    """Tuples that a run can read at most, or None where that is not known before it."""
    return min((n for n in (stream.n_tuples, limit) if n is not None), default=None)
