"""What Java prints, without what Spark tells of each stateful operator in Python."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Thread

_STDERR = 2
_WORKER = rb"Streaming TransformWithStateIn(Pandas|PySpark) Python worker"
_NOISE = re.compile(
    rb"Starting %b\.$|%b (finish init stage of Python runner\. |received parameters for UDF\. |"
    rb"Starting execution of UDF: |Completed execution of UDF: )" % (_WORKER, _WORKER)
)


def filtered_stderr() -> int:
    """A pipe to write to instead of stderr: it passes on all lines except Spark's five per operator."""
    read, write = os.pipe()
    Thread(target=_copy, args=(read,), name="lines of Java", daemon=True).start()
    return write


def without_noise(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without those five, and the empty one that is printed behind each."""
    blank = 0
    for line in lines:
        if _NOISE.match(line.rstrip()):
            blank += 1
        elif blank and not line.strip():
            blank -= 1
        else:
            yield line


def _copy(read: int) -> None:
    with os.fdopen(read, "rb") as lines:
        for line in without_noise(lines):
            # The reader of the lines may have gone; Java must not wait for it.
            with suppress(OSError, ValueError):
                os.write(_STDERR, line)
