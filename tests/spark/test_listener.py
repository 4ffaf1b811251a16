"""What Spark observed becomes a report, in whichever shape it arrives."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
from pyspark.sql import Row

from anabranch.spark import listener
from anabranch.spark.listener import _Listener, as_report
from anabranch.spark.plans.ledger import Ledger

from .merging.test_fingerprint import NATIVE, OTHERS

ITEM = Row("item", "count")
REFUSED = OTHERS.format(marks=NATIVE)


def test_observed_pairs_become_hot_keys():
    report = as_report(Row(tuples=12, top=[ITEM(-1, 9), ITEM(5, 3)]))
    assert report.tuples == 12
    assert report.hot_keys.tolist() == [2**64 - 1, 5]
    assert report.hot_counts.tolist() == [9, 3]


def test_over_spark_connect_pairs_are_values_with_a_schema():
    nested = Row("values", "schema")
    report = as_report(Row(tuples=12, top=[nested([-1, 9], None), nested([5, 3], None)]))
    assert report.hot_keys.tolist() == [2**64 - 1, 5]
    assert report.hot_counts.tolist() == [9, 3]


def test_a_batch_without_rows_reports_nothing_hot():
    for top in (None, []):
        report = as_report(Row(tuples=0, top=top))
        assert (report.tuples, len(report.hot_keys), len(report.hot_counts)) == (0, 0, 0)
        assert report.hot_keys.dtype == np.uint64


def test_the_listener_writes_to_the_ledger_that_the_observation_names(tmp_path):
    ours, other = tmp_path / "a ledger", Row(tuples=1, top=[])
    metrics = {f"anabranch {ours}": Row(tuples=12, top=[ITEM(5, 3)]), "somebody else's": other}
    progress = SimpleNamespace(id="query", batchId=4, observedMetrics=metrics)
    listener = _Listener()
    listener.onQueryProgress(SimpleNamespace(progress=progress))
    assert [one.tuples for one in Ledger(str(ours)).reports("query", 4).values()] == [12]
    assert list(Ledger(str(ours)).reports("query", 4)) == ["observed-0"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a ledger"]


def test_a_ledger_that_cannot_be_written_does_not_stop_the_listener(tmp_path, caplog):
    (tmp_path / "ledger").write_text("in the way")
    metrics = {f"anabranch {tmp_path}/ledger": Row(tuples=12, top=[ITEM(5, 3)])}
    progress = SimpleNamespace(id="query", batchId=4, observedMetrics=metrics)
    for _ in range(2):
        _Listener().onQueryProgress(SimpleNamespace(progress=progress))
    assert len(caplog.messages) == 1


def test_other_events_are_none_of_our_business(tmp_path, monkeypatch):
    """They are not even looked at: what there is to look at would be missing here."""
    monkeypatch.chdir(tmp_path)
    listener = _Listener()
    for event in (listener.onQueryStarted, listener.onQueryIdle):
        assert event(SimpleNamespace()) is None
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_other_states_is_told_in_one_line(caplog):
    # The command line, of which other tests may have made a session in this process, tells it in another way.
    caplog.set_level(logging.ERROR, listener.log.name)
    for exception in (None, "no luck", REFUSED):
        _Listener().onQueryTerminated(SimpleNamespace(id="7", exception=exception))
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith(
        "query 7 was not started: the checkpoint holds states of other keys or aggreg"
    )
