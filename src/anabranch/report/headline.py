"""The line above every picture: which stream, how many workers, sources and tuples, which window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from anabranch.report.units import count
from anabranch.simulate.result import Result

# Said elsewhere in the headline.
_SAID = ("name", "n_tuples")


def headline(results: Sequence[Result]) -> str:
    """One line that says what was run; whatever differs between the results is left out.

    The folders of a replayed file are left out as well: a picture is made to be shown.
    """
    parts = [stream_text(results)] if _agreed(r.stream for r in results) else []
    for name in ("workers", "sources", "tuples"):
        value = _agreed(getattr(r, name) for r in results)
        if value is not None:
            parts.append(f"{count(value)} {name if value != 1 else name.removesuffix('s')}")
    window = _agreed(r.window for r in results)
    if window is not None:
        parts.append(f"window {count(window)}")
    return " · ".join(parts)


def stream_text(results: Sequence[Result]) -> str:
    """Stream's name and the parameters in which all results agree, such as ``zipf(n_keys=1000, z=1.4)``."""
    first = results[0]
    shared = {
        name: value
        for name, value in first.stream_parameters.items()
        if name not in _SAID
        and value is not None
        and _agreed(str(r.stream_parameters.get(name)) for r in results) is not None
    }
    listed = ", ".join(f"{name}={value_text(value)}" for name, value in shared.items())
    return f"{first.stream}({listed})" if listed else first.stream


def value_text(value: Any) -> str:
    """Parameter's value, short."""
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    return PurePath(text).name if "/" in text else text


def _agreed(values: Iterable[Any]) -> Any:
    """Value that all share, or None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
