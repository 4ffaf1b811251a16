"""Why a query failed, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from pyspark.errors import AnalysisException

from anabranch.spark.merging.fingerprint import refusal

_INDETERMINATE = ("cannot rollback the resultstage", "indeterminate")
_JAVA = re.compile(r"^(?:Caused by: |: )?(?:[a-z][\w$]*\.)+([A-Z][\w$]*(?:Exception|Error)): (.+)$")
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w]*\.)*([A-Z]\w*(?:Error|Exception|Interrupt)): (.+)$")
# Java's own error, passed on by a call from Python that says nothing about it.
_OF_JAVA = "Py4JJavaError"
_FILE = re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (\S+?)\.\s+(.*?)\s*SQLSTATE")
_REPLACE = "put a file that can be read there, under the same name"
_MOST = 400


def is_indeterminate(error: BaseException) -> bool:
    """Whether Spark gave up on a batch because a task that ran again gave other rows; a restart then loses nothing."""
    text = str(error).lower()
    return any(mark in text for mark in _INDETERMINATE)


def why_not_read(error: AnalysisException, columns: Iterable[str]) -> str:
    """Why Spark cannot read columns of a source that has these, in one line."""
    if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
        name = (error.getMessageParameters() or {}).get("objectName", "?").strip("`")
        return f"there is no column {name}, there are {', '.join(columns)}"
    return str(error).partition("\n")[0].rstrip(".")


def root_cause(error: BaseException) -> str:
    r"""The innermost reason that an error's text names.

    A Python error is the innermost of all: it was raised in a task, and everything around it only passed it on.

    Examples
    --------
    >>> root_cause(RuntimeError("Job aborted. Traceback (most recent call last):\n  File ...\nValueError: no"))
    'no'
    """
    refused = refusal(str(error))
    if refused is not None:
        return refused
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    unread = next(filter(None, map(_FILE.search, lines)), None)
    if unread:
        return f"cannot read {file_name(unquote(unread[1]))}: {unread[2] or _innermost(lines)}; {_REPLACE}"
    if any("Traceback (most recent call last)" in line for line in lines):
        found = [match for match in map(_PYTHON.match, lines) if match]
        if found and found[-1][1] != _OF_JAVA:
            return _short(found[-1][2])
    return _innermost(lines) or type(error).__name__


def file_name(path: str) -> str:
    """A file as its user writes it: without a scheme where it is local."""
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path


def _innermost(lines: list[str]) -> str:
    """What the last of Java's errors says; the first line where there is none."""
    found = [match for match in map(_JAVA.match, lines) if match]
    if found:
        return _short(f"{found[-1][2]} ({found[-1][1]})")
    return _short(lines[0] if lines else "")


def _short(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
