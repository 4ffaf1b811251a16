"""How well a predictor finds the hot keys of each window."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anabranch.arrays import U64
from anabranch.errors import InputError
from anabranch.hashing import hash_keys
from anabranch.predictors.predictor import Predictor, hot_share
from anabranch.streams import Stream

_STEPS = 50


@dataclass(frozen=True)
class Score:
    """Precision and recall of the keys called hot at the end of each window, over all windows.

    Parameters
    ----------
    predictor
        Its name.
    windows
        Whole windows judged.
    precision, recall, f1
        Against the keys with at least 1 / (5 n_workers) of the window's tuples.
    identify_tuples
        Median number of tuples from the beginning of a window until a key that is hot in it, and was not in the one
        before, is called hot, in steps of a fiftieth of a window; infinite where half of them never are.
    entries, nbytes
        Keys or counters in use on average, and bytes.
    tuples_per_second
        Speed of `update`.
    """

    predictor: str
    windows: int
    precision: float
    recall: float
    f1: float
    identify_tuples: float
    entries: float
    nbytes: int
    tuples_per_second: float

    def record(self) -> dict[str, Any]:
        """The score as JSON values."""
        values = dict(vars(self))
        return {name: None if isinstance(v, float) and not np.isfinite(v) else v for name, v in values.items()}


def evaluate(
    stream: Stream, predictor: Predictor, *, n_workers: int, window: int, seed: int = 0, limit: int | None = None
) -> Score:
    """Run a predictor over a stream and judge it at the end of each whole window.

    Examples
    --------
    >>> from anabranch.predictors import SlidingSpaceSaving
    >>> from anabranch.streams import Zipf
    >>> predictor = SlidingSpaceSaving.for_stream(n_workers=10, window=10_000)
    >>> score = evaluate(Zipf(100_000, 1000, 1.2), predictor, n_workers=10, window=10_000)
    >>> score.windows, score.precision > 0.9, score.recall
    (10, True, 1.0)
    """
    hits = called = wanted = windows = 0
    seconds = 0.0
    entries: list[int] = []
    waits: list[float] = []
    before: set[int] = set()
    predictor.update(np.zeros(0, dtype=np.uint64))
    step = max(1, window // _STEPS)
    for keys in _windows(stream, window, seed, limit):
        distinct, counts = np.unique(keys, return_counts=True)
        exact = set(distinct[counts >= hot_share(n_workers) * window].tolist())
        waiting = exact - before
        for start in range(0, window, step):
            began = time.perf_counter()
            predictor.update(keys[start : start + step])
            seconds += time.perf_counter() - began
            if waiting:
                found = waiting & set(predictor.hot_keys().tolist())
                waits += [start + step] * len(found)
                waiting -= found
        waits += [np.inf] * len(waiting)
        hot = set(predictor.hot_keys().tolist())
        hits, called, wanted = hits + len(hot & exact), called + len(hot), wanted + len(exact)
        entries.append(predictor.entries)
        windows += 1
        before = exact
    if windows == 0:
        raise InputError(f"the stream is shorter than one window of {window} tuples; choose a smaller window")
    precision = hits / called if called else 1.0
    recall = hits / wanted if wanted else 1.0
    return Score(
        predictor=predictor.name,
        windows=windows,
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        identify_tuples=float(np.median(waits)) if waits else float("nan"),
        entries=float(np.mean(entries)),
        nbytes=predictor.nbytes,
        tuples_per_second=windows * window / seconds,
    )


def _windows(stream: Stream, window: int, seed: int, limit: int | None) -> Iterator[U64]:
    """Key hashes of each whole window."""
    for batch in stream.batches(seed=seed, size=window, stop=limit):
        if batch.num_rows == window:
            yield hash_keys(batch.column("key"))
