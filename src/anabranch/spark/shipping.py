"""The package as an archive, which Spark unpacks beside every executor: no host needs anabranch installed."""

from __future__ import annotations

import atexit
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

# Folder that the archive becomes, in the directory that an executor runs in.
UNPACKED = "anabranch_package"
_PACKAGE = Path(__file__).parents[1]
_PYTHONPATH = "spark.executorEnv.PYTHONPATH"


def shipped(options: Mapping[str, str], master: str) -> dict[str, str]:
    """These options of a session, with which executors import this very package, whatever is installed there.

    What the options say themselves about archives and the Python path stays, after ours. The archive lives as long as
    this process.
    """
    folder = tempfile.mkdtemp(prefix="anabranch-shipped-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archives = "spark.yarn.dist.archives" if master.startswith("yarn") else "spark.archives"
    archive = f"{pack(folder)}#{UNPACKED}"
    return {
        **options,
        archives: ",".join(filter(None, [archive, options.get(archives)])),
        _PYTHONPATH: os.pathsep.join(filter(None, [UNPACKED, options.get(_PYTHONPATH)])),
    }


def pack(folder: str) -> str:
    """Write ``anabranch.tar.gz`` into a folder, and give its path.

    It holds the sources, and the kernels that are compiled: numba knows a kernel by what its source file holds (older
    releases by the file's time, so times are kept), not by where that is. A host with another processor or another
    numba leaves them aside and compiles its own.
    """
    path = Path(folder).absolute() / "anabranch.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for source in _files():
            # Read whole before it is described: another process may be replacing a kernel right now.
            data, info = source.read_bytes(), tarfile.TarInfo(str(source.relative_to(_PACKAGE.parent)))
            info.size, info.mtime, info.mode = len(data), source.stat().st_mtime, 0o644
            archive.addfile(info, io.BytesIO(data))
    return str(path)


def _files() -> Iterator[Path]:
    for path in sorted(_PACKAGE.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            yield path
