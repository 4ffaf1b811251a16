"""Streams on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli import values
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from anabranch.streams import Stream

# Those that have a number of keys and an exponent.
_ZIPF_LIKE = ("zipf", "evolving-zipf", "drifting", "alternating", "bursts", "singletons")
ZIPFS = ", ".join(_ZIPF_LIKE)
SYNTHETIC = (*_ZIPF_LIKE, "log-normal", "ln1", "ln2", "country", "correlated-pairs")
# Stream parameters on the command line: option, parameter of the stream, default where the stream needs one.
_STREAM_OPTIONS = {
    "keys": ("n_keys", "100k"),
    "z": ("z", "1.2"),
    "flip": ("flip", None),
    "mu": ("mu", None),
    "sigma": ("sigma", None),
    "skew_percent": ("skew_percent", "80"),
    "every": ("every", "100k"),
    "period": ("period", None),
    "phases": ("n_phases", None),
    "share": ("share", None),
    "length": ("length", None),
    "values": ("n_values", "6"),
    "locality": ("locality", "0.8"),
    "padding": ("padding", None),
}
_WHOLE = {"keys", "every", "period", "phases", "length", "values", "padding"}


def replay(
    path: Path, key: str | None, timestamp: str | None = None, source_key: str | None = None
) -> Callable[..., Stream]:
    """A maker of the stream that a file holds."""
    from anabranch.streams import Replay

    if key is None:
        raise ConfigError("--input needs --key COLUMN: which column holds the key?")
    columns = () if source_key is None or source_key == key else (source_key,)
    stream = Replay(str(path), key, timestamp=timestamp, columns=columns)
    return lambda: stream


def synthetic(
    name: str,
    tuples: str,
    given: Mapping[str, str | None],
    half_skew: bool = False,
    known: Sequence[str] = SYNTHETIC,
) -> tuple[Callable[..., Stream], dict[str, list[Any]]]:
    """A maker of the stream, and the values of its parameters."""
    from anabranch.streams import named
    from anabranch.streams.registry import parameters_of, unknown

    if name == "replay":
        raise ConfigError("--stream takes no replay; use --input FILE --key COLUMN")
    if name not in known:
        raise unknown("--stream", name, known)
    vary = _parameters(name, given)
    fixed: dict[str, Any] = {"n_tuples": n_tuples(tuples)}
    if half_skew:
        if "half_skew" not in parameters_of(name):
            raise ConfigError(f"stream {name} has no --half-skew; leave it out")
        fixed["half_skew"] = True

    def make(**swept: Any) -> Stream:
        try:
            return named(name, **fixed, **swept)
        except ConfigError as error:
            raise ConfigError(_with_options(str(error))) from None

    first = {parameter: listed[0] for parameter, listed in vary.items()}
    # Every value is tried before the first run.
    for parameter, listed in vary.items():
        for value in listed:
            make(**first | {parameter: value})
    return make, vary


def _parameters(name: str, given: Mapping[str, str | None]) -> dict[str, list[Any]]:
    """Values of the stream's parameters, from options and defaults."""
    from anabranch.streams.registry import parameters_of

    accepted = parameters_of(name)
    vary: dict[str, list[Any]] = {}
    missing = []
    for option, (parameter, default) in _STREAM_OPTIONS.items():
        text = given.get(option)
        if text is not None and parameter not in accepted:
            raise ConfigError(f"stream {name} has no {_flag(option)}; leave it out")
        if parameter in accepted and (text or default) is not None:
            read = values.wholes if option in _WHOLE else values.numbers
            vary[parameter] = list(read(text or default or "", _flag(option)))
        elif parameter in accepted and accepted[parameter].default is accepted[parameter].empty:
            missing.append(_flag(option))
    if missing:
        raise ConfigError(f"stream {name} needs {', '.join(missing)}; add them")
    return vary


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def _with_options(message: str) -> str:
    """An error of a stream with options in place of parameters."""
    for option, (parameter, _) in _STREAM_OPTIONS.items():
        message = re.sub(rf"\b{parameter}(?= must | is )", _flag(option), message)
    return message


def n_tuples(text: str) -> int:
    """A stream's length."""
    return values.whole(text, "--tuples", at_least=1)


def most_tuples(stream: Stream, limit: int | None) -> int | None:
    """Tuples that a run can read at most, or None where that is not known before it."""
    return min((n for n in (stream.n_tuples, limit) if n is not None), default=None)
