"""numba's ``njit``, with a cache that notices every change.

numba stores compiled kernels and checks them against their own source file only. A kernel that inlines one of another
file would go on with the old one after an upgrade: so the stored kernels of the whole package are dropped when any of
its files changed.
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
    """Digest of all source files of a package."""
    whole = hashlib.blake2b(numba.__version__.encode(), digest_size=16)
    for path in sorted(package.rglob("*.py")):
        whole.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
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
