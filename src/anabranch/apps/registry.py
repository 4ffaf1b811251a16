"""Applications by the names that the command line uses."""

from __future__ import annotations

import difflib

from anabranch.apps.app import App
from anabranch.apps.geo_trends import GeoTrends
from anabranch.apps.hashtags import Hashtags
from anabranch.apps.vwap import Vwap
from anabranch.apps.word_count import WordCount
from anabranch.errors import ConfigError

_CLASSES: tuple[type[App], ...] = (WordCount, Hashtags, Vwap, GeoTrends)


def names() -> list[str]:
    """Names of all applications.

    Examples
    --------
    >>> names()
    ['word-count', 'hashtags', 'vwap', 'geo-trends']
    """
    return [cls.name for cls in _CLASSES]


def named(name: str) -> type[App]:
    """Class of an application's name; ConfigError says which there are."""
    for cls in _CLASSES:
        if cls.name == name:
            return cls
    close = difflib.get_close_matches(name, names(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names())}"
    raise ConfigError(f"no application is named {name!r}; {hint}")
