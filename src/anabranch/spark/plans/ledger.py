"""The ledger: a folder in which tasks leave reports, and the plan task leaves plans."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pyarrow import fs

from anabranch.errors import ConfigError, InputError, SnapshotError
from anabranch.groupings.plan import Plan, Report, pack_plan, pack_report, unpack_plan, unpack_report
from anabranch.location import locate

_SETTINGS = "anabranch.json"
# Spark replays the last batch only; a few more are kept for those who read the metrics.
KEPT_BATCHES = 20

_T = TypeVar("_T")


@dataclass(frozen=True)
class Ledger:
    """Reports and plans of one query, in a folder that driver and tasks reach through `pyarrow.fs`.

    Layout: ``<query id>/<batch>/plan`` and ``<query id>/<batch>/<edge|worker|observed>-<number>``; a chain of operators
    has ``<query id>/<batch>/tables``, ``<query id>/<batch>/pairs-<hop>-<worker>``, ``<query id>/placement-<batch>``,
    ``<query id>/period-<batch>-<hop>`` and, of stateful steps, ``<query id>/<batch>/moved-<operator>-<worker>``. Plans,
    tables, placements and periods are written once: the second to write one gets the first one back. No file is a
    pickle.

    On a local disk that always holds. On other file systems the ledger looks whether the file is there and then writes
    it, so of two attempts at a plan task that run at the same time the later may replace the file of the other. Their
    plans differ, because a plan holds the time at which it was made. This is harmless: any plan gives the right answer.
    A task that runs again and finds another plan sends rows to other workers. Spark notices that by its checksums, and
    runs again what has read them. Tables of a chain hold no time: both attempts make them of the same reports.

    Parameters
    ----------
    uri
        A local path or a URI that `pyarrow.fs` (or fsspec, where installed) knows.
    """

    uri: str

    def claim(self, identity: dict[str, Any]) -> None:
        """Make the folder this query's own; a query with other settings has another ledger."""
        text = json.dumps(identity, sort_keys=True, indent=1)
        try:
            self._filesystem.create_dir(self._root, recursive=True)
            known = self._create(_SETTINGS, text.encode())
        except OSError as error:
            raise InputError(
                f"ledger {self.uri} cannot be written: {error}; name a folder that tasks can write"
            ) from None
        try:
            before = dict(json.loads(known))
        except (TypeError, ValueError):
            raise InputError(f"ledger {self.uri} is damaged: {_SETTINGS} is not JSON; use a new folder") from None
        for name, value in json.loads(text).items():
            if before.get(name) != value:
                remedy = (
                    "start anew with another ledger and checkpoint"
                    if "chain" in identity
                    else "name a new ledger. With the same key the checkpoint may stay, unless states are resident"
                )
                raise ConfigError(
                    f"ledger {self.uri} belongs to a query with {name} {before.get(name)!r}, this one has {value!r}; "
                    f"keep the old settings, or {remedy}"
                )

    def check_claimed(self) -> None:
        """Refuse a folder that no query has made its own."""
        claimed = False
        with suppress(NotADirectoryError):
            claimed = _SETTINGS in self._names("")
        if not claimed:
            raise InputError(f"there is no ledger at {self.uri}; name the folder that the query got as ledger=…")

    def write_report(self, query: str, batch: int, name: str, report: Report) -> None:
        """Leave a report; a task that runs again replaces its own."""
        self._write(f"{query}/{batch:012d}/{name}", pack_report(report))

    def reports(self, query: str, batch: int, kind: str = "") -> dict[str, Report]:
        """Reports of a batch by name, those whose name begins with `kind`; what cannot be read is left out."""
        found = {}
        try:
            names = self._names(f"{query}/{batch:012d}")
        except OSError:
            return {}
        for name in names:
            if name.startswith(kind) and name != "plan" and not name.startswith("."):
                try:
                    found[name] = parse(unpack_report, self._read(f"{query}/{batch:012d}/{name}"))
                except (OSError, SnapshotError):
                    continue
        return dict(sorted(found.items()))

    def plan(self, query: str, batch: int) -> Plan | None:
        """Plan of a batch; None when there is none or it is damaged."""
        try:
            return parse(unpack_plan, self._read(f"{query}/{batch:012d}/plan"))
        except (OSError, SnapshotError):
            return None

    def plan_in_force(self, query: str, batch: int) -> Plan:
        """Plan of a batch; where it could not be written, the last one before it; an empty one where there is none.

        All who ask in the same batch get the same. A plan is written before the first task of the batch starts, or not
        at all; it never changes; and `forget` leaves all those that are looked at here. What makes it differ after all
        (a folder that goes or comes back in the middle of a batch, and then a task that runs again) changes routes,
        which Spark sees by the checksums that `balance` insists on. A batch that is replayed is routed as a whole.
        """
        with suppress(Exception):  # file systems raise what they like
            recent = [one for one in self.batches(query) if batch - KEPT_BATCHES <= one < batch]
            for one in (batch, *reversed(recent)):
                if (plan := self.plan(query, one)) is not None:
                    return plan
        return Plan()

    def settle_plan(self, query: str, batch: int, plan: Plan) -> Plan:
        """Write the plan of a batch unless there is one, and return the one that is there."""
        return parse(unpack_plan, self._create(f"{query}/{batch:012d}/plan", pack_plan(plan)))

    def put(self, query: str, name: str, data: bytes) -> None:
        """Leave a file below the query's folder; a task that runs again replaces its own."""
        self._write(f"{query}/{name}", data)

    def settle(self, query: str, name: str, data: bytes) -> bytes:
        """Write a file below the query's folder unless it is there, and return what is there."""
        return self._create(f"{query}/{name}", data)

    def found(self, query: str, name: str) -> bytes | None:
        """What a file below the query's folder holds; None where there is none."""
        try:
            return self._read(f"{query}/{name}")
        except OSError:
            return None

    def names(self, query: str, folder: str = "") -> list[str]:
        """Names of what is below a folder of the query, in order."""
        return sorted(name for name in self._names(f"{query}/{folder}") if not name.startswith("."))

    def remove(self, query: str, name: str) -> None:
        """Remove a file below the query's folder, if it is there."""
        with suppress(OSError):
            self._filesystem.delete_file(self._at(f"{query}/{name}"))

    def batches(self, query: str) -> list[int]:
        """Batches that left anything, ascending."""
        return sorted(int(name) for name in self._names(query) if name.isdigit())

    def queries(self) -> list[str]:
        """Queries that left anything."""
        return sorted(name for name in self._names("") if name != _SETTINGS)

    def forget(self, query: str, before: int) -> None:
        """Remove what belongs to batches before this one, as far as that can be done."""
        with suppress(OSError):
            for batch in self.batches(query):
                if batch < before:
                    # Another task may be removing it too.
                    with suppress(OSError):
                        self._filesystem.delete_dir(self._at(f"{query}/{batch:012d}"))

    @cached_property
    def _location(self) -> tuple[fs.FileSystem, str]:
        return locate(self.uri)

    @property
    def _filesystem(self) -> fs.FileSystem:
        return self._location[0]

    @property
    def _root(self) -> str:
        return self._location[1]

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _names(self, folder: str) -> list[str]:
        found = self._filesystem.get_file_info(fs.FileSelector(self._at(folder), allow_not_found=True))
        return [info.base_name for info in found]

    def _read(self, name: str) -> bytes:
        with self._filesystem.open_input_stream(self._at(name)) as stream:
            return bytes(stream.read())

    def _put(self, path: str, data: bytes) -> None:
        with self._filesystem.open_output_stream(path) as stream:
            stream.write(data)

    def _write(self, name: str, data: bytes) -> None:
        """Write so that a reader sees all or nothing."""
        self._place(name, data, os.replace)

    def _create(self, name: str, data: bytes) -> bytes:
        """Write unless it is there, and return what is there."""
        if self._filesystem.get_file_info(self._at(name)).type == fs.FileType.NotFound:
            with suppress(FileExistsError):
                self._place(name, data, os.link)
        return self._read(name)

    def _place(self, name: str, data: bytes, give_name: Callable[[str, str], None]) -> None:
        """Object stores show a file once it is whole; on a local disk it gets its name once it is whole."""
        path = self._at(name)
        folder, _, base = path.rpartition("/")
        self._filesystem.create_dir(folder, recursive=True)
        if not isinstance(self._filesystem, fs.LocalFileSystem):
            self._put(path, data)
            return
        temporary = f"{folder}/.{base}-{uuid.uuid4().hex}"
        try:
            self._put(temporary, data)
            give_name(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def parse(unpack: Callable[[bytes], _T], data: bytes) -> _T:
    """What a file holds; SnapshotError too where the file is whole but was written by another version."""
    try:
        return unpack(data)
    except SnapshotError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise SnapshotError(f"not a file of this version: {error!r}; start with a new ledger") from None
