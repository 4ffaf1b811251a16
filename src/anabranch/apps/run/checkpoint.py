"""Checkpoints that know which query they belong to."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anabranch.apps.sinks.folder import Folder
from anabranch.errors import ConfigError, InputError
from anabranch.location import absolute, locate

_SETTINGS, _LEDGER = "anabranch.json", "anabranch-ledger"
_ROUTING = "routing"


@dataclass(frozen=True)
class Checkpoint:
    """Spark's checkpoint folder, with a file beside Spark's own that says which settings it was made with.

    Guarantees
    ----------
    A query that would read the states wrongly is refused before it starts: one with another application, key or regime,
    or with another number of workers where states stay on them. One that only routes otherwise goes on with all totals.

    Parameters
    ----------
    uri
        A local path, or any URI that Spark opens.
    ledger_uri
        Where the query's ledger is; inside the checkpoint unless told. Tasks write it from Python, which does not reach
        all that Spark does.
    """

    uri: str
    ledger_uri: str | None = None

    @cached_property
    def ledger(self) -> str:
        """Where the query's ledger is, for driver and tasks alike."""
        found = absolute(self.ledger_uri or self._folder.at(_LEDGER))
        try:
            locate(found)
        except InputError as error:
            if self.ledger_uri is not None:
                raise
            raise ConfigError(
                f"the ledger cannot be in the checkpoint, because tasks write it from Python: {error}; "
                "name a folder that Python reaches on every host with --ledger"
            ) from None
        return found

    @property
    def _folder(self) -> Folder:
        return Folder(self.uri)

    def claim(self, identity: Mapping[str, Any], routing: Mapping[str, Any]) -> str:
        """Bind the checkpoint to these settings, or see that it is bound to them; gives the checkpoint's own name.

        Parameters
        ----------
        identity
            Settings that the states depend on.
        routing
            Those that may change. What the ledger has learned under others is forgotten.
        """
        # Looked up first: it may be out of reach, and the checkpoint is to be left as it was then.
        _ = self.ledger
        text = self._folder.read(_SETTINGS)
        if text is not None:
            before = self._parsed(text)
            self._check(before, identity)
            if before.get(_ROUTING) != routing:
                self._route_anew({**before, _ROUTING: dict(routing)})
            return str(before["id"])
        if "offsets" in self._folder.names():
            raise ConfigError(
                f"checkpoint {self.uri} was not made by anabranch run ({_SETTINGS} is missing); choose another folder"
            )
        made = uuid.uuid4().hex
        self._write({"id": made, **identity, _ROUTING: dict(routing)})
        return made

    def batches(self) -> int:
        """Micro-batches that are done."""
        done = [int(name) for name in self._folder.names("commits") if name.isdigit()]
        return max(done) + 1 if done else 0

    def held(self, flush_every: int) -> int:
        """Micro-batches whose states workers still hold: those since the last one that handed all on."""
        done = self.batches()
        since = done % flush_every
        # A batch that read nothing handed on what was held.
        return next((back for back in range(since) if self._read_nothing(done - 1 - back)), since)

    def _read_nothing(self, batch: int) -> bool:
        """Whether a batch ended where the one before it had: behind two lines of Spark's own come the offsets."""
        ends = [(self._folder.read(f"offsets/{number}") or "").splitlines()[2:] for number in (batch - 1, batch)]
        return ends[0] == ends[1] != []

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            before = dict(json.loads(text))
            _ = before["id"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"checkpoint {self.uri} is damaged: {_SETTINGS} cannot be read; use a new one") from None
        return before

    def _check(self, before: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
        for name, value in identity.items():
            if before.get(name) != value:
                raise ConfigError(
                    f"checkpoint {self.uri} was made with {name} {before.get(name)}, not {value}, and its states hold "
                    f"for nothing else; go on with {name} {before.get(name)}, or start from nothing with a new "
                    "checkpoint"
                )

    def _route_anew(self, settings: Mapping[str, Any]) -> None:
        # A ledger that the user has named may hold more than ours: that is left to the query, which refuses it.
        if self.ledger_uri is None:
            self._folder.delete(_LEDGER)
        self._write(settings)

    def _write(self, settings: Mapping[str, Any]) -> None:
        self._folder.write(_SETTINGS, json.dumps(settings, indent=1) + "\n")
