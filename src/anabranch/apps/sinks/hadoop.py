"""Files through Spark's own Hadoop file systems, for what Python cannot open by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext

from anabranch.errors import InputError


class NeedsSessionError(InputError):
    """Only Spark reaches the location, and none runs yet."""


@dataclass(frozen=True)
class HadoopFiles:
    """Files below a URI, by the Spark that runs in this process; on the driver only.

    Every name is a path from `root`; an empty one is `root` itself. What fails is an OSError, as in pyarrow.
    """

    root: str

    def names(self, below: str) -> list[str]:
        """What is in a folder; nothing where it does not exist."""
        if not self.exists(below):
            return []
        found = self._call("listStatus", self._path(below))
        return [str(status.getPath().getName()) for status in found]

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder."""
        return bool(self._call("exists", self._path(name)))

    def make(self) -> None:
        """Make the root, with the folders above."""
        if not self._call("mkdirs", self._path("")):
            raise OSError(f"{self.root} was not made")

    def read(self, name: str) -> bytes:
        """All of a file."""
        if not self.exists(name):
            raise FileNotFoundError(name)
        stream = self._call("open", self._path(name))
        try:
            return bytes(_java(stream.readAllBytes))
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        """Write a file, or overwrite it."""
        stream = self._call("create", self._path(name), True)
        try:
            _java(stream.write, bytearray(data))
        finally:
            _java(stream.close)

    def delete(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        self._call("delete", self._path(name), True)

    def move(self, name: str, to: str) -> None:
        """Rename; Hadoop replaces nothing, so what is there goes first."""
        if self.exists(to):
            self.delete(to)
        if not self._call("rename", self._path(name), self._path(to)):
            raise OSError(f"{name} could not be renamed to {to}")

    def _path(self, name: str) -> Any:
        text = f"{self.root.rstrip('/')}/{name}" if name else self.root
        return _java(self._context._jvm.org.apache.hadoop.fs.Path, text)

    def _call(self, method: str, path: Any, *args: Any) -> Any:
        configuration = self._context._jsc.hadoopConfiguration()
        return _java(getattr(_java(path.getFileSystem, configuration), method), path, *args)

    @property
    def _context(self) -> Any:
        # Not the active session: that is a thread's own, and a sink is called by another thread.
        context = SparkContext._active_spark_context
        if context is None:
            raise NeedsSessionError(
                f"{self.root} is a location that only Spark opens, and no Spark runs yet; start a session first"
            )
        return context


def _java(call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:  # py4j has one class for whatever Java throws
        thrown = getattr(error, "java_exception", None)
        raise OSError(str(error if thrown is None else thrown.getMessage() or thrown.toString())) from None
