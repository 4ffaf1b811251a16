"""Sketches: bounded summaries of a stream of key hashes."""

from anabranch.sketches.coin_synopsis import CoinSynopsis
from anabranch.sketches.counting_bloom_filter import CountingBloomFilter
from anabranch.sketches.epoch_counters import EpochCounters
from anabranch.sketches.space_saving import SpaceSaving

__all__ = ["CoinSynopsis", "CountingBloomFilter", "EpochCounters", "SpaceSaving"]


def __dir__() -> list[str]:
    return sorted(__all__)
