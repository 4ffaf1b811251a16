"""What a run says of itself, batch by batch and in the end."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("pyspark")

from anabranch.cli.progress import Progress, batch_line
from anabranch.spark.progress import BatchMetrics


def metrics(batch: int, tuples: int, worker_tuples: list[int], **others: float) -> BatchMetrics:
    makespan = max(worker_tuples) * len(worker_tuples) / sum(worker_tuples)
    loads = {"worker_tuples": worker_tuples, "worker_seconds": [0.0] * len(worker_tuples)}
    return BatchMetrics(batch, tuples, 2.0, makespan, 0.0, math.nan, 9, **{"hot_keys": 3, **loads, **others})  # type: ignore[arg-type]


def test_tuples_of_operators_in_a_row_count_once(capsys):
    progress = Progress()
    for batch, worker_tuples in enumerate(([50, 50, 40, 60], [10, 10, 10, 10])):
        progress.batch(metrics(batch, sum(worker_tuples) // 2, worker_tuples, locality=0.75, hosts=3))
    progress.summary(stopped=False)
    lines = capsys.readouterr().err.splitlines()
    assert lines[2].startswith("done: 2 batches · 120 tuples · 10.0 tuples/s after the first batch")
    # Batches weigh as many tuples as they have: 1.2 of 100, 1.0 of 20.
    assert "makespan 1.167" in lines[2]


@pytest.mark.parametrize(
    ("others", "end"),
    [
        ({}, "3 hot keys"),
        ({"hot_keys": 1}, "1 hot key"),
        ({"hot_keys": 0}, "replication –"),
        ({"locality": 0.75, "hosts": 1, "hot_keys": 0}, "locality 0.75 on 1 host"),
        ({"locality": 1.0, "hosts": 1}, "on 1 host, where every tuple is local · 3 hot keys"),
        (
            {"locality": 0.75, "hosts": 3, "promised": 0.8, "moved": 12},
            "locality 0.75 of 0.80 promised on 3 hosts · 12 states moved · 3 hot keys",
        ),
    ],
)
def test_a_chain_says_how_local_a_batch_was(others, end):
    assert batch_line(metrics(0, 20, [10, 10], **others)).endswith(end)
