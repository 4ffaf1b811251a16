"""What an aggregate says of itself before a query starts; mistakes of a user's own become one line that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from anabranch.aggregates import Aggregate, StateColumn, Types
from anabranch.errors import AnabranchError, InputError
from anabranch.spark.advice import type_of


def inputs_of(name: str, one: Aggregate) -> tuple[str, ...]:
    """Names of the columns that an aggregate reads."""
    made = _said(name, one, "inputs", lambda: one.inputs)
    if isinstance(made, str):
        raise InputError(f"{_who(name, one)} inputs must be a tuple of names, got the text {made!r}; write ({made!r},)")
    if not isinstance(made, tuple | list) or not all(isinstance(each, str) for each in made):
        raise InputError(f"{_who(name, one)} inputs must be a tuple of names of columns, got {made!r}")
    return tuple(made)


def state_of(name: str, one: Aggregate, types: Types) -> tuple[StateColumn, ...]:
    """Columns of its state."""
    made = _said(name, one, "state", lambda: one.state(types))
    if not isinstance(made, tuple | list) or not all(isinstance(each, StateColumn) for each in made) or not made:
        raise InputError(f"{_who(name, one)} state must return a tuple of StateColumn, at least one, got {made!r}")
    names = [each.name for each in made]
    if len(set(names)) != len(names):
        raise InputError(f"{_who(name, one)} state columns must differ in their names, got {', '.join(names)}")
    return tuple(made)


def native_of(name: str, one: Aggregate, types: Types, columns: tuple[StateColumn, ...]) -> str | None:
    """The SQL of its result, if it has one."""
    made = _said(name, one, "native_result", lambda: one.native_result(types))
    if made is None:
        return None
    if not isinstance(made, str):
        raise InputError(f"{_who(name, one)} native_result must return SQL as text, or None, got {type_of(made)}")
    names = [each.name for each in columns]
    try:
        made.format(**dict.fromkeys(["ansi", *names], ""))
    except (AttributeError, IndexError, KeyError, ValueError):
        raise InputError(
            f"{_who(name, one)} native_result may have {', '.join(names)} or ansi in braces, got {made!r}; "
            "write other braces twice"
        ) from None
    return made


def result_type_of(name: str, one: Aggregate, types: Types) -> pa.DataType:
    """Arrow type of its result."""
    made = _said(name, one, "result_type", lambda: one.result_type(types))
    if not isinstance(made, pa.DataType):
        raise InputError(f"{_who(name, one)} result_type must return a pyarrow.DataType, got {type_of(made)}")
    return made


def _said(name: str, one: Aggregate, method: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except AnabranchError:  # a type that cannot be aggregated
        raise
    except Exception as error:  # whatever a user's code raises
        raise InputError(f"{_who(name, one)} {method} raised {type(error).__name__}: {error}") from error


def _who(name: str, one: Aggregate) -> str:
    return f"aggregate {name} ({type(one).__name__}):"
