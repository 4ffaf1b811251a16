"""``anabranch predictors``: which predictor finds the hot keys of a stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from anabranch.cli import options, streams
from anabranch.cli.output import check_writable, console, print_table, print_text, say, terminal_width, write_records
from anabranch.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from anabranch.predictors.evaluation import Score
    from anabranch.streams import Stream

_Text = str | None
# Tuples per window, where the stream has as many.
_WINDOW = 50_000
# In a narrower terminal the table would lose the ends of its names.
_WIDE = 100


def predictors(
    stream: options.Stream = None,
    input: options.Input = None,
    key: options.Key = None,
    tuples: options.Tuples = None,
    workers: Annotated[
        int, options.SIZES.whole("--workers", "A key is hot from 1 / (5 workers) of the tuples on.")
    ] = 16,
    window: Annotated[
        int | None,
        options.SIZES.whole(
            "--window",
            "Tuples per window; predictions are judged at its end.  [default: 50k, or all of a shorter stream]",
        ),
    ] = None,
    seed: Annotated[int, options.seed("stream and predictors")] = 0,
    json_: Annotated[_Text, options.json("predictor")] = None,
) -> None:
    """Compare predictors of hot keys: precision, recall, time to identify, memory and speed.

    A key is hot in a window when it has at least 1 / (5 workers) of its tuples. coin is DStream's predictor; its
    parameters follow from --workers and --window: p = 1 / (10 workers), and r the largest number with which bit vectors
    decline at least twice per window. "found after": median number of tuples until a newly hot key is called hot.

    Try:

      anabranch predictors --stream 'drifting(z=1.2, every=100k)' --workers 10
    """
    from anabranch.predictors import ALL, evaluate

    if json_ not in (None, "-"):
        check_writable(json_ or "")
    source = streams.one("predictors", *streams.choose(stream, tuples, input, key))
    most = streams.most_tuples(source, tuples)
    if window is not None and most is not None and most < window:
        raise ConfigError(f"--window must be at most the {most} tuples of the stream, got {window}; lower it")
    size = window or _window(source, tuples)
    err = console(stderr=True)
    scores = []
    for cls in ALL:
        with err.status(f"running {cls.name}"):
            predictor = cls.for_stream(workers, size, seed)
            scores.append(evaluate(source, predictor, n_workers=workers, window=size, seed=seed, limit=tuples))
    records = json.dumps([score.record() for score in scores], indent=1)
    if json_ == "-":
        print_text(records)
        return
    if json_ is not None:
        write_records(records, json_)
    print_table(_table(scores, terminal_width() or _WIDE))


def _window(source: Stream, limit: int | None) -> int:
    """Tuples per window by default: at most those of the stream, which for some files only reading tells."""
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
