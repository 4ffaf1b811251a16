"""Groupings by name, as the command line spells them: ``partial-key(choices=3)``."""

from __future__ import annotations

import ast
import difflib
import math
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping
from anabranch.groupings.schemes.consistent import ConsistentGrouping
from anabranch.groupings.schemes.d_choices import DChoices
from anabranch.groupings.schemes.distribution_aware import DistributionAwareKeyGrouping
from anabranch.groupings.schemes.dstream import DStream
from anabranch.groupings.schemes.dynamic_key import DynamicKeyGrouping
from anabranch.groupings.schemes.fish import Fish
from anabranch.groupings.schemes.key import KeyGrouping
from anabranch.groupings.schemes.offline_greedy import OfflineGreedy
from anabranch.groupings.schemes.online_greedy import OnlineGreedy
from anabranch.groupings.schemes.partial_key import PartialKeyGrouping
from anabranch.groupings.schemes.shuffle import ShuffleGrouping
from anabranch.groupings.schemes.static_two_choices import StaticTwoChoices
from anabranch.groupings.schemes.table import TableGrouping
from anabranch.groupings.schemes.w_choices import WChoices
from anabranch.groupings.spillway.spillway import Spillway

_CLASSES: tuple[type[Grouping], ...] = (
    Spillway,
    KeyGrouping,
    ShuffleGrouping,
    StaticTwoChoices,
    OnlineGreedy,
    OfflineGreedy,
    PartialKeyGrouping,
    DChoices,
    WChoices,
    ConsistentGrouping,
    DStream,
    Fish,
    DynamicKeyGrouping,
    DistributionAwareKeyGrouping,
    TableGrouping,
)


# A number may be written as a whole number, so that one is only asked for where nothing else will do.
_KINDS = {str: "text in quotes", bool: "True or False", float: "a number", int: "a whole number", type(None): "None"}


def names() -> list[str]:
    """Names of all groupings."""
    return [cls.name for cls in _CLASSES]


def named(name: str) -> type[Grouping]:
    """Class of a grouping's name."""
    for cls in _CLASSES:
        if cls.name == name:
            return cls
    close = difflib.get_close_matches(name, names(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names())}"
    raise ConfigError(f"no grouping is named {name!r}; {hint}")


def settable(cls: type[Grouping]) -> dict[str, Any]:
    """Parameters that can be written as text, with their defaults."""
    return {
        f.name: f.default
        for f in fields(cls)  # type: ignore[arg-type]
        if isinstance(f.default, int | float | str | bool | None)
    }


def parse(text: str) -> Grouping:
    """Grouping from its name and, in brackets, parameters.

    Examples
    --------
    >>> parse("partial-key(choices=3)").choices
    3
    """
    name, bracket, rest = text.strip().partition("(")
    cls = named(name.strip())
    if not bracket:
        return cls()
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        parameters = {str(k.arg): _value(k.value) for k in call.keywords}
        if len(parameters) < len(call.keywords):
            raise ValueError
    except (ValueError, SyntaxError):
        raise ConfigError(f"cannot read {text!r}; write it as in 'partial-key(choices=3)'") from None
    for parameter, value in parameters.items():
        _check(cls, parameter, value)
    return cls(**parameters)


class _Word(str):
    """A value written without quotes: no kind of parameter takes one, but an error can name it."""


def _value(node: ast.expr) -> Any:
    written = ast.unparse(node)
    if written.lstrip("-") in ("nan", "inf"):
        return float(written)
    return _Word(written) if isinstance(node, ast.Name) else ast.literal_eval(node)


def _check(cls: type[Grouping], parameter: str, value: object) -> None:
    known = settable(cls)
    if parameter not in known:
        listed = ", ".join(known) or "no parameters"
        raise ConfigError(f"{cls.name} has no parameter {parameter!r}; it takes {listed}")
    hint = get_type_hints(cls)[parameter]
    kinds = set(get_args(hint) or (hint,))
    if float in kinds:
        kinds.add(int)
    if type(value) not in kinds:
        wanted = " or ".join(_KINDS[kind] for kind in _KINDS if kind in kinds)
        got = str(value) if isinstance(value, _Word) and str in kinds else repr(value)
        raise ConfigError(f"{parameter} must be {wanted}, got {got}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{parameter} must be a finite number, got {value}")
