"""A folder on any file system, as far as checkpoints and sinks need one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

from pyarrow import fs

from anabranch.errors import InputError


@dataclass(frozen=True)
class Folder:
    """A local path, or a URI that `pyarrow.fs` knows."""

    uri: str

    def at(self, name: str) -> str:
        """The address of something in it, as Spark takes it."""
        return f"{self.uri.rstrip('/')}/{name}"

    def names(self, below: str = "") -> list[str]:
        """What is in it, or in a folder of it; nothing where that does not exist."""
        try:
            found = self._filesystem.get_file_info(fs.FileSelector(self._path(below), allow_not_found=True))
        except OSError as error:
            raise InputError(f"cannot look into {self.uri!r}: {error}; name a folder that can be read") from None
        return sorted(info.base_name for info in found)

    def make(self) -> None:
        """Make it, with the folders above."""
        try:
            self._filesystem.create_dir(self._root, recursive=True)
        except OSError as error:
            raise InputError(f"cannot make {self.uri!r}: {error}; name a folder that can be written") from None

    def read(self, name: str) -> str | None:
        """Text of a file; None where there is none."""
        try:
            with self._filesystem.open_input_stream(self._path(name)) as stream:
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {self.at(name)!r}: {error}; name a folder that can be read") from None

    def write(self, name: str, text: str) -> None:
        """Write a file whole, or not at all."""
        self.make()
        try:
            with self._filesystem.open_output_stream(self._path(f".{name}")) as stream:
                stream.write(text.encode())
            self._filesystem.move(self._path(f".{name}"), self._path(name))
        except OSError as error:
            raise InputError(f"cannot write to {self.uri!r}: {error}; name a folder that can be written") from None

    def replace(self, name: str, by: str) -> None:
        """Put the folder `by` in the place of the folder `name`, whether or not there is one."""
        if self._filesystem.get_file_info(self._path(name)).type != fs.FileType.NotFound:
            self._filesystem.delete_dir(self._path(name))
        self._filesystem.move(self._path(by), self._path(name))

    @cached_property
    def _location(self) -> tuple[fs.FileSystem, str]:
        if "://" not in self.uri:
            return fs.LocalFileSystem(), os.path.abspath(self.uri.removeprefix("file:"))
        try:
            filesystem, path = fs.FileSystem.from_uri(self.uri)
        except (ValueError, OSError) as error:
            raise InputError(f"cannot reach {self.uri!r}: {error}; name a folder that pyarrow can reach") from None
        return filesystem, path

    @property
    def _filesystem(self) -> fs.FileSystem:
        return self._location[0]

    @property
    def _root(self) -> str:
        return self._location[1]

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
