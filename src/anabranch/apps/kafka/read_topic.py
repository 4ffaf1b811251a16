"""The topic that a query reads, compared with what its checkpoint knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch.apps.kafka.address import KafkaAddress
from anabranch.apps.kafka.connection import Connection
from anabranch.apps.kafka.gaps import Gap, gaps, places, size
from anabranch.apps.kafka.topic_notes import TopicNotes
from anabranch.apps.kafka.topic_offsets import TopicOffsets
from anabranch.apps.kafka.topics import beginnings, topic_id, topics_of
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.errors import InputError

# A query that is told to stop waits no longer than this for a broker that gives no answer.
_RUNNING_S = 5


@dataclass(frozen=True)
class ReadTopic:
    """A topic, and the checkpoint of the query that reads it.

    Guarantees
    ----------
    A query goes on only in the very topic that its checkpoint has read: one of the same name that was made after that
    topic was deleted is refused. Brokers of before 2.8 give a topic no id, and there it is not noticed.
    """

    address: KafkaAddress
    connection: Connection
    checkpoint: Checkpoint

    def check(self) -> None:
        """See that the topic is there, and that it is the one that the checkpoint has read; InputError where not."""
        known = topics_of(self._properties)
        if known is not None and self.address.topic not in known:
            raise InputError(self.missing(known))
        self._check_id(topic_id(self._properties, self.address.topic))

    def check_running(self) -> None:
        """See, while the query runs, that the topic is still the one that it reads; InputError where it is not."""
        try:
            found = topic_id(self._properties, self.address.topic, _RUNNING_S)
        except InputError:  # the query itself waits for a broker that is gone
            return
        self._check_id(found)

    def _check_id(self, found: str | None) -> None:
        notes = TopicNotes(self.checkpoint.uri)
        before = notes.source()
        if found is None or found == before:
            return
        if before is not None and self._offsets.reached() is not None:
            raise InputError(
                f"topic {self.address.topic} at {self.address.servers} is not the one that checkpoint "
                f"{self.checkpoint.uri} has read (id {before}, now {found}): it was deleted and made again, or is "
                "another cluster's, and the offsets in the checkpoint mean other records there; start with a new "
                "checkpoint and a new sink"
            )
        notes.read_from(found)

    def unread(self) -> list[Gap]:
        """Records that the checkpoint has not read yet and the topic has removed; none where brokers do not answer."""
        start = (self._offsets.reached() or {}).get(self.address.topic, {})
        return self.removed(start)

    def removed(self, start: Mapping[str, int], end: Mapping[str, int] | None = None) -> list[Gap]:
        """Records from `start` on (and before `end`) that the topic has removed; none where brokers do not answer."""
        partitions = [int(p) for p in (start if end is None else end)]
        first = beginnings(self._properties, self.address.topic, partitions) if partitions else None
        return [] if first is None else gaps(start, first, end)

    def lost(self, found: Sequence[Gap]) -> str:
        """That unread records are gone, and how to go on."""
        return (
            f"topic {self.address.topic} has removed {size(found):,} records that checkpoint {self.checkpoint.uri} has "
            f"not read ({places(found)}); go on without them with ?failOnDataLoss=false behind the topic in --source, "
            "or start with a new checkpoint; a longer retention.ms of the topic keeps records until they are read"
        )

    def missing(self, known: set[str] | None = None) -> str:
        """That the topic is not there, and what to do about it: a new one would not be what the query has read."""
        if self._offsets.reached() is None:
            return self.address.missing(known or ())
        return (
            f"{self.address.absent(known or ())}, but checkpoint {self.checkpoint.uri} has read it; correct the "
            "address, or let this user see it; if it was deleted, start with a new checkpoint, because a topic that "
            "is made again under its name is another one"
        )

    @property
    def _offsets(self) -> TopicOffsets:
        return TopicOffsets(self.checkpoint)

    @property
    def _properties(self) -> Mapping[str, str]:
        return self.address.properties(self.connection)
