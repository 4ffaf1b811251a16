"""Says which brokers a run waits for, because Kafka's clients wait in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread

from anabranch.apps.kafka.topics import Caller
from anabranch.apps.run.notes import Note

# A broker that is asked has some seconds for its answer, so a line comes about as long after the last one.
_EVERY_S = 2.0
# Missing answers in a row. A busy machine misses one.
_PATIENCE = 2

Answers = Callable[[], bool]
"""Whether a broker answers; it takes the time that the broker has for it."""


@contextmanager
def watched(brokers: Mapping[str, Mapping[str, str]], note: Note) -> Iterator[None]:
    """Have a line told when brokers give no answer, and one when they do again, as long as the block runs.

    Parameters
    ----------
    brokers
        Per address, the properties of Kafka's own clients.
    """
    ended = Event()
    for servers, properties in brokers.items():
        Thread(target=_watch, args=(servers, properties, note, ended), daemon=True).start()
    try:
        yield
    finally:
        # They are not waited for: a broker that is gone would keep them for seconds.
        ended.set()


def _watch(servers: str, properties: Mapping[str, str], note: Note, ended: Event) -> None:
    with Caller(properties) as caller:
        tell_changes(servers, caller.answers, note, lambda: ended.wait(_EVERY_S))


def tell_changes(servers: str, answers: Answers, note: Note, ended: Callable[[], bool]) -> None:
    """Ask until the run has ended, and tell each time that the answer is another one than before."""
    silent = 0
    while not ended():
        before, silent = silent, 0 if answers() else silent + 1
        if silent == _PATIENCE:
            note(f"waiting for Kafka at {servers}, which gives no answer")
        if before >= _PATIENCE and not silent:
            note(f"Kafka at {servers} answers again")
