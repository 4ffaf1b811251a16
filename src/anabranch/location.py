"""Where a path or URI is: the file system that Python reaches it through."""

from __future__ import annotations

import os
import re

from pyarrow import fs

from anabranch.errors import InputError

# Spark writes file:/folder, others file:///folder.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def is_local(uri: str) -> bool:
    """Whether it is a path on this machine's own disk."""
    found = _SCHEME.match(uri)
    return found is None or found[1].lower() == "file"


def absolute(uri: str) -> str:
    """The same place, whatever folder a process runs in.

    Examples
    --------
    >>> absolute("file:///data/state"), absolute("s3://bucket/state")
    ('/data/state', 's3://bucket/state')
    """
    if not is_local(uri):
        return uri
    path = re.sub(r"^file:(//(?=/))?", "", uri, flags=re.IGNORECASE)
    return os.path.abspath(path)


def locate(uri: str) -> tuple[fs.FileSystem, str]:
    """File system of a path or URI, and the path in it: pyarrow's own, or any of fsspec's, where that is installed."""
    if is_local(uri):
        return fs.LocalFileSystem(), absolute(uri)
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
        return filesystem, path
    except (ValueError, OSError) as error:
        return _with_fsspec(uri, error)


def _with_fsspec(uri: str, before: Exception) -> tuple[fs.FileSystem, str]:
    try:
        import fsspec

        filesystem, path = fsspec.core.url_to_fs(uri)
        return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path
    except (ImportError, ValueError, OSError) as error:
        raise InputError(
            f"{uri} is not a location that pyarrow or fsspec opens here ({_first_line(before)}; {_first_line(error)}); "
            "name another, or install what is missing"
        ) from None


def _first_line(error: Exception) -> str:
    """What went wrong, without the hundred places where pyarrow has looked for a library."""
    return str(error).partition("\n")[0]
