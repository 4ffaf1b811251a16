"""Streams of keyed tuples in Arrow batches: synthetic ones after the papers, and recorded ones.

A synthetic stream computes tuple i from the seed and i alone, so it needs no memory, does not depend on the batch size
and can start anywhere.
"""

from anabranch.streams.registry import named, names, parse
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

__all__ = [
    "Alternating",
    "Bursts",
    "CorrelatedPairs",
    "Country",
    "Drifting",
    "EvolvingZipf",
    "LogNormal",
    "Replay",
    "Singletons",
    "Stream",
    "Zipf",
    "named",
    "names",
    "parse",
]


def __dir__() -> list[str]:
    return sorted(__all__)
