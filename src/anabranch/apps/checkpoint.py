"""Checkpoints that know which query they belong to."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anabranch.apps.folder import Folder
from anabranch.errors import ConfigError, InputError
from anabranch.spark.location import absolute, locate

_SETTINGS = "anabranch.json"


@dataclass(frozen=True)
class Checkpoint:
    """Spark's checkpoint folder, with a file beside Spark's own that says which settings it was made with.

    Guarantees
    ----------
    A query with another application, key, grouping, edge, regime or number of workers is refused before it starts.

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
        found = absolute(self.ledger_uri or self._folder.at("anabranch-ledger"))
        try:
            locate(found)
        except InputError as error:
            if self.ledger_uri is not None:
                raise
            raise ConfigError(
                f"the ledger cannot be in the checkpoint, for tasks write it from Python: {error}; "
                "name a folder that Python reaches on every host with --ledger"
            ) from None
        return found

    @property
    def _folder(self) -> Folder:
        return Folder(self.uri)

    def claim(self, identity: Mapping[str, Any]) -> str:
        """Bind the checkpoint to these settings, or see that it is bound to them; gives the checkpoint's own name."""
        # Looked up first: it may be out of reach, and the checkpoint is to be left as it was then.
        _ = self.ledger
        text = self._folder.read(_SETTINGS)
        if text is not None:
            return self._check(text, identity)
        if "offsets" in self._folder.names():
            raise ConfigError(
                f"checkpoint {self.uri} was not made by anabranch run ({_SETTINGS} is missing); choose another folder"
            )
        made = uuid.uuid4().hex
        self._folder.write(_SETTINGS, json.dumps({"id": made, **identity}, indent=1) + "\n")
        return made

    def batches(self) -> int:
        """Micro-batches that are done."""
        done = [int(name) for name in self._folder.names("commits") if name.isdigit()]
        return max(done) + 1 if done else 0

    def _check(self, text: str, identity: Mapping[str, Any]) -> str:
        try:
            before = json.loads(text)
            known = str(before["id"])
        except (ValueError, KeyError, TypeError):
            raise InputError(f"checkpoint {self.uri} is damaged: {_SETTINGS} cannot be read; use a new one") from None
        for name, value in identity.items():
            if before.get(name) != value:
                raise ConfigError(
                    f"checkpoint {self.uri} was made with {name} {_shown(before.get(name))}, not {_shown(value)}; "
                    "keep that, or start with a new checkpoint"
                )
        return known


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "(" + ", ".join(f"{name}={part}" for name, part in value.items()) + ")"
    return str(value)
