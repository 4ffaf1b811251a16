"""numba's ``njit``, with a cache that notices every change.

numba stores compiled kernels and checks them against their own source file only. A kernel that inlines one of another
file would go on with the old one after an upgrade: so all stored kernels are dropped when any file changed in a part of
the package that has kernels.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import numba
from numba import njit

__all__ = ["njit"]

_PACKAGE = Path(__file__).parent
_STAMP = "kernels.digest"


def digest(package: Path) -> str:
    """Digest of the source files of a package's modules and subpackages, without subpackages that have no kernel."""
    whole = hashlib.blake2b(numba.__version__.encode(), digest_size=16)
    for part in sorted(package.iterdir()):
        paths = sorted(part.rglob("*.py")) if part.is_dir() else [part] if part.suffix == ".py" else []
        sources = {str(path.relative_to(package)).encode(): path.read_bytes() for path in paths}
        if part.is_file() or any(b"njit" in source for source in sources.values()):
            for name, source in sources.items():
                whole.update(name + b"\0" + source)
    return whole.hexdigest()


def drop_stale(package: Path, current: str) -> None:
    """Remove the compiled kernels of a package unless its stamp says that they are current."""
    stamp = package / "__pycache__" / _STAMP
    if stamp.exists() and stamp.read_text() == current:
        return
    for stored in [*package.rglob("__pycache__/*.nbi"), *package.rglob("__pycache__/*.nbc")]:
        stored.unlink(missing_ok=True)
    stamp.parent.mkdir(exist_ok=True)
    fresh = stamp.with_name(f"{_STAMP}.{os.getpid()}")
    fresh.write_text(current)
    fresh.replace(stamp)


def _prepare() -> None:
    current = digest(_PACKAGE)
    try:
        drop_stale(_PACKAGE, current)
        writable = os.access(_PACKAGE / "__pycache__", os.W_OK)
    except OSError:
        writable = False
    if not writable and not vars(numba.config)["CACHE_DIR"]:
        # numba keeps its kernels elsewhere then: let it be a folder named after the sources.
        with contextlib.suppress(OSError, RuntimeError):
            folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anabranch" / current
            folder.mkdir(parents=True, exist_ok=True)
            vars(numba.config)["CACHE_DIR"] = str(folder)


_prepare()
