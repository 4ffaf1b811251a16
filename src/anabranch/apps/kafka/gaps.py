"""Records that a topic had, and has removed before they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SHOWN = 3


@dataclass(frozen=True)
class Gap:
    """Records of a partition that are gone: from offset `start` to before `end`."""

    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        last = self.end - 1
        shown = f"offset {last}" if last == self.start else f"offsets {self.start} to {last}"
        return f"partition {self.partition}, {shown}"


def gaps(start: Mapping[str, int], first: Mapping[int, int], end: Mapping[str, int] | None = None) -> list[Gap]:
    """What is gone of the records from `start` on (and before `end`), where `first` are the offsets still there.

    Examples
    --------
    >>> gaps({"0": 10, "1": 10}, {0: 25, 1: 10}, {"0": 20, "1": 20})
    [Gap(partition=0, start=10, end=20)]
    """
    ends = {p: min(at, (end or {}).get(str(p), at)) for p, at in first.items()}
    found = (Gap(p, start.get(str(p), 0), at) for p, at in sorted(ends.items()))
    return [gap for gap in found if gap.end > gap.start]


def size(found: Sequence[Gap]) -> int:
    """Offsets that are gone."""
    return sum(gap.end - gap.start for gap in found)


def places(found: Sequence[Gap]) -> str:
    """Where they were, in a few words."""
    more = [f"{len(found) - _SHOWN} more partitions"] if len(found) > _SHOWN else []
    return "; ".join([*map(str, found[:_SHOWN]), *more])
