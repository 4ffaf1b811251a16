"""Streams by the names that the command line uses."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence

from anabranch.errors import ConfigError
from anabranch.streams.replay import Replay
from anabranch.streams.stream import Stream
from anabranch.streams.synthetic.alternating import Alternating
from anabranch.streams.synthetic.bursts import Bursts
from anabranch.streams.synthetic.correlated_pairs import CorrelatedPairs
from anabranch.streams.synthetic.country import Country
from anabranch.streams.synthetic.drifting import Drifting
from anabranch.streams.synthetic.evolving_zipf import EvolvingZipf
from anabranch.streams.synthetic.log_normal import LogNormal
from anabranch.streams.synthetic.singletons import Singletons
from anabranch.streams.synthetic.zipf import Zipf

_BUILDERS: dict[str, Callable[..., Stream]] = {
    **{cls.name: cls for cls in (Zipf, EvolvingZipf, Drifting, Alternating, Bursts, Singletons, LogNormal)},
    "ln1": LogNormal.ln1,
    "ln2": LogNormal.ln2,
    **{cls.name: cls for cls in (Country, CorrelatedPairs, Replay)},
}


def names() -> tuple[str, ...]:
    """Every name that `named` knows.

    Examples
    --------
    >>> names()[:6]
    ('zipf', 'evolving-zipf', 'drifting', 'alternating', 'bursts', 'singletons')
    """
    return tuple(_BUILDERS)


def named(name: str, **parameters: object) -> Stream:
    """Make a stream from its name and parameters; ConfigError says which names and parameters there are.

    Examples
    --------
    >>> named("zipf", n_tuples=1000, n_keys=100, z=1.2)
    Zipf(n_tuples=1000, n_keys=100, z=1.2)
    """
    accepted = parameters_of(name)
    for parameter in parameters:
        if parameter not in accepted:
            raise ConfigError(f"stream {name} takes {', '.join(accepted)}, got {parameter!r}; leave it out")
    missing = [p.name for p in accepted.values() if p.default is p.empty and p.name not in parameters]
    if missing:
        raise ConfigError(f"stream {name} needs {', '.join(missing)}, got {', '.join(parameters) or 'none'}; add them")
    return _BUILDERS[name](**parameters)


def unknown(what: str, name: str, known: Sequence[str]) -> ConfigError:
    """Error for a name that is not known, with the closest one that is.

    Examples
    --------
    >>> print(unknown("--stream", "zpf", ("zipf", "country")))
    --stream must be one of zipf, country, got 'zpf'; did you mean zipf?
    """
    close = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return ConfigError(f"{what} must be one of {', '.join(known)}, got {name!r}{hint}")


def parameters_of(name: str) -> Mapping[str, inspect.Parameter]:
    """Parameters that a stream takes, by name.

    Examples
    --------
    >>> list(parameters_of("zipf"))
    ['n_tuples', 'n_keys', 'z']
    """
    if name not in _BUILDERS:
        raise unknown("stream", name, names())
    return inspect.signature(_BUILDERS[name]).parameters
