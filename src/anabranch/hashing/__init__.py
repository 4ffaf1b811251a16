"""Key hashes, candidate workers and the consistent-hash ring.

Keys become 64-bit hashes once (`hash_keys`, equal to Spark's ``xxhash64``); everything after that, candidate workers
and ring positions, is derived from the hash.
"""

from anabranch.hashing.family import HashFamily, MultiplyShift
from anabranch.hashing.ring import HashRing
from anabranch.hashing.xxhash64 import hash_keys

__all__ = ["HashFamily", "HashRing", "MultiplyShift", "hash_keys"]


def __dir__() -> list[str]:
    return sorted(__all__)
