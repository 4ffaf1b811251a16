"""What a checkpoint remembers of topics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from anabranch.apps.sinks.folder import Folder
from anabranch.errors import InputError

_FILE = "anabranch-topics.json"


@dataclass(frozen=True)
class Adopted:
    """A topic of another query that this one has taken over.

    Parameters
    ----------
    first
        What the batch 0 of this query is numbered in the topic: higher than all that was there.
    ends
        Per partition, the offset up to which records of others may lie.
    """

    first: int = 0
    ends: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TopicNotes:
    """A file in the checkpoint at `uri`: the id of the topic that is read, and the topics that were adopted."""

    uri: str

    def source(self) -> str | None:
        """Id of the topic that the query reads."""
        found = self._read().get("source")
        return None if found is None else str(found)

    def read_from(self, topic_id: str) -> None:
        """Remember which topic the query reads."""
        self._write({**self._read(), "source": topic_id})

    def adopted(self, topic: str) -> Adopted:
        """What is known of a topic, by its id; nothing where it was never adopted."""
        found = self._read().get("adopted", {}).get(topic)
        return Adopted() if found is None else Adopted(found["first"], {int(p): at for p, at in found["ends"].items()})

    def adopt(self, topic: str, adopted: Adopted) -> None:
        """Remember that a topic was adopted."""
        notes = self._read()
        self._write({**notes, "adopted": {**notes.get("adopted", {}), topic: asdict(adopted)}})

    def _read(self) -> dict[str, Any]:
        text = Folder(self.uri).read(_FILE)
        try:
            return {} if text is None else dict(json.loads(text))
        except (TypeError, ValueError):
            raise InputError(f"checkpoint {self.uri} is damaged: {_FILE} cannot be read; use a new one") from None

    def _write(self, notes: Mapping[str, object]) -> None:
        Folder(self.uri).write(_FILE, json.dumps(notes, indent=1) + "\n")
