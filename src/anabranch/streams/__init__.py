"""Streams of keyed tuples in Arrow batches: synthetic ones after the papers, and recorded ones.

A synthetic stream computes tuple i from the seed and i alone, so it needs no memory, does not depend on the batch size
and can start anywhere.
"""

from anabranch.streams.alternating import Alternating
from anabranch.streams.bursts import Bursts
from anabranch.streams.correlated_pairs import CorrelatedPairs
from anabranch.streams.country import Country
from anabranch.streams.drifting import Drifting
from anabranch.streams.evolving_zipf import EvolvingZipf
from anabranch.streams.log_normal import LogNormal
from anabranch.streams.named import named, names
from anabranch.streams.replay import Replay
from anabranch.streams.singletons import Singletons
from anabranch.streams.stream import Stream
from anabranch.streams.zipf import Zipf

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
]
