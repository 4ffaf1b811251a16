"""Colours: one per grouping, the same in every picture of every run."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

# Dash patterns in points: drawn, blank, drawn, ... An empty pattern is a solid line.
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (2, 1.5), (7, 2, 2, 2), (8, 2, 2, 2, 2, 2))

# Hues from the colour-blind-safe palettes of Okabe and Ito and of Paul Tol. Fifteen hues cannot all be told apart with
# every kind of colour vision, so neighbours in hue differ in lightness and in dash.
_KNOWN: dict[str, tuple[str, int]] = {
    "key": ("#D55E00", 0),
    "shuffle": ("#767676", 0),
    "static-two-choices": ("#E69F00", 1),
    "online-greedy": ("#999933", 2),
    "offline-greedy": ("#6B4A00", 3),
    "partial-key": ("#56B4E9", 0),
    "d-choices": ("#0072B2", 1),
    "w-choices": ("#332288", 2),
    "consistent": ("#44AA99", 3),
    "dstream": ("#CC79A7", 1),
    "fish": ("#882255", 0),
    "dynamic-key": ("#AA4499", 3),
    "distribution-aware": ("#DDAA77", 2),
    "spillway": ("#009E73", 0),
    "table": ("#222222", 1),
}


@dataclass(frozen=True)
class Style:
    """Colour as ``#rrggbb``, and the dash pattern in points (empty: solid)."""

    colour: str
    dash: tuple[float, ...]


def styles(groupings: Sequence[str]) -> dict[str, Style]:
    """Style of each grouping.

    A grouping's colour depends on its name alone. Where one grouping appears with several parameters, the first keeps
    the colour and the others get shades of it and other dashes.
    """
    chosen: dict[str, Style] = {}
    seen: dict[str, int] = {}
    # A bare name goes first, so that it keeps its colour whatever variants stand beside it.
    for grouping in sorted(dict.fromkeys(groupings), key=lambda text: "(" in text):
        name = grouping.partition("(")[0].strip()
        variant = seen.get(name, 0)
        seen[name] = variant + 1
        colour, dash = _KNOWN.get(name) or _unknown(name)
        chosen[grouping] = Style(_shade(colour, variant), _DASHES[(dash + variant) % len(_DASHES)])
    return {grouping: chosen[grouping] for grouping in groupings}


def _unknown(name: str) -> tuple[str, int]:
    """Some colour that no known grouping has; crc32 because Python's own hash of text changes from run to run."""
    number = zlib.crc32(name.encode())
    red, green, blue = colorsys.hls_to_rgb(number % 360 / 360, 0.42, 0.45)
    return _hex(red, green, blue), number // 360 % len(_DASHES)


def _shade(colour: str, variant: int) -> str:
    """Same hue, alternately darker and lighter."""
    if variant == 0:
        return colour
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    step = 0.17 * ((variant + 1) // 2) * (-1 if variant % 2 else 1)
    return _hex(*colorsys.hls_to_rgb(hue, min(0.78, max(0.15, lightness + step)), saturation))


def _hex(red: float, green: float, blue: float) -> str:
    return "#" + "".join(f"{round(255 * part):02X}" for part in (red, green, blue))
