"""What a chain's run amounts to: the first period, which goes by hash, is left out, and long periods count more."""

from __future__ import annotations

import pytest

from anabranch.chain import CHAIN_METRICS, ChainResult, Period

HASHED = Period(100, 0.0, float("nan"), (9.0, 9.0), 1.0, 99, 99)
LATER = (Period(100, 0.5, 0.6, (1.0, 1.5), 50.0, 4, 3), Period(300, 0.9, 0.8, (2.0, 1.0), 100.0, 8, 1))
WANTED = {"locality": 0.8, "predicted": 0.7, "makespan": 1.75, "throughput": 80.0, "moved": 6.0, "split": 2.0}


def result(*periods: Period) -> ChainResult:
    return ChainResult("pairs", {"n": 1}, {"keys": ["a", "b"]}, "1.0", periods)


def test_figures_are_those_of_the_periods_after_the_first():
    made = result(HASHED, *LATER)
    assert made.tuples == 500
    assert {name: getattr(made, name) for name in CHAIN_METRICS} == pytest.approx(WANTED)


def test_figures_of_an_only_period_are_its_own():
    made = result(LATER[1])
    assert (made.locality, made.predicted, made.makespan, made.throughput) == (0.9, 0.8, 2.0, 100.0)
    assert (made.tuples, made.moved, made.split) == (300, 8.0, 1.0)


def test_the_record_holds_figures_and_periods():
    record = result(HASHED, *LATER).record()
    periods = record.pop("periods")
    run = {"stream": "pairs", "stream_parameters": {"n": 1}, "settings": {"keys": ["a", "b"]}, "version": "1.0"}
    assert set(record) == {*run, "tuples", *WANTED}
    assert {name: record[name] for name in run} == run
    assert {name: record[name] for name in WANTED} == pytest.approx(WANTED)
    assert periods[0] == {
        "tuples": 100, "locality": 0.0, "predicted": None, "makespans": [9.0, 9.0], "throughput": 1.0, "moved": 99,
        "split": 99,
    }  # fmt: skip
    assert len(periods) == 3
