"""Streams on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.cli import values
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from anabranch.streams import Stream

# Stream parameters on the command line: option, parameter of the stream, default where the stream needs one.
_STREAM_OPTIONS = {
    "keys": ("n_keys", "100k"),
    "z": ("z", "1.2"),
    "flip": ("flip", None),
    "mu": ("mu", None),
    "sigma": ("sigma", None),
    "skew_percent": ("skew_percent", "80"),
    "every": ("every", "100k"),
    "values": ("n_values", "6"),
    "locality": ("locality", "0.8"),
    "padding": ("padding", None),
}
_WHOLE = {"keys", "every", "values", "padding"}


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
    name: str, tuples: str, given: dict[str, str | None], half_skew: bool = False
) -> tuple[Callable[..., Stream], dict[str, list[Any]]]:
    """A maker of the stream, and the values of its parameters."""
    from anabranch.streams import named
    from anabranch.streams.named import parameters_of

    accepted = parameters_of(name)
    vary: dict[str, list[Any]] = {}
    for option, (parameter, default) in _STREAM_OPTIONS.items():
        text = given.get(option)
        flag = "--" + option.replace("_", "-")
        if text is not None and parameter not in accepted:
            raise ConfigError(f"stream {name} has no {flag}; leave it out")
        if parameter in accepted and (text or default) is not None:
            read = values.wholes if option in _WHOLE else values.numbers
            vary[parameter] = list(read(text or default or "", flag))
    fixed: dict[str, Any] = {"n_tuples": n_tuples(tuples)}
    if half_skew:
        fixed["half_skew"] = True
    return lambda **swept: named(name, **fixed, **swept), vary


def n_tuples(text: str) -> int:
    """A stream's length."""
    count = values.whole(text, "--tuples")
    if count < 1:
        raise ConfigError(f"--tuples must be at least 1, got {text!r}")
    return count
