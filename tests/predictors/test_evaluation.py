"""How predictors are judged, on a stream counted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pytest

from anabranch.errors import InputError
from anabranch.hashing import hash_keys
from anabranch.predictors import Predictor, Score, SlidingSpaceSaving, evaluate
from anabranch.streams import Stream, Zipf

# With one worker a key is hot from a fifth of the tuples on: here 1 and 2, then 1 and 4.
FIRST = [1] * 50 + [2] * 30 + [3] * 19 + [9]
SECOND = [1] * 20 + [2] * 10 + [4] * 70


@dataclass(frozen=True, eq=False)
class Listed(Stream):
    name: ClassVar[str] = "listed"

    keys: tuple[int, ...]

    @property
    def n_tuples(self) -> int:
        return len(self.keys)

    def _read(self, seed: int, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        keys = self.keys[start:stop]
        for first in range(0, len(keys), size):
            yield pa.RecordBatch.from_pydict({"key": pa.array(keys[first : first + size])})


class Scripted(Predictor):
    """Calls these keys hot once it has seen so many tuples: {20: [1]} calls 1 hot from the 20th on."""

    name, paper = "scripted", "none"

    def __init__(self, script: dict[int, list[int]]) -> None:
        self.script, self.seen = script, 0

    @classmethod
    def for_stream(cls, n_workers: int, window: int, seed: int = 0) -> Self:
        return cls({})

    def update(self, keys: np.ndarray) -> None:
        self.seen += len(keys)

    def hot_keys(self) -> np.ndarray:
        latest = max((at for at in self.script if at <= self.seen), default=None)
        return hash_keys(np.array([] if latest is None else self.script[latest], dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return 123

    @property
    def entries(self) -> int:
        return self.seen


def judged(script: dict[int, list[int]], keys: list[int] | None = None) -> Score:
    listed = Listed(tuple([*FIRST, *SECOND] if keys is None else keys))
    return evaluate(listed, Scripted(script), n_workers=1, window=100)


def test_a_perfect_predictor():
    score = judged({2: [1, 2], 102: [1, 4]})
    assert (score.precision, score.recall, score.f1) == (1.0, 1.0, 1.0)
    assert score.windows == 2
    assert score.predictor == "scripted"
    assert score.identify_tuples == 2


def test_precision_and_recall_are_over_all_windows():
    # First window: 1 of 3 right, of 2 wanted; second: 2 of 2, of 2.
    score = judged({1: [1, 3, 9], 150: [1, 4]})
    assert score.precision == 3 / 5
    assert score.recall == 3 / 4
    assert score.f1 == pytest.approx(2 * 0.6 * 0.75 / 1.35)


def test_only_the_end_of_a_window_counts():
    assert judged({1: [1, 2], 99: [], 101: [5], 199: [1, 4]}).recall == 2 / 4
    assert judged({1: [1, 2], 99: [], 101: [5], 199: [1, 4]}).precision == 1.0


def test_tuples_until_a_new_hot_key_is_found():
    """1 and 2 are new in the first window and 4 in the second; 1, hot in both, is not asked for again."""
    assert judged({10: [1], 31: [1, 2], 140: [4]}).identify_tuples == 32
    assert judged({10: [1], 31: [1, 2], 139: [4]}).identify_tuples == 32
    assert judged({10: [1, 2], 101: [1], 121: [4]}).identify_tuples == 10
    # A key found late in its window counts, one never found is infinitely late.
    assert judged({10: [1], 140: [4]}).identify_tuples == 40
    assert judged({10: [1]}).identify_tuples == float("inf")


def test_nothing_called_and_nothing_wanted():
    blind = judged({})
    assert (blind.precision, blind.recall, blind.f1) == (1.0, 0.0, 0.0)
    calm = judged({}, list(range(200)))
    assert (calm.precision, calm.recall, calm.f1) == (1.0, 1.0, 1.0)
    assert np.isnan(calm.identify_tuples)
    assert calm.record()["identify_tuples"] is None
    assert blind.record()["identify_tuples"] is None
    wrong = judged({1: [7]})
    assert (wrong.precision, wrong.recall, wrong.f1) == (0.0, 0.0, 0.0)


def test_size_and_speed():
    score = judged({})
    assert score.entries == (100 + 200) / 2
    assert score.nbytes == 123
    assert score.tuples_per_second > 0
    assert set(score.record()) == set(vars(score))


def test_a_partial_last_window_is_left_out():
    whole = judged({2: [1, 2], 102: [1, 4]})
    longer = judged({2: [1, 2], 102: [1, 4]}, [*FIRST, *SECOND, *[5] * 99])
    assert longer.windows == whole.windows == 2
    assert longer.recall == 1.0


def test_a_stream_shorter_than_a_window_is_refused():
    with pytest.raises(InputError) as error:
        judged({}, [1] * 99)
    assert str(error.value) == "the stream is shorter than one window of 100 tuples; choose a smaller window"


def test_seed_and_limit_reach_the_stream():
    def run(**given: int) -> Score:
        predictor = SlidingSpaceSaving.for_stream(n_workers=20, window=500)
        return evaluate(Zipf(5_000, 1_000, 1.1), predictor, n_workers=20, window=500, **given)

    assert run().windows == 10
    assert run(limit=1_700).windows == 3
    scores = [run(seed=seed).record() for seed in (1, 1, 2)]
    for score in scores:
        del score["tuples_per_second"]
    assert scores[0] == scores[1] != scores[2]
