"""``anabranch predictors``: which predictor finds the hot keys of a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import streams, values
from anabranch.cli.output import check_writable, console, print_table, print_text, say, terminal_width, write_records
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from anabranch.predictors.evaluation import Score
    from anabranch.streams import Stream

_Text = str | None
# A log-normal stream has parameters of its own; ln1 and ln2 are two of its kind.
_STREAMS = tuple(name for name in streams.SYNTHETIC if name != "log-normal")
# Tuples per window, where the stream has as many.
_WINDOW = 50_000
# In a narrower terminal the table would lose the ends of its names.
_WIDE = 100


def predictors(
    stream: Annotated[
        _Text, typer.Option(help=f"Synthetic stream: {', '.join(_STREAMS)}.  [default: zipf]", metavar="NAME")
    ] = None,
    input: Annotated[Path | None, typer.Option(help="Replay a Parquet or CSV file instead.", metavar="FILE")] = None,
    key: Annotated[_Text, typer.Option(help="Key column of --input.", metavar="COLUMN")] = None,
    tuples: Annotated[
        _Text, typer.Option(help="Length of the stream.  [default: 1M, or all of --input]", metavar="N")
    ] = None,
    keys: Annotated[_Text, typer.Option(help=f"{streams.ZIPFS}: distinct keys.  [default: 100k]", metavar="N")] = None,
    z: Annotated[_Text, typer.Option(help=f"{streams.ZIPFS}: exponent.  [default: 1.2]", metavar="NUMBER")] = None,
    every: Annotated[
        _Text, typer.Option(help="drifting: tuples between changes of the hot set.  [default: 100k]", metavar="N")
    ] = None,
    workers: Annotated[
        str, typer.Option(help="A key is hot from 1 / (5 workers) of the tuples on.", metavar="N")
    ] = "16",
    window: Annotated[
        _Text,
        typer.Option(
            help="Tuples per window; predictions are judged at its end.  [default: 50k, or all of a shorter stream]",
            metavar="N",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of stream and predictors.", metavar="N")] = 0,
    json_: Annotated[
        _Text, typer.Option("--json", help="Write one record per predictor; - for stdout.", metavar="FILE")
    ] = None,
) -> None:
    """Compare predictors of hot keys: precision, recall, time to identify, memory and speed.

    A key is hot in a window when it has at least 1 / (5 workers) of its tuples. coin is DStream's predictor; its
    parameters follow from --workers and --window: p = 1 / (10 workers), and r the largest number with which bit vectors
    decline at least twice per window. "found after": median number of tuples until a newly hot key is called hot.

    Try:

      anabranch predictors --stream drifting --z 1.2 --every 100k --workers 10
    """
    from anabranch.predictors import ALL, evaluate

    if json_ not in (None, "-"):
        check_writable(json_ or "")
    n_workers = values.whole(workers, "--workers", at_least=1)
    asked = None if window is None else values.whole(window, "--window", at_least=1)
    values.check_at_least(seed, "--seed", 0)
    given = {"keys": keys, "z": z, "every": every}
    if input is not None:
        if stream is not None or any(given.values()):
            raise ConfigError("--input replays a file and takes no --stream or its parameters; leave one of them out")
        source = streams.replay(input, key)()
    else:
        if key is not None:
            raise ConfigError("--key names a column of --input; give --input FILE with it")
        make, vary = streams.synthetic(stream or "zipf", tuples or "1M", given, known=_STREAMS)
        if any(len(listed) > 1 for listed in vary.values()):
            raise ConfigError("predictors takes one value per parameter; sweep with a loop around the command")
        source = make(**{name: listed[0] for name, listed in vary.items()})
    limit = None if tuples is None else streams.n_tuples(tuples)
    most = streams.most_tuples(source, limit)
    if asked is not None and most is not None and most < asked:
        raise ConfigError(f"--window must be at most the {most} tuples of the stream, got {window!r}; lower it")
    size = asked or _window(source, limit)
    err = console(stderr=True)
    scores = []
    for cls in ALL:
        with err.status(f"running {cls.name}"):
            predictor = cls.for_stream(n_workers, size, seed)
            scores.append(evaluate(source, predictor, n_workers=n_workers, window=size, seed=seed, limit=limit))
    records = json.dumps([score.record() for score in scores], indent=1)
    if json_ == "-":
        print_text(records)
        return
    if json_ is not None:
        write_records(records, json_)
    print_table(_table(scores, terminal_width() or _WIDE))


def _window(source: Stream, limit: int | None) -> int:
    """Tuples per window where nobody chose: no more than the stream has, which only reading some files tells."""
    stop = _WINDOW if limit is None else min(limit, _WINDOW)
    found: int = sum(batch.num_rows for batch in source.batches(size=stop, stop=stop))
    if found < _WINDOW:
        say(f"one window of {found:,} tuples: the stream has no more")
    return found


def _table(scores: Sequence[Score], width: int) -> Table:
    import numpy as np
    from rich.table import Table

    narrow = width < _WIDE
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0) if narrow else (0, 1))
    for heading in ("predictor", "precision", "recall", "F1", "found after", "entries", "bytes", "M tuples/s"):
        shown = heading.replace(" ", "\n") if narrow else heading
        table.add_column(shown, justify="left" if heading == "predictor" else "right", no_wrap=True)
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
    return table
