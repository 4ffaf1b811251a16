"""Why a query failed, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.errors import AnalysisException

_INDETERMINATE = ("cannot rollback the resultstage", "indeterminate")
_JAVA = re.compile(r"^(?:Caused by: )?(?:[a-z][\w$]*\.)+([A-Z][\w$]*(?:Exception|Error)): (.+)$")
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w]*\.)*([A-Z]\w*(?:Error|Exception|Interrupt)): (.+)$")
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
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("Traceback (most recent call last)" in line for line in lines):
        found = [match for match in map(_PYTHON.match, lines) if match]
        if found:
            return _short(found[-1][2])
    found = [match for match in map(_JAVA.match, lines) if match]
    if found:
        return _short(f"{found[-1][2]} ({found[-1][1]})")
    return _short(lines[0] if lines else type(error).__name__)


def _short(text: str) -> str:
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"
