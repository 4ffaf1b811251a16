"""Options that say which stream, as the verbs that sweep share them, and as one that does not takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from anabranch.cli import streams

_Text = str | None
# Of each parameter of a stream: what it is, what it is unless given, and what is written for it.
_PARAMETERS = {
    "keys": (f"{streams.ZIPFS}: distinct keys.", "[default: 100k]", "N"),
    "z": (f"{streams.ZIPFS}: exponent.", "[default: 1.2]", "NUMBER"),
    "flip": ("evolving-zipf: share of the stream after which ranks flip.", "[default: 0.8]", "SHARE"),
    "every": ("drifting: tuples between changes of the hot set.", "[default: 100k]", "N"),
    "period": ("alternating: tuples between changes of the ranking.", "[default: 100k]", "N"),
    "phases": ("alternating: rankings until the first comes back.", "[default: 2]", "N"),
    "share": (
        "bursts, singletons: share of the tuples with new keys.",
        "[default: bursts 0.3, singletons 0.5]",
        "SHARE",
    ),
    "length": ("bursts: tuples until the next new key is hot.", "[default: 3k]", "N"),
    "mu": ("log-normal: mean of the logarithm.", "[log-normal needs it]", "NUMBER"),
    "sigma": ("log-normal: standard deviation of the logarithm.", "[log-normal needs it]", "NUMBER"),
    "skew-percent": ("country: percent of the hot name.", "[default: 80]", "PERCENT"),
    "values": ("correlated-pairs: values of each key.", "[default: 6]", "N"),
    "locality": ("correlated-pairs: share of equal pairs.", "[default: 0.8]", "SHARE"),
    "padding": ("correlated-pairs: bytes of padding per tuple.", "[default: 0]", "N"),
}
_EXAMPLES = {"z": ", as 1.0:2.0:0.1 or 0.8,1.4"}


def one(name: str) -> Any:
    """The option of a parameter that takes one value."""
    what, default, metavar = _PARAMETERS[name]
    return typer.Option(f"--{name}", help=f"{what}  {default}", metavar=metavar)


def _swept(name: str) -> Any:
    """The option of a parameter that takes one value or several."""
    what, default, metavar = _PARAMETERS[name]
    return typer.Option(f"--{name}", help=f"{what} Sweeps{_EXAMPLES.get(name, '')}.  {default}", metavar=metavar)


Name = Annotated[
    _Text, typer.Option(help=f"Synthetic stream: {', '.join(streams.SYNTHETIC)}.  [default: zipf]", metavar="NAME")
]
Input = Annotated[
    Path | None, typer.Option(help="Replay a Parquet or CSV file, or a folder of them, instead.", metavar="FILE")
]
Key = Annotated[_Text, typer.Option(help="Key column of --input.", metavar="COLUMN")]
Tuples = Annotated[_Text, typer.Option(help="Length of the stream.  [default: 1M, or all of --input]", metavar="N")]
Keys = Annotated[_Text, _swept("keys")]
Z = Annotated[_Text, _swept("z")]
Flip = Annotated[_Text, _swept("flip")]
Every = Annotated[_Text, _swept("every")]
Period = Annotated[_Text, _swept("period")]
Phases = Annotated[_Text, _swept("phases")]
Share = Annotated[_Text, _swept("share")]
Length = Annotated[_Text, _swept("length")]
Mu = Annotated[_Text, _swept("mu")]
Sigma = Annotated[_Text, _swept("sigma")]
SkewPercent = Annotated[_Text, _swept("skew-percent")]
HalfSkew = Annotated[bool, typer.Option("--half-skew", help="country: skewed in the first half only.")]
Values = Annotated[_Text, _swept("values")]
Locality = Annotated[_Text, _swept("locality")]
Padding = Annotated[_Text, _swept("padding")]
Workers = Annotated[str, typer.Option(help="Workers. Sweeps, as 16,32,64.", metavar="N")]
Sources = Annotated[str, typer.Option(help="Sources. Sweeps.", metavar="N")]
Window = Annotated[
    _Text, typer.Option(help="Tuples per window (a micro-batch).  [default: 10k per source]", metavar="N")
]
