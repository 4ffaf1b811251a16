"""What a run says of itself, batch by batch and in the end."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from anabranch.cli.progress import Progress, batch_line
from anabranch.spark.progress import BatchMetrics


def metrics(batch: int, tuples: int, worker_tuples: list[int], **others: float | None) -> BatchMetrics:
    makespan = max(worker_tuples) * len(worker_tuples) / sum(worker_tuples)
    loads = {"worker_tuples": worker_tuples, "worker_seconds": [0.0] * len(worker_tuples)}
    return BatchMetrics(batch, tuples, 2.0, makespan, 0.0, None, 9, **{"hot_keys": 3, **loads, **others})  # type: ignore[arg-type]


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
        ({"unwritten": 1}, "3 hot keys · 1 file not written to the ledger"),
        ({"unwritten": 3}, "3 hot keys · 3 files not written to the ledger"),
        ({"unplanned": 1}, "3 hot keys · 1 plan failed"),
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


UNREPORTED = BatchMetrics(1, 40, 2.0, None, None, None, None, 0, [], [])


def test_a_batch_without_reports_shows_no_figures_of_balance():
    wanted = "batch 1 · 40 tuples in 2.00 s · 20.0 tuples/s · makespan – · imbalance – · replication –"
    assert batch_line(UNREPORTED) == wanted


def test_a_batch_without_reports_counts_its_tuples_and_leaves_the_makespan_to_the_others(capsys):
    progress = Progress()
    progress.batch(metrics(0, 100, [75, 25]))
    progress.batch(UNREPORTED)
    progress.summary(stopped=False)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("done: 2 batches · 140 tuples · 20.0 tuples/s after the first batch")
    assert "makespan 1.500" in last
    alone = Progress()
    alone.batch(UNREPORTED)
    alone.summary(stopped=False)
    assert "done: 1 batch · 40 tuples · 20.0 tuples/s · batch p50 2.00 s" in capsys.readouterr().err


def test_a_batch_without_rows_does_not_count_as_slow(capsys):
    progress = Progress()
    progress.batch(metrics(0, 100, [75, 25]))
    progress.batch(BatchMetrics(1, 0, 2.0, None, None, None, None, 0, [], []))
    progress.summary(stopped=False)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("done: 2 batches · 100 tuples · 50.0 tuples/s · batch p50")
