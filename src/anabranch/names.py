"""Things that are found by a name, and made from a text such as ``partial-key(choices=3)``."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, NoReturn, TypeVar, get_args, get_type_hints

from anabranch.errors import ConfigError
from anabranch.numerals import decimals

# An entry of a catalogue, and what calling it makes.
E = TypeVar("E", bound=Callable[..., Any])
T = TypeVar("T")

# A number may be written as a whole number, so "a whole number" is asked for only where nothing else will do.
_KINDS = {str: "text in quotes", bool: "True or False", float: "a number", int: "a whole number", type(None): "None"}
_WORDS = {"True": True, "False": False, "None": None}
_PIECE = re.compile(r"""\s*(?:(\w+)\s*=\s*)?('[^']*'|"[^"]*"|[^\s,'"()=](?:[^,'"()=]*[^\s,'"()=])?)\s*(?:,|\Z)""")
_NUMBER = re.compile(r"[-+.]*[0-9]")


@dataclass(frozen=True)
class Parameter:
    """A parameter whose values can be written as text.

    Parameters
    ----------
    name
        As it is written: that of the field without the ``n_`` of a count.
    field
        As Python calls it.
    kinds
        Types that its values may have.
    default
        Its value where none is written.
    """

    name: str
    field: str
    kinds: frozenset[type]
    default: Any

    def values(self, pieces: Iterable[str]) -> list[Any]:
        """The values that texts say; a text may be a range of numbers.

        Examples
        --------
        >>> Parameter("keys", "n_keys", frozenset({int}), 10).values(["5", "1k:3k:1k"])
        [5, 1000, 2000, 3000]
        """
        return [value for piece in pieces for value in self._read(piece)]

    def one(self, pieces: Sequence[str]) -> Any:
        """The only value that texts say."""
        values = self.values(pieces)
        if len(values) > 1:
            raise ConfigError(f"{self.name} takes one value here, got {','.join(pieces)}; only sweeps take several")
        return values[0]

    def _read(self, text: str) -> list[Any]:
        if text[:1] in ("'", '"'):
            return [text[1:-1]] if str in self.kinds else self._refuse(repr(text[1:-1]))
        if text in _WORDS:
            return [_WORDS[text]] if type(_WORDS[text]) in self.kinds else self._refuse(text)
        is_number = _NUMBER.match(text) is not None
        if is_number and self.kinds & {int, float}:
            return [self._number(number, text) for number in decimals(text, self.name)]
        return self._refuse(text if is_number or str in self.kinds else repr(text))

    def _number(self, number: Decimal, text: str) -> int | float:
        if int in self.kinds and number == number.to_integral_value():
            return int(number)
        if float not in self.kinds:
            self._refuse(text)
        # What is written as a whole number stays one, also where any number will do.
        return int(number) if number.as_tuple().exponent == 0 else float(number)

    def _refuse(self, got: str) -> NoReturn:
        wanted = " or ".join(_KINDS[kind] for kind in _KINDS if kind in self.kinds)
        raise ConfigError(f"{self.name} must be {wanted}, got {got}")


def parameters_of(entry: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of a class or function that can be written as text, by the name that is written."""
    found = {}
    hints = get_type_hints(entry)
    for name, parameter in inspect.signature(entry).parameters.items():
        if isinstance(parameter.default, int | float | str | bool | None):
            kinds = frozenset(get_args(hints[name]) or (hints[name],))
            written = name.removeprefix("n_")
            found[written] = Parameter(written, name, kinds, parameter.default)
    return found


def read(text: str, example: str) -> tuple[str, dict[str, list[str]]]:
    """The name and, in brackets, the parameters that a text says; a parameter may have several values.

    Examples
    --------
    >>> read("zipf(z=0.8,1.4, keys=100k)", "zipf(z=1.4)")
    ('zipf', {'z': ['0.8', '1.4'], 'keys': ['100k']})
    """
    name, bracket, rest = text.strip().partition("(")
    error = ConfigError(f"cannot read {text!r}; write it as in {example!r}")
    if bracket and not rest.endswith(")"):
        raise error
    given: dict[str, list[str]] = {}
    parameter, at, end = "", 0, len(rest) - 1
    while rest[at:end].strip():
        piece = _PIECE.match(rest, at, end)
        if piece is None or piece[1] in given or not (piece[1] or parameter):
            raise error
        # What has no name of its own is one more value of the parameter before it.
        parameter = piece[1] or parameter
        given.setdefault(parameter, []).append(piece[2])
        at = piece.end()
    return name.strip(), given


def closest(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    folded = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1)
    return folded[found[0]] if found else None


def _name(entry: Any) -> str:
    return str(getattr(entry, "name", entry.__name__))


class Catalogue(Generic[E, T]):
    """Alternatives behind one contract, by the names that users write.

    Parameters
    ----------
    kind
        What each of them is, for errors.
    entries
        Classes that have a ``name``, or class methods, which are known by their own.
    example
        How one is written, for errors.
    """

    def __init__(self, kind: str, entries: Iterable[E], example: str = "") -> None:
        self._kind, self._example = kind, example
        self._entries = {_name(entry): entry for entry in entries}

    def names(self) -> list[str]:
        """Names of all entries."""
        return list(self._entries)

    def named(self, name: str) -> E:
        """The entry of a name."""
        if name in self._entries:
            return self._entries[name]
        close = closest(name, self._entries)
        hint = f"did you mean {close}?" if close else f"there are {', '.join(self._entries)}"
        raise ConfigError(f"no {self._kind} is named {name!r}; {hint}")

    def parse(self, text: str, **defaults: Any) -> T:
        """Make what a text says; `defaults` are for parameters that it leaves out."""
        return self.made(*read(text, self._example), **defaults)

    def made(self, name: str, given: Mapping[str, Sequence[str]], also: Iterable[str] = (), /, **defaults: Any) -> T:
        """Make the entry of a name from parameters as `read` gives them; `also` is what errors name besides them."""
        values = {parameter.field: parameter.one(pieces) for parameter, pieces in self._known(name, given, also)}
        return self._make(name, defaults | values)

    def sweep(self, text: str) -> tuple[Callable[..., T], dict[str, list[Any]]]:
        """What makes the entry that a text says, and the values of its parameters, which may be several."""
        name, given = read(text, self._example)
        vary = {parameter.field: parameter.values(pieces) for parameter, pieces in self._known(name, given)}
        return lambda **chosen: self._make(name, chosen), vary

    def _known(
        self, name: str, given: Mapping[str, Sequence[str]], also: Iterable[str] = ()
    ) -> list[tuple[Parameter, Sequence[str]]]:
        known = parameters_of(self.named(name))
        for parameter in given:
            if parameter not in known:
                takes = ", ".join(dict.fromkeys([*known, *also])) or "no parameters"
                raise ConfigError(f"{name} has no parameter {parameter!r}; it takes {takes}")
        return [(known[parameter], pieces) for parameter, pieces in given.items()]

    def _make(self, name: str, values: Mapping[str, Any]) -> T:
        """Call an entry; an error names its parameters as they are written."""
        entry = self.named(name)
        try:
            made: T = entry(**values)
        except ConfigError as error:
            message = str(error)
            for parameter in parameters_of(entry).values():
                message = re.sub(rf"\b{parameter.field}\b", parameter.name, message)
            raise ConfigError(message) from None
        return made
