"""Offsets of a topic, as Spark has written them into a query's checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.sinks.folder import Folder
from anabranch.errors import InputError

Offsets = Mapping[str, Mapping[str, int]]
"""Per topic and partition, the offset of the next record."""

_FIRST = "sources/0/0"


@dataclass(frozen=True)
class TopicOffsets:
    """The offsets in a checkpoint whose query reads a topic."""

    checkpoint: Checkpoint

    def of_batch(self, batch: int) -> tuple[Offsets, Offsets]:
        """From where to where a batch was read; InputError where Spark has deleted that."""
        before = f"offsets/{batch - 1}" if batch else _FIRST
        return self._kept(before), self._kept(f"offsets/{batch}")

    def reached(self) -> Offsets | None:
        """Where the first batch begins that is not done yet; None where the query has not begun to read."""
        done = self.checkpoint.batches()
        return self._logged(f"offsets/{done - 1}" if done else _FIRST)

    def _kept(self, name: str) -> Offsets:
        found = self._logged(name)
        if found is None:
            raise InputError(
                f"malformed records cannot be found again: checkpoint {self.checkpoint.uri} has no {name} any more; "
                "start with a new checkpoint"
            )
        return found

    def _logged(self, name: str) -> Offsets | None:
        text = Folder(self.checkpoint.uri).read(name)
        if text is None:
            return None
        # A version, and before the offsets of a batch its settings.
        offsets: Offsets = json.loads(text.splitlines()[-1])
        return offsets


def n_offsets(progress: Mapping[str, Any]) -> int:
    """Offsets that a batch went through, by its progress; 0 where that does not say where it began.

    Examples
    --------
    >>> n_offsets({"sources": [{"startOffset": '{"words": {"0": 5}}', "endOffset": '{"words": {"0": 9, "1": 2}}'}]})
    6
    """
    source = progress["sources"][0]
    if not str(source["startOffset"]).startswith("{"):
        return 0
    start, end = json.loads(source["startOffset"]), json.loads(source["endOffset"])
    return sum(at - start.get(topic, {}).get(p, 0) for topic, ends in end.items() for p, at in ends.items())
