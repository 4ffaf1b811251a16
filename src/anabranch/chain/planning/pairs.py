"""Pairs of keys: how often a key of one operator leads to a key of the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anabranch import snapshot
from anabranch.arrays import I64, U64
from anabranch.errors import ConfigError, InputError, SnapshotError
from anabranch.hashing.xxhash64 import hash_long
from anabranch.kernels import njit

# Faded counts are whole numbers too: of the thousandth part of a tuple.
_SCALE = 1_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """How often pairs of keys of two operators in a row occur, for a planner.

    Parameters
    ----------
    first, second
        Key hashes: of the operator that a tuple comes from, and of the one it goes to.
    counts
        Tuples of each pair; at least 1.
    total
        Tuples in all. What is above the sum of `counts` belongs to pairs that were not counted.
    scale
        What one tuple counts as; above 1 where the tuples of older periods have faded.
    """

    first: U64
    second: U64
    counts: I64
    total: int
    scale: int = 1

    def __post_init__(self) -> None:
        if not len(self.first) == len(self.second) == len(self.counts):
            raise InputError(
                "first, second and counts must be equally long, "
                f"got {len(self.first)}, {len(self.second)} and {len(self.counts)}"
            )
        if len(self.counts) and self.counts.min() < 1:
            raise InputError(f"counts must be at least 1, got {self.counts.min()}; leave such pairs out")
        if self.total < self.counts.sum():
            raise InputError(f"total must be at least the sum of counts {self.counts.sum()}, got {self.total}")

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def exact(cls, first: U64, second: U64, counts: I64 | None = None) -> Pairs:
        """All pairs of tuples whose keys are `first[i]` and `second[i]`, which occur `counts[i]` times or once.

        Examples
        --------
        >>> import numpy as np
        >>> first, second = np.array([[1, 2, 1], [5, 5, 5]], dtype=np.uint64)
        >>> Pairs.exact(first, second).counts.tolist()
        [2, 1]
        """
        _, at, inverse = np.unique(hash_pairs(first, second), return_index=True, return_inverse=True)
        amounts = np.ones(len(first), dtype=np.int64) if counts is None else counts
        times = np.bincount(inverse, weights=amounts, minlength=len(at)).astype(np.int64)
        order = np.lexsort((second[at], first[at], -times))
        at = at[order]
        return cls(first[at], second[at], times[order], int(times.sum()))

    @classmethod
    def pooled(cls, parts: Sequence[Pairs]) -> Pairs:
        """Pairs of several workers or periods, counts added up."""
        if not parts:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64), 0)
        if len({part.scale for part in parts}) > 1:
            raise InputError(f"pairs must have one scale, got {sorted({part.scale for part in parts})}; fade them once")
        first, second, counts = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("first", "second", "counts")
        )
        pooled = cls.exact(first, second, counts)
        return cls(pooled.first, pooled.second, pooled.counts, sum(part.total for part in parts), parts[0].scale)

    @classmethod
    def faded(cls, periods: Sequence[Pairs], fade: float) -> Pairs:
        """Pairs of several periods: the last one counts in full, each earlier one `fade` times the next.

        The paper forgets all earlier periods, which is a fade of 0. Pairs that are rare come back over longer times
        than a period; see the benchmark of locality.
        """
        if not 0 < fade <= 1:
            raise ConfigError(f"fade must be above 0 and at most 1, got {fade}; 1 counts all periods alike")
        if fade == 1:
            return cls.pooled(periods)
        ages = range(len(periods) - 1, -1, -1)
        return cls.pooled([period._times(_SCALE * fade**age) for period, age in zip(periods, ages, strict=True)])

    def _times(self, factor: float) -> Pairs:
        counts = np.maximum(1, np.rint(self.counts * factor)).astype(np.int64)
        uncounted = round((self.total - int(self.counts.sum())) * factor)
        return Pairs(self.first, self.second, counts, int(counts.sum()) + uncounted, _SCALE)

    def top(self, n: int) -> Pairs:
        """The `n` heaviest pairs; the others count as tuples of pairs that were not counted."""
        kept = np.lexsort((self.second, self.first, -self.counts))[:n]
        return Pairs(self.first[kept], self.second[kept], self.counts[kept], self.total, self.scale)

    def pack(self) -> bytes:
        """Bytes that `unpack` reads."""
        arrays = {"first": self.first, "second": self.second, "counts": self.counts}
        return snapshot.pack({"kind": "pairs", "total": self.total, "scale": self.scale}, arrays)

    @classmethod
    def unpack(cls, data: bytes) -> Pairs:
        """Pairs from their bytes; SnapshotError when they are damaged or something else."""
        header, arrays = snapshot.unpack(data)
        if header.get("kind") != "pairs":
            raise SnapshotError(f"these bytes hold {header.get('kind') or 'a router'}, not pairs; pass Pairs.pack()")
        return cls(arrays["first"], arrays["second"], arrays["counts"], header["total"], header["scale"])


def hash_pairs(first: U64, second: U64) -> U64:
    """One hash for each pair; (a, b) and (b, a) differ."""
    if len(first) != len(second):
        raise InputError(f"first and second must be equally long, got {len(first)} and {len(second)}")
    for column in map(np.asarray, (first, second)):
        if column.dtype != np.uint64:
            raise InputError(f"first and second must be hashes of keys, got {column.dtype}; pass hash_keys(…)")
    out = np.empty(len(first), dtype=np.uint64)
    _hash_pairs(np.ascontiguousarray(first), np.ascontiguousarray(second), out)
    return out


@njit(cache=True)
def _hash_pairs(first: U64, second: U64, out: U64) -> None:
    for i in range(len(first)):
        out[i] = hash_long(second[i], first[i])
