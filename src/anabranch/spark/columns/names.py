"""Names of columns: which column a name means, and names that Spark hands to Python without quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from anabranch.errors import InputError

Fold = Callable[[str], str]
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
_ESCAPED = re.compile("%(2E|60|25)")


def plain(name: str) -> str:
    """The name without dots and backticks, which `mapInArrow` would take for syntax: it looks columns up by name."""
    if "." not in name and "`" not in name and shown(name) == name:
        return name
    return re.sub("[.`%]", lambda found: f"%{ord(found[0]):02X}", name)


def shown(name: str) -> str:
    """The name that `plain` was given."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)


def read_by(what: str, names: Iterable[str], columns: Mapping[str, str], fold: Fold) -> tuple[str, ...]:
    """The columns that an aggregate reads.

    A name is first taken as it is, dots and all, then as Spark reads a quoted one; then as one that differs in case,
    where that is the same to the session.

    Parameters
    ----------
    what
        Who reads them, for errors.
    names
        As the user has written them.
    columns
        All that there are: from the name that the user sees to the one in the DataFrame.
    fold
        What makes names equal that are one name to the session.
    """
    return tuple(columns[_found(what, name, columns, fold)] for name in names)


def _found(what: str, name: str, columns: Mapping[str, str], fold: Fold) -> str:
    quoted = _QUOTED.fullmatch(name)
    spellings = [name, *([quoted[1].replace("``", "`")] if quoted else [])]
    for spelling in spellings:
        if spelling in columns:
            return spelling
    alike = [column for column in columns if fold(column) in map(fold, spellings)]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise InputError(f"{what} reads column {name}, which may be {' or '.join(alike)}; write one of them")
    field = "; take a field out of a struct first, by withColumn" if "." in name else ""
    raise InputError(f"{what} reads column {name}, which is not there; there are {', '.join(columns)}{field}")
