"""What an error says of what was given: its type, and what was meant."""

from __future__ import annotations

import re
from typing import NamedTuple

_OURS = {
    "approx_count_distinct": "DistinctCount",
    "avg": "Mean",
    "count": "Count",
    "max": "Max",
    "min": "Min",
    "sum": "Sum",
    "var_samp": "Variance",
}
_CALL = re.compile(r"Column<'(\w+)\((\w+|\*)\)(?: AS (\w+))?'>")


def type_of(given: object) -> str:
    """Name of its type, with the library that it is of: there is more than one DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> type_of([1]), type_of(np.arange(2))
    ('list', 'numpy.ndarray')
    """
    library, name = type(given).__module__.partition(".")[0], type(given).__name__
    return name if library == "builtins" else f"{library}.{name}"


class Meant(NamedTuple):
    """An argument of `aggregate`: the name of the result, and the aggregate as a user writes it."""

    name: str
    aggregate: str


def meant(given: object) -> Meant:
    """The argument that stands for what was given, such as a column of Spark; a count where that does not tell.

    Examples
    --------
    >>> meant("Column<'sum(qty)'>")
    Meant(name='sum_qty', aggregate='aggregates.Sum("qty")')
    >>> meant("Column<'count(1) AS trades'>"), meant("total")
    (Meant(name='trades', aggregate='aggregates.Count()'), Meant(name='n', aggregate='aggregates.Count()'))
    """
    found = _CALL.fullmatch(str(given))
    if found is None or found[1] not in _OURS:
        return Meant("n", "aggregates.Count()")
    function, column, alias = found.groups()
    counts_rows = function == "count" and column in ("1", "*")
    argument, name = ("", "n") if counts_rows else (f'"{column}"', f"{function}_{column}")
    return Meant(alias or name, f"aggregates.{_OURS[function]}({argument})")
