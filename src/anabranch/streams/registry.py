"""Synthetic streams by name, as the command line spells them: ``zipf(z=1.4, keys=100k)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anabranch.names import Catalogue, parameters_of
from anabranch.streams.generated import Generated
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

STREAMS: Catalogue[Callable[..., Generated], Generated] = Catalogue(
    "stream",
    (
        Zipf,
        EvolvingZipf,
        Drifting,
        Alternating,
        Bursts,
        Singletons,
        LogNormal,
        LogNormal.ln1,
        LogNormal.ln2,
        Country,
        CorrelatedPairs,
    ),
    "zipf(z=1.4, keys=100k)",
)
names, named = STREAMS.names, STREAMS.named


def parse(text: str, **defaults: Any) -> Stream:
    """Stream from its name and, in brackets, parameters; `defaults` are for those that the text leaves out.

    Examples
    --------
    >>> parse("zipf(z=1.4, keys=20k)", n_tuples=500)
    Zipf(n_tuples=500, n_keys=20000, z=1.4)
    """
    return STREAMS.parse(text, **defaults)


def written(stream: Stream) -> str:
    """The text that `parse` makes this stream from.

    Examples
    --------
    >>> written(Zipf(n_tuples=500, n_keys=20, z=1.4))
    'zipf(tuples=500, keys=20, z=1.4)'
    """
    values = (f"{p.name}={getattr(stream, p.field)!r}" for p in parameters_of(type(stream)).values())
    return f"{stream.name}({', '.join(values)})"
