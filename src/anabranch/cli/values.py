"""Values on the command line: numbers with suffixes, lists and ranges."""

from __future__ import annotations

from decimal import Decimal

from anabranch.errors import ConfigError

_SUFFIXES = {"k": 10**3, "M": 10**6, "G": 10**9}
_LARGEST = 1e18
_MOST_VALUES = 10_000


def number(text: str, option: str, *, zero: bool = True) -> float:
    """A number such as 16, 1.4, 2_000_000, 1e6, 10k or 2M, not below 0, and not 0 unless `zero`.

    Examples
    --------
    >>> number("2M", "--rate")
    2000000.0
    """
    value = float(_decimal(text, option))
    if value < 0 or (value == 0 and not zero):
        raise ConfigError(f"{option} must be {'0 or more' if zero else 'above 0'}, got {text!r}")
    return value


def whole(text: str, option: str, *, at_least: int | None = None) -> int:
    """A whole number."""
    value = _decimal(text, option)
    if value != value.to_integral_value():
        raise ConfigError(f"{option} must be a whole number, got {text!r}")
    _check_bounds([int(value)], text, option, at_least, None)
    return int(value)


def numbers(text: str, option: str) -> list[float]:
    """One number, a list (16,32,64) or a range with both ends (1.0:2.0:0.1).

    Examples
    --------
    >>> numbers("1.0:1.4:0.2", "--z")
    [1.0, 1.2, 1.4]
    """
    return [float(value) for value in _decimals(text, option)]


def wholes(text: str, option: str, *, at_least: int | None = None, at_most: int | None = None) -> list[int]:
    """Whole numbers, written as in `numbers`."""
    values = _decimals(text, option)
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


def check_at_least(value: int, option: str, least: int) -> None:
    """Raise ConfigError for a value below `least`."""
    if value < least:
        raise ConfigError(f"{option} must be at least {least}, got {value}")


def _check_bounds(listed: list[int], text: str, option: str, at_least: int | None, at_most: int | None) -> None:
    if at_least is not None and min(listed) < at_least:
        raise ConfigError(f"{option} must be at least {at_least}, got {text!r}")
    if at_most is not None and max(listed) > at_most:
        raise ConfigError(f"{option} must be at most {at_most}, got {text!r}")


def _decimals(text: str, option: str) -> list[Decimal]:
    values: list[Decimal] = []
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) == 1:
            values.append(_decimal(part, option, shown=text))
            continue
        if len(ends) != 3:
            raise ConfigError(f"{option} takes a range as first:last:step, got {part!r}")
        first, last, step = (_decimal(end, option, shown=text) for end in ends)
        if step <= 0 or last < first:
            raise ConfigError(f"{option} takes a rising range first:last:step with a step above 0, got {part!r}")
        if last - first >= _MOST_VALUES * step:
            raise ConfigError(f"{option} takes at most {_MOST_VALUES} values, got {part!r}; raise the step")
        values += [first + i * step for i in range(int((last - first) / step) + 1)]
    return values


def _decimal(text: str, option: str, *, shown: str | None = None) -> Decimal:
    """A number; errors quote the whole of what was typed."""
    plain = text.strip().replace("_", "")
    factor = _SUFFIXES.get(plain[-1:], 1)
    try:
        value = Decimal(plain[:-1] if factor > 1 else plain) * factor
    except ArithmeticError:
        value = Decimal("nan")
    if not value.is_finite():
        raise ConfigError(f"{option} must be a number such as 16, 1.4, 10k or 2M, got {shown or text!r}")
    if abs(value) > _LARGEST:
        raise ConfigError(f"{option} must be at most {_LARGEST:.0e}, got {shown or text!r}")
    return value
