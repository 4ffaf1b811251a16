"""The fault suite in short: ten faults under two groupings, and no tuple lost or doubled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dev import faults

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("n", [10, 60, 200])
def test_a_fifth_of_the_faults_are_slow_ones_and_the_same_seed_gives_the_same(n):
    kinds = faults.schedule(n, seed=3)
    counts = Counter(kinds)
    assert counts.total() == n
    assert n - counts["task"] - counts["python worker"] >= n / 5
    assert kinds == faults.schedule(n, seed=3) != faults.schedule(n, seed=4)
    if n >= 60:
        assert set(kinds) == set(faults.KINDS)


@pytest.mark.parametrize(
    ("grouping", "kinds"),
    [
        ("partial-key", ["task", "python worker", "executor", "task", "driver"]),
        ("spillway", ["python worker", "broker", "task", "spark worker", "python worker"]),
    ],
)
def test_nothing_is_lost_or_doubled(kafka_jars, tmp_path: Path, grouping: str, kinds: list[str]):
    tally = faults.run(grouping, kinds, 5, tmp_path / "scene", say=False)
    print("\n" + faults.table([tally]))
    assert tally.faults == Counter(kinds)
    assert tally.sent > 10_000
    assert (tally.lost, tally.doubled, tally.counted) == (0, 0, tally.sent)
