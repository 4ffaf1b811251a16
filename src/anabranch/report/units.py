"""Numbers as people read them: 1.20 ms, 850 k, 3.1e-7."""

from __future__ import annotations

import math

MISSING = "–"


def number(value: float) -> str:
    """Ratio near one, with at most three decimals.

    Examples
    --------
    >>> number(1.0432), number(77.91), number(float("nan"))
    ('1.043', '77.91', '–')
    """
    return _unfinite(value) or f"{value:.{_decimals(value, 4)}f}"


def fraction(value: float) -> str:
    """Share that may be very small, with two digits.

    Examples
    --------
    >>> fraction(0.3123), fraction(3.1e-7), fraction(0.0)
    ('0.31', '3.1e-7', '0')
    """
    if text := _unfinite(value):
        return text
    if value == 0:
        return "0"
    if abs(value) >= 0.00995:
        return f"{value:.{max(0, 1 - math.floor(math.log10(abs(value))))}f}"
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits}e{int(exponent)}"


def millions(value: float) -> str:
    """Value in millions, with three digits.

    Examples
    --------
    >>> millions(8_766_000), millions(22_261_000)
    ('8.77', '22.3')
    """
    return _unfinite(value) or f"{value / 1e6:.{_decimals(value / 1e6, 3)}f}"


def spread(value: float, beside: str) -> str:
    """Deviation in the notation of the mean it stands beside.

    Examples
    --------
    >>> spread(0.5678, "77.91"), spread(2.4e-8, "3.1e-7")
    ('0.57', '2e-8')
    """
    if text := _unfinite(value):
        return text
    if "e" not in beside:
        return f"{value:.{len(beside.partition('.')[2])}f}"
    digit, exponent = f"{value:.0e}".split("e")
    return f"{digit}e{int(exponent)}" if value else "0"


def duration(seconds: float) -> str:
    """Seconds in the unit that fits.

    Examples
    --------
    >>> duration(0.0012), duration(0.00085), duration(73)
    ('1.20 ms', '850 µs', '73.0 s')
    """
    return _scaled(seconds, ((1.0, " s"), (1e-3, " ms"), (1e-6, " µs"), (1e-9, " ns")))


def rate(per_second: float) -> str:
    """Tuples a second, with k, M or G.

    Examples
    --------
    >>> rate(812_345.0), rate(96.4)
    ('812 k', '96.4')
    """
    return _scaled(per_second, ((1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")))


def size(n_bytes: float) -> str:
    """Bytes in decimal units.

    Examples
    --------
    >>> size(512), size(12_345), size(3_000_000)
    ('512 B', '12.3 kB', '3.00 MB')
    """
    if 0 <= n_bytes < 1000 and n_bytes == int(n_bytes):
        return f"{int(n_bytes)} B"
    return _scaled(n_bytes, ((1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")))


def count(n: float) -> str:
    """Count with k, M or G and no trailing zeros, exact below ten thousand.

    Examples
    --------
    >>> count(2_000_000), count(1_234_567), count(1024)
    ('2 M', '1.23 M', '1024')
    """
    if abs(n) < 10_000:
        return f"{n:g}"
    return _trimmed(rate(n))


def times(value: float) -> str:
    """Multiple of something, as a mark in a picture.

    Examples
    --------
    >>> times(5.893), times(337.2)
    ('5.89×', '337×')
    """
    return f"{value:.2f}×" if value < 100 else f"{value:.0f}×"


def axis_number(value: float, unit: str | None = None) -> str:
    """Tick on a log axis, where all values are 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> axis_number(20.0), axis_number(2e-5), axis_number(2e-5, "s"), axis_number(5e5, "")
    ('20', '2e-5', '20 µs', '500 k')
    """
    if unit == "s":
        return _trimmed(duration(value))
    if unit is not None:
        return _trimmed(rate(value))
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e")


def _trimmed(text: str) -> str:
    digits, space, unit = text.partition(" ")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) + space + unit


def _unfinite(value: float) -> str:
    if math.isnan(value):
        return MISSING
    return "" if math.isfinite(value) else "∞"


def _decimals(value: float, digits: int) -> int:
    """Decimals that give a number of at least one `digits` significant digits."""
    whole = len(str(int(abs(float(f"{value:.{digits}g}")))))
    return max(0, digits - whole)


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    if text := _unfinite(value):
        return text
    if value == 0:
        return f"0{dict(steps)[1.0]}"
    # Rounded first, so that 999.7 µs becomes 1.00 ms and not 1000 µs.
    rounded = float(f"{value:.3g}")
    step, unit = next((s for s in steps if abs(rounded) >= s[0]), steps[-1])
    return f"{rounded / step:.{_decimals(rounded / step, 3)}f}{unit}"
