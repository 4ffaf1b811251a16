"""The line above every picture: which stream, how many workers, sources and tuples, which window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from anabranch.printable import printable
from anabranch.report.units import count
from anabranch.simulate.result import Result

# Said elsewhere in the headline.
_SAID = ("name", "n_tuples")
# More would fill the headline.
_MOST_CHANGES = 3


def headline(results: Sequence[Result]) -> str:
    """One line that says what was run; whatever differs between the results is left out.

    The folders of a replayed file are left out as well: a picture is made to be shown.
    """
    parts = [stream_text(results)] if _agreed(r.stream for r in results) else []
    workers = _agreed(_counted(r.workers, "workers") + later_workers(r) for r in results)
    changes = _agreed(", ".join(r.settings.get("changes") or ()) for r in results)
    parts += [workers] if workers else [f"changes {changes}"] if changes else []
    speeds = _agreed(speeds_text(r) for r in results)
    if speeds not in (None, "1"):
        parts.append(f"speeds {speeds}")
    for name in ("sources", "tuples"):
        value = _agreed(getattr(r, name) for r in results)
        if value is not None:
            parts.append(_counted(value, name))
    window = _agreed(r.window for r in results)
    if window is not None:
        parts.append(f"window {count(window)}")
    return " · ".join(parts)


def later_workers(result: Result) -> str:
    """What changes make of the number of workers, to stand behind it: ``, then 17 from tuple 1 M``."""
    changes = result.settings.get("changes") or []
    if len(changes) > _MOST_CHANGES:
        return f", then {len(changes)} changes"
    n_workers = result.workers
    later: dict[int, int] = {}
    for change in changes:
        at, _, what = change.partition(":")
        n_workers += int(what) if what.startswith("+") else -1
        later[int(at)] = n_workers
    then = ", ".join(f"{count(n)} from tuple {count(at)}" for at, n in later.items())
    return f", then {then}" if then else ""


def speeds_text(result: Result) -> str:
    """Relative speeds of the workers, such as ``2, 1``; ``1`` where all are equally fast."""
    speeds = result.settings.get("speeds") or [1.0]
    return "1" if set(speeds) == {1.0} else ", ".join(f"{speed:g}" for speed in speeds)


def _counted(n: int, noun: str) -> str:
    return f"{count(n)} {noun if n != 1 else noun.removesuffix('s')}"


def stream_text(results: Sequence[Result]) -> str:
    """Stream's name and the parameters in which all results agree, such as ``zipf(n_keys=1000, z=1.4)``.

    A replayed file is called by its name: ``words.parquet, key word``.
    """
    first = results[0]
    shared = {
        name: value
        for name, value in first.stream_parameters.items()
        if name not in _SAID
        and value is not None
        and _agreed(str(r.stream_parameters.get(name)) for r in results) is not None
    }
    if "path" in shared:
        named = [f"{name} {printable(shared[name])}" for name in ("key", "timestamp") if name in shared]
        return ", ".join([value_text(shared["path"]), *named])
    listed = ", ".join(f"{name}={value_text(value)}" for name, value in shared.items())
    return f"{first.stream}({listed})" if listed else first.stream


def value_text(value: Any) -> str:
    """Parameter's value, short."""
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    if isinstance(value, float):
        return f"{value:g}"
    text = printable(value)
    return PurePath(text).name if "/" in text else text


def _agreed(values: Iterable[Any]) -> Any:
    """Value that all share, or None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
