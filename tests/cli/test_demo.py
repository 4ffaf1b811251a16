from __future__ import annotations

import pytest

import anabranch.cli.demo as demo_command

pytest.importorskip("pyspark")

from anabranch.apps.demo import Trial
from anabranch.spark.progress import BatchMetrics

STREAM = "drifting(tuples=600, keys=20, z=1.4, every=200)"
SMALL = ("demo", "--stream", STREAM, "--batch", 300, "--workers", 2, "--work-us", 0)


@pytest.mark.spark
def test_both_groupings_give_the_exact_counts_and_a_page_is_written(spark, run, tmp_path):
    done = run(*SMALL, "--grouping", "partial-key", "--html", tmp_path / "page" / "demo.html")
    assert done.code == 0, done.err
    rows = [line.split() for line in done.out.splitlines()]
    assert [row[0] for row in rows if row and row[0] in ("key", "partial-key")] == ["key", "partial-key"]
    assert done.out.splitlines()[-1] == "answers equal: yes (20 words, 600 tuples)"
    batches = [line.partition(" · ")[0] for line in done.err.splitlines() if ": batch " in line]
    # Spark 4.1 hands out all that a source in Python has at once.
    numbers = (0, 1) if spark.version >= "4.2" else (0,)
    assert batches == [f"{grouping}: batch {number}" for grouping in ("key", "partial-key") for number in numbers]
    html = (tmp_path / "page" / "demo.html").read_text()
    assert "Load per worker" in html
    assert "Batch times" in html


def test_wrong_counts_are_said_and_are_a_failure(run, monkeypatch, tmp_path):
    metrics = BatchMetrics(0, 600, 1.0, 1.0, 0.0, 1.0, 20, 0, [300, 300], [0.5, 0.5])
    trials = [Trial("key", (metrics,), {"1": 600}), Trial("fish", (metrics,), {"1": 599})]
    monkeypatch.setattr(demo_command, "_run", lambda demo: trials)
    monkeypatch.setattr("anabranch.apps.demo.Demo.exact_counts", lambda demo: {"1": 600})
    done = run(*SMALL, "--html", tmp_path / "demo.html")
    assert done.code == 1
    assert "answers equal: no: fish (1 words, 600 tuples)" in done.out
    assert done.err.splitlines()[-1] == "Error: fish must give the exact counts, and did not; this is a bug"


def test_without_pyspark_the_extra_is_named(fails, monkeypatch):
    monkeypatch.setattr(demo_command, "find_spec", lambda name: None)
    assert fails(1, "demo").endswith("install anabranch[spark]")
