"""Options that say which stream, as the verbs that sweep share them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli import streams

_Text = str | None

Name = Annotated[
    _Text, typer.Option(help=f"Synthetic stream: {', '.join(streams.SYNTHETIC)}.  [default: zipf]", metavar="NAME")
]
Input = Annotated[
    Path | None, typer.Option(help="Replay a Parquet or CSV file, or a folder of them, instead.", metavar="FILE")
]
Key = Annotated[_Text, typer.Option(help="Key column of --input.", metavar="COLUMN")]
Tuples = Annotated[_Text, typer.Option(help="Length of the stream.  [default: 1M, or all of --input]", metavar="N")]
Keys = Annotated[_Text, typer.Option(help=f"{streams.ZIPFS}: distinct keys. Sweeps.  [default: 100k]", metavar="N")]
Z = Annotated[
    _Text,
    typer.Option(
        help=f"{streams.ZIPFS}: exponent. Sweeps, as 1.0:2.0:0.1 or 0.8,1.4.  [default: 1.2]", metavar="NUMBER"
    ),
]
Flip = Annotated[
    _Text,
    typer.Option(
        help="evolving-zipf: share of the stream after which ranks flip. Sweeps.  [default: 0.8]", metavar="SHARE"
    ),
]
Every = Annotated[
    _Text, typer.Option(help="drifting: tuples between changes of the hot set. Sweeps.  [default: 100k]", metavar="N")
]
Period = Annotated[
    _Text,
    typer.Option(help="alternating: tuples between changes of the ranking. Sweeps.  [default: 100k]", metavar="N"),
]
Phases = Annotated[
    _Text, typer.Option(help="alternating: rankings until the first comes back. Sweeps.  [default: 2]", metavar="N")
]
Share = Annotated[
    _Text,
    typer.Option(
        help="bursts, singletons: share of the tuples with new keys. Sweeps.  [default: bursts 0.3, singletons 0.5]",
        metavar="SHARE",
    ),
]
Length = Annotated[
    _Text, typer.Option(help="bursts: tuples until the next new key is hot. Sweeps.  [default: 3k]", metavar="N")
]
Mu = Annotated[_Text, typer.Option(help="log-normal: mean of the logarithm. Sweeps.  [required]", metavar="NUMBER")]
Sigma = Annotated[
    _Text,
    typer.Option(help="log-normal: standard deviation of the logarithm. Sweeps.  [required]", metavar="NUMBER"),
]
SkewPercent = Annotated[
    _Text, typer.Option(help="country: percent of the hot name. Sweeps.  [default: 80]", metavar="PERCENT")
]
HalfSkew = Annotated[bool, typer.Option("--half-skew", help="country: skewed in the first half only.")]
Values = Annotated[
    _Text, typer.Option("--values", help="correlated-pairs: values of each key. Sweeps.  [default: 6]", metavar="N")
]
Locality = Annotated[
    _Text, typer.Option(help="correlated-pairs: share of equal pairs. Sweeps.  [default: 0.8]", metavar="SHARE")
]
Padding = Annotated[
    _Text, typer.Option(help="correlated-pairs: bytes of padding per tuple. Sweeps.  [default: 0]", metavar="N")
]
Workers = Annotated[str, typer.Option(help="Workers. Sweeps, as 16,32,64.", metavar="N")]
Sources = Annotated[str, typer.Option(help="Sources. Sweeps.", metavar="N")]
Window = Annotated[
    _Text, typer.Option(help="Tuples per window (a micro-batch).  [default: 10k per source]", metavar="N")
]
