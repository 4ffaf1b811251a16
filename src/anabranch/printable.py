"""Text that comes from data, made fit to be shown."""

from __future__ import annotations

import re

# What commands a terminal, ends a line, reorders the text around it, or cannot be encoded (half a surrogate pair).
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(value: object, *, lines: bool = False) -> str:
    r"""Text of a value in which nothing commands a terminal, forges a line or reorders what stands beside it.

    Such characters become escapes, as in Python. A backslash stays as it is, so the result cannot be turned back; JSON
    can be.

    Parameters
    ----------
    value
        Any value; its text is shown.
    lines
        Keep line ends: for text that is laid out in lines already.

    Examples
    --------
    >>> print(printable("\x1b]0;title\x07"))
    \x1b]0;title\x07
    >>> print(printable("two\nlines"))
    two\nlines
    """
    return _UNFIT.sub(lambda found: found[0] if lines and found[0] == "\n" else _escape(found[0]), str(value))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
