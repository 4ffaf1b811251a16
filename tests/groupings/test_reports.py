"""Reports that are incomplete, late or of workers that came since: what routers make of them."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.errors import SnapshotError
from anabranch.groupings import ConsistentGrouping, DStream, Fish, PartialKeyGrouping, Report
from anabranch.hashing import hash_keys

KEYS = hash_keys(np.arange(2_000) % 300)


@pytest.mark.parametrize(
    "grouping", [Fish(), ConsistentGrouping(), PartialKeyGrouping(probe_s=1.0)], ids=lambda g: g.name
)
def test_a_report_made_before_a_worker_came_is_no_error(grouping):
    router = grouping.build(3)
    router.route(KEYS)
    router.set_workers(range(5))
    router.observe(Report(now=10.0, worker_tuples=np.array([5, 5, 5]), worker_seconds=np.array([1.0, 1.0, 4.0])))
    assert {3, 4} <= set(router.route(KEYS, 11.0).tolist()) <= set(range(5))


def test_tuples_without_seconds_are_no_measurement():
    grouping = Fish()
    for report in (
        Report(worker_tuples=np.full(4, 5)),
        Report(worker_tuples=np.full(4, 5), worker_seconds=np.zeros(4)),
    ):
        router = grouping.build(4)
        router.follow(grouping.fold(None, [router.report(), report]))
        assert np.isfinite(router.seconds).all()
        assert np.ptp(np.bincount(router.route(np.full(400, KEYS[0])), minlength=4)) <= 1


def test_a_newcomer_is_known_from_its_first_report():
    router = Fish().build(8)
    tuples = np.full(8, 100)
    for _ in range(60):
        router.observe(Report(worker_tuples=tuples, worker_seconds=tuples * 0.01))
    router.set_workers(range(9))
    tuples = np.full(9, 100)
    router.observe(Report(worker_tuples=tuples, worker_seconds=tuples * np.r_[np.full(8, 0.01), 0.04]))
    assert router.seconds[8] > 0.03


def test_time_before_a_window_drains_nothing_of_it():
    router = Fish().build(4)
    router.observe(Report(worker_tuples=np.full(4, 100), worker_seconds=np.full(4, 1.0)))
    router.route(KEYS[:100], 0.0)
    router.begin_window()
    router.route(KEYS[:400], 9.9)
    router.route(KEYS[:4], 10.01)
    assert router.backlog.sum() == 404


def test_what_a_worker_leaves_behind_goes_to_those_that_have_most():
    router = ConsistentGrouping().build(4)
    router.owners[:] = np.repeat([0, 1, 2, 3], [18, 10, 10, 2])
    router.set_workers([1, 2, 3])
    counts = np.bincount(router.owners, minlength=3)
    assert counts.sum() == 40
    assert counts[2] <= 5 < counts[0]


def test_a_snapshot_of_another_number_of_sources_is_refused():
    grouping = DStream(synopsis="local")
    with pytest.raises(SnapshotError, match="n_sources 1, this one has 5"):
        grouping.build(4, source=0, n_sources=5).restore(grouping.build(4).snapshot())
