"""``anabranch predictors``: which predictor finds the hot keys of a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli import streams, values
from anabranch.cli.output import check_writable
from anabranch.errors import ConfigError

_Text = str | None


def predictors(
    stream: Annotated[_Text, typer.Option(help="Synthetic stream: zipf, evolving-zipf, drifting, ln1, ln2.")] = None,
    input: Annotated[Path | None, typer.Option(help="Replay a Parquet or CSV file instead.", metavar="FILE")] = None,
    key: Annotated[_Text, typer.Option(help="Key column of --input.", metavar="COLUMN")] = None,
    tuples: Annotated[_Text, typer.Option(help="Length of the stream: 1M; of --input, all unless given.")] = None,
    keys: Annotated[_Text, typer.Option(help="Distinct keys: 100k.")] = None,
    z: Annotated[_Text, typer.Option(help="Zipf exponent: 1.2.")] = None,
    every: Annotated[_Text, typer.Option(help="drifting: tuples between changes of the hot set: 100k.")] = None,
    workers: Annotated[str, typer.Option(help="A key is hot from 1 / (5 workers) of the tuples on.")] = "16",
    window: Annotated[str, typer.Option(help="Tuples a window; predictions are judged at its end.")] = "50k",
    seed: Annotated[int, typer.Option(help="Seed of stream and predictors.")] = 0,
    json_: Annotated[
        _Text, typer.Option("--json", help="Write one record a predictor; - for stdout.", metavar="FILE")
    ] = None,
) -> None:
    """Compare predictors of hot keys: precision, recall, time to identify, memory and speed.

    A key is hot in a window when it has at least 1 / (5 workers) of its tuples. coin is DStream's predictor; its
    parameters follow from --workers and --window: p = 1 / (10 workers), and r the largest number with which bit vectors
    decline at least twice a window. "found after": median number of tuples until a newly hot key is called hot.

    Try:

      anabranch predictors --stream drifting --z 1.2 --every 100k --workers 10
    """
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from anabranch.predictors import ALL, evaluate

    if json_ not in (None, "-"):
        check_writable(json_ or "")
    n_workers, size = values.whole(workers, "--workers"), values.whole(window, "--window")
    if n_workers < 1 or size < 1:
        raise ConfigError(f"--workers and --window must be at least 1, got {workers} and {window}")
    if seed < 0:
        raise ConfigError(f"seed must be 0 or a positive whole number, got {seed}")
    given = {"keys": keys, "z": z, "every": every}
    if input is not None:
        if stream is not None or any(given.values()):
            raise ConfigError("--input replays a file and takes no --stream or its parameters; leave one of them out")
        source = streams.replay(input, key)()
    else:
        if key is not None:
            raise ConfigError("--key names a column of --input; give --input FILE with it")
        make, vary = streams.synthetic(stream or "zipf", tuples or "1M", given)
        if any(len(listed) > 1 for listed in vary.values()):
            raise ConfigError("predictors takes one value a parameter; sweep with a loop around the command")
        source = make(**{name: listed[0] for name, listed in vary.items()})
    limit = None if tuples is None else streams.n_tuples(tuples)
    console = Console(stderr=True)
    scores = []
    for cls in ALL:
        with console.status(f"running {cls.name}"):
            predictor = cls.for_stream(n_workers, size, seed)
            scores.append(evaluate(source, predictor, n_workers=n_workers, window=size, seed=seed, limit=limit))
    records = json.dumps([score.record() for score in scores], indent=1)
    if json_ == "-":
        typer.echo(records)
        return
    if json_ is not None:
        Path(json_).write_text(records + "\n")
    table = Table(box=None, pad_edge=False)
    for heading in ("predictor", "precision", "recall", "F1", "found after", "entries", "bytes", "M tuples/s"):
        table.add_column(heading, justify="left" if heading == "predictor" else "right", no_wrap=True)
    for score in scores:
        table.add_row(
            score.predictor,
            f"{score.precision:.3f}",
            f"{score.recall:.3f}",
            f"{score.f1:.3f}",
            f"{score.identify_tuples:,.0f}" if np.isfinite(score.identify_tuples) else "never",
            f"{score.entries:,.0f}",
            f"{score.nbytes:,}",
            f"{score.tuples_per_second / 1e6:.1f}",
        )
    Console(width=None if Console().is_terminal else 120).print(table)
