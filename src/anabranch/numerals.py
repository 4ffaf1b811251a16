"""Numbers as users write them: 16, 1.4, 2_000_000, 1e6, 10k, 2M; lists of them; and ranges such as 1.0:2.0:0.5."""

from __future__ import annotations

from decimal import Decimal

from anabranch.errors import ConfigError

_SUFFIXES = {"k": 10**3, "M": 10**6, "G": 10**9}
_LARGEST = 10**19
_MOST_VALUES = 10_000


def decimal(text: str, what: str, *, shown: str | None = None) -> Decimal:
    """The number that a text stands for; an error begins with `what` and quotes `shown`, or else the text.

    Examples
    --------
    >>> int(decimal("1.5k", "--tuples"))
    1500
    """
    plain = text.strip().replace("_", "")
    factor = _SUFFIXES.get(plain[-1:], 1)
    try:
        value = Decimal(plain[:-1] if factor > 1 else plain) * factor
    except ArithmeticError:
        value = Decimal("nan")
    if not value.is_finite():
        raise ConfigError(f"{what} must be a number such as 16, 1.4, 10k or 2M, got {shown or text!r}")
    if abs(value) > _LARGEST:
        raise ConfigError(f"{what} must be at most {_LARGEST:.0e}, got {shown or text!r}")
    return value


def decimals(text: str, what: str) -> list[Decimal]:
    """One number, a list (16,32,64) or a range with both ends (1.0:2.0:0.1); errors quote the whole of it.

    Examples
    --------
    >>> [float(value) for value in decimals("1.0:1.4:0.2,3", "--z")]
    [1.0, 1.2, 1.4, 3.0]
    """
    values: list[Decimal] = []
    for part in text.split(","):
        bounds = part.split(":")
        if len(bounds) == 1:
            values.append(decimal(part, what, shown=text))
            continue
        if len(bounds) != 3:
            raise ConfigError(f"{what} takes a range as first:last:step, got {part!r}")
        first, last, step = (decimal(bound, what, shown=text) for bound in bounds)
        if step <= 0 or last < first:
            raise ConfigError(f"{what} takes a rising range first:last:step with a step above 0, got {part!r}")
        if last - first >= _MOST_VALUES * step:
            raise ConfigError(f"{what} takes at most {_MOST_VALUES} values, got {part!r}; raise the step")
        values += [first + i * step for i in range(int((last - first) / step) + 1)]
    return values
