"""A folder on any file system, as far as checkpoints and sinks need one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyarrow import fs

from anabranch.apps.sinks.hadoop import HadoopFiles
from anabranch.errors import InputError
from anabranch.location import locate


@dataclass(frozen=True)
class Folder:
    """A local path, or a URI that pyarrow, fsspec or Spark itself opens, the first of them that does."""

    uri: str

    def at(self, name: str) -> str:
        """The address of something in it, as Spark takes it."""
        return f"{self.uri.rstrip('/')}/{name}"

    def names(self, below: str = "") -> list[str]:
        """What is in it, or in a folder of it; nothing where that does not exist."""
        try:
            return sorted(self._files.names(below))
        except OSError as error:
            raise InputError(f"cannot look into {self.uri!r}: {error}; name a folder that can be read") from None

    def make(self) -> None:
        """Make it, with the folders above."""
        try:
            self._files.make()
        except OSError as error:
            raise InputError(f"cannot make {self.uri!r}: {error}; name a folder that can be written") from None

    def read(self, name: str) -> str | None:
        """Text of a file; None where there is none."""
        try:
            return self._files.read(name).decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {self.at(name)!r}: {error}; name a folder that can be read") from None

    def write(self, name: str, text: str) -> None:
        """Write a file whole, or not at all."""
        if self.read(name) == text:
            return
        self.make()
        try:
            self._files.write(f".{name}", text.encode())
            self._files.move(f".{name}", name)
        except OSError as error:
            raise InputError(f"cannot write to {self.uri!r}: {error}; name a folder that can be written") from None

    def delete(self, name: str) -> None:
        """Remove a folder with all that is in it, whether or not there is one."""
        try:
            if self._files.exists(name):
                self._files.delete(name)
        except OSError as error:
            raise InputError(f"cannot remove {self.at(name)!r}: {error}; name a folder that can be written") from None

    def replace(self, name: str, by: str) -> None:
        """Put the folder `by` in the place of the folder `name`, whether or not there is one."""
        self.delete(name)
        self._files.move(by, name)

    @cached_property
    def _files(self) -> ArrowFiles | HadoopFiles:
        try:
            return ArrowFiles(*locate(self.uri))
        except InputError:
            return HadoopFiles(self.uri)


@dataclass(frozen=True)
class ArrowFiles:
    """Files below a path of a file system of pyarrow's; every name is a path from there."""

    filesystem: fs.FileSystem
    root: str

    def names(self, below: str) -> list[str]:
        """What is in a folder; nothing where it does not exist."""
        found = self.filesystem.get_file_info(fs.FileSelector(self._path(below), allow_not_found=True))
        return [info.base_name for info in found]

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder."""
        return bool(self.filesystem.get_file_info(self._path(name)).type != fs.FileType.NotFound)

    def make(self) -> None:
        """Make the root, with the folders above."""
        self.filesystem.create_dir(self.root, recursive=True)

    def read(self, name: str) -> bytes:
        """All of a file."""
        with self.filesystem.open_input_stream(self._path(name)) as stream:
            return bytes(stream.read())

    def write(self, name: str, data: bytes) -> None:
        """Write a file, or overwrite it."""
        with self.filesystem.open_output_stream(self._path(name)) as stream:
            stream.write(data)

    def delete(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        self.filesystem.delete_dir(self._path(name))

    def move(self, name: str, to: str) -> None:
        """Rename; a file that is there is replaced."""
        self.filesystem.move(self._path(name), self._path(to))

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root
