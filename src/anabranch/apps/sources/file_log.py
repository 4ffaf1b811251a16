"""Which files a micro-batch has read, as Spark has written it into a query's checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.sinks.folder import Folder
from anabranch.errors import InputError

_LOG, _COMPACT = "sources/0", ".compact"


@dataclass(frozen=True)
class FileLog:
    """The files in a checkpoint whose query reads a folder."""

    checkpoint: Checkpoint

    def of_batch(self, batch: int) -> list[str]:
        """Paths of the files that a batch has read; InputError where Spark has deleted that."""
        before = self._offset(batch - 1) if batch else -1
        return [path for at in range(before + 1, self._offset(batch) + 1) for path in self._added(at)]

    def _added(self, at: int) -> list[str]:
        """Files that an entry of the log has added; every tenth holds all before it as well."""
        return [unquote(entry["path"]) for entry in self._entries(at) if entry["batchId"] == at]

    def _entries(self, at: int) -> Iterator[dict[str, Any]]:
        names = self._folder.names(_LOG)
        later = sorted(int(n) for name in names if (n := name.removesuffix(_COMPACT)) != name and int(n) >= at)
        name = str(at) if str(at) in names else f"{later[0]}{_COMPACT}" if later else str(at)
        # A version, and a file a line.
        return map(json.loads, self._kept(f"{_LOG}/{name}").splitlines()[1:])

    def _offset(self, batch: int) -> int:
        # A version, settings, and where the batch ends in the log.
        return int(json.loads(self._kept(f"offsets/{batch}").splitlines()[-1])["logOffset"])

    def _kept(self, name: str) -> str:
        text = self._folder.read(name)
        if text is None:
            raise InputError(
                f"malformed rows cannot be found again: checkpoint {self.checkpoint.uri} has no {name} any more; "
                "start with a new checkpoint"
            )
        return text

    @property
    def _folder(self) -> Folder:
        return Folder(self.checkpoint.uri)
