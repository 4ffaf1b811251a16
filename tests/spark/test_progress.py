"""Figures of a batch: measured, or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anabranch.chain.spark.hop_report import HopReport
from anabranch.chain.spark.metrics import chain_metrics
from anabranch.errors import InputError
from anabranch.groupings import Report
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.progress import BatchMetrics, batch_metrics, unreported


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(str(tmp_path / "ledger"))
    made.claim({"grouping": "spillway"})
    return made


def progress(batch: int, keys: int = 0, rows: int = 0) -> dict[str, Any]:
    operators = [{"numRowsUpdated": keys}]
    durations = {"triggerExecution": 500, "addBatch": 400}
    return {"id": "q", "batchId": batch, "numInputRows": rows, "durationMs": durations, "stateOperators": operators}


def report(ledger: Ledger, batch: int, *tuples: int, missing: int = 0) -> None:
    """What workers with so many tuples leave, the last ones nothing."""
    for number, n in enumerate(tuples[: len(tuples) - missing]):
        loads = np.zeros(len(tuples), np.int64)
        loads[number] = n
        worker = Report(tuples=n, worker_tuples=loads, worker_seconds=np.zeros(len(tuples)), partials=n)
        ledger.write_report("q", batch, f"worker-{number:06d}", worker)


def test_a_batch_is_what_its_workers_counted(ledger):
    report(ledger, 3, 30, 10)
    found = batch_metrics(ledger.uri, progress(3, keys=20, rows=40))
    assert found is not None
    assert (found.batch, found.tuples, found.seconds, found.worker_tuples) == (3, 40, 0.5, [30, 10])
    assert (found.makespan, found.imbalance, found.replication, found.partials) == (1.5, 0.25, 2.0, 40)


@pytest.mark.parametrize("metrics", [batch_metrics, chain_metrics])
def test_before_the_first_batch_is_done_there_is_nothing(ledger, metrics):
    assert metrics(ledger.uri, None) is None


@pytest.mark.parametrize("metrics", [batch_metrics, chain_metrics])
def test_a_batch_without_reports_is_not_there(ledger, metrics):
    report(ledger, 3, 30, 10)
    assert metrics(ledger.uri, progress(4, rows=40)) is None


def test_a_batch_that_lacks_the_report_of_a_worker_is_not_there(ledger):
    report(ledger, 3, 30, 10, missing=1)
    assert batch_metrics(ledger.uri, progress(3, rows=40)) is None


@pytest.mark.parametrize("metrics", [batch_metrics, chain_metrics])
@pytest.mark.parametrize("folder", ["nowhere", "something else", "a file"])
def test_a_folder_that_is_no_ledger_is_refused(tmp_path, metrics, folder):
    (tmp_path / "something else" / "part").mkdir(parents=True)
    (tmp_path / "a file").touch()
    with pytest.raises(InputError, match=f"no ledger at .*{folder}; name the folder"):
        metrics(str(tmp_path / folder), progress(0, rows=40))


def test_a_batch_without_tuples_has_no_figures_of_balance(ledger):
    report(ledger, 0, 0, 0)
    found = batch_metrics(ledger.uri, progress(0))
    assert found is not None
    assert (found.tuples, found.partials, found.worker_tuples) == (0, 0, [0, 0])
    assert (found.makespan, found.imbalance, found.replication) == (None, None, None)
    assert (found.locality, found.promised) == (None, None)


def test_a_chain_without_tuples_has_no_figures_of_balance(ledger):
    for operator in (0, 1):
        HopReport(operator, 0, "host", 0, 0.0, 0, 0, np.zeros(1, np.int64)).write(ledger, "q", 0)
    found = chain_metrics(ledger.uri, progress(0))
    assert found is not None
    assert (found.tuples, found.worker_tuples, found.hosts) == (0, [0, 0], 1)
    assert (found.makespan, found.imbalance, found.replication) == (None, None, None)
    assert (found.locality, found.promised) == (None, None)


def test_what_spark_alone_knows_of_a_batch_are_its_rows_and_its_time():
    assert unreported(progress(2, rows=40)) == BatchMetrics(2, 40, 0.5, None, None, None, None, 0, [], [])
