"""Options with numbers, read where typer reads the command line: numbers with suffixes, lists and ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from anabranch.errors import AnabranchError, ConfigError
from anabranch.numerals import decimal, decimals


class OptionError(AnabranchError):
    """The value of an option is outside its rule; not a ValueError, which typer would tell in words of its own."""


class Section:
    """Makes the options of one section of ``--help``, under its title.

    An option with numbers is read by one of the functions below, from its text, its name and bounds.
    """

    def __init__(self, title: str | None = None) -> None:
        self._title = title

    def text(self, help: str, metavar: str) -> Any:
        """An option whose value stays text, or which typer reads."""
        return typer.Option(help=help, metavar=metavar, rich_help_panel=self._title)

    def flag(self, name: str, help: str) -> Any:
        """An option without a value."""
        return typer.Option(name, help=help, rich_help_panel=self._title)

    def number(self, name: str, help: str, metavar: str = "NUMBER", *, zero: bool = True) -> Any:
        """An option with a number."""
        return self.read(name, number, help, metavar, zero=zero)

    def whole(self, name: str, help: str, *, at_least: int | None = 1) -> Any:
        """An option with a whole number."""
        return self.read(name, whole, help, "N", at_least=at_least)

    def wholes(self, name: str, help: str, *, at_least: int = 1, at_most: int | None = None) -> Any:
        """An option with one or several whole numbers."""
        return self.read(name, wholes, help, "N", at_least=at_least, at_most=at_most)

    def read(self, name: str, read: Callable[..., Any], help: str, metavar: str, **bounds: Any) -> Any:
        """An option whose value `read` makes."""

        def parse(given: Any) -> Any:
            # A default has its type already.
            if not isinstance(given, str):
                return given
            try:
                return read(given, name, **bounds)
            except ConfigError as error:
                raise OptionError(str(error)) from None

        return typer.Option(name, parser=parse, help=help, metavar=metavar, rich_help_panel=self._title)


def number(text: str, option: str, *, zero: bool = True) -> float:
    """A number such as 16, 1.4, 2_000_000, 1e6, 10k or 2M, not below 0, and not 0 unless `zero`.

    Examples
    --------
    >>> number("2M", "--rate")
    2000000.0
    """
    value = float(decimal(text, option))
    if value < 0 or (value == 0 and not zero):
        raise ConfigError(f"{option} must be {'0 or more' if zero else 'above 0'}, got {text!r}")
    return value


def whole(text: str, option: str, *, at_least: int | None = None) -> int:
    """A whole number."""
    value = decimal(text, option)
    if value != value.to_integral_value():
        raise ConfigError(f"{option} must be a whole number, got {text!r}")
    _check_bounds([int(value)], text, option, at_least, None)
    return int(value)


def numbers(text: str, option: str) -> list[float]:
    """One number, a list (16,32,64) or a range with both ends (1.0:2.0:0.1).

    Examples
    --------
    >>> numbers("1.0:1.4:0.2", "--makespan")
    [1.0, 1.2, 1.4]
    """
    return [float(value) for value in decimals(text, option)]


def wholes(text: str, option: str, *, at_least: int | None = None, at_most: int | None = None) -> list[int]:
    """Whole numbers, written as in `numbers`."""
    values = decimals(text, option)
    if any(value != value.to_integral_value() for value in values):
        raise ConfigError(f"{option} must be whole numbers, got {text!r}")
    listed = [int(value) for value in values]
    _check_bounds(listed, text, option, at_least, at_most)
    return listed


def speeds(text: str, option: str) -> tuple[float, ...]:
    """Relative speeds such as 2,1."""
    try:
        listed = tuple(numbers(text, option))
    except ConfigError:
        raise ConfigError(f"{option} takes relative speeds such as 2,1, got {text!r}") from None
    if min(listed) <= 0:
        raise ConfigError(f"{option} must be above 0, got {text!r}; 1 is a worker of normal speed")
    return listed


def _check_bounds(listed: Sequence[int], text: str, option: str, at_least: int | None, at_most: int | None) -> None:
    if at_least is not None and min(listed) < at_least:
        raise ConfigError(f"{option} must be at least {at_least}, got {text!r}")
    if at_most is not None and max(listed) > at_most:
        raise ConfigError(f"{option} must be at most {at_most}, got {text!r}")
