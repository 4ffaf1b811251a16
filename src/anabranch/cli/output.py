"""Files that a command writes its results to."""

from __future__ import annotations

from pathlib import Path

from anabranch.errors import InputError


def check_writable(path: str | Path) -> None:
    """See that a file can be written, before a long run and not after it; missing folders are made."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        existed = target.exists()
        with target.open("ab"):
            pass
        if not existed:
            target.unlink()
    except OSError as error:
        raise InputError(f"cannot write to {str(path)!r}: {error.strerror}; choose another file") from error
