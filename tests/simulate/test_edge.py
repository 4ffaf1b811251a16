"""What routers are told, when, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.groupings import KeyGrouping, OfflineGreedy, ShuffleGrouping
from anabranch.hashing import hash_keys
from anabranch.simulate import Change, Settings, simulate
from anabranch.simulate.edge import Edge

from .listed import Listed, skewed
from .recorded import Recorded


def routed(recorded: Recorded, source: int | None = None) -> list[int]:
    return [key for call in recorded.calls("route", source) for key in call.keys]


def tuples_before(recorded: Recorded, what: str) -> list[int]:
    """For each call of a kind, how many tuples had been routed."""
    seen, out = 0, []
    for call in recorded.log:
        if call.what == "route":
            seen += len(call.value.keys)
        elif call.what == what and call.source <= 0:
            out.append(seen)
    return out


@pytest.mark.parametrize("n_sources", [1, 3])
@pytest.mark.parametrize("source_key", [None, "key", "origin"])
def test_each_source_sees_its_own_tuples_in_order(n_sources, source_key):
    stream = skewed(1000, 30, seed=2, origin=np.random.default_rng(0).integers(0, 50, 1000), batch=333)
    recorded = Recorded()
    given = Settings(n_workers=2, n_sources=n_sources, window=140, source_key=source_key)
    simulate(stream, recorded, given)
    sources = stream.sources(n_sources, source_key)
    for source in range(n_sources):
        mine = [key for key, of in zip(stream.hashes(), sources, strict=True) if of == source]
        assert routed(recorded, source) == mine
    if source_key is not None and n_sources > 1:
        assert len(set(sources)) == n_sources


def test_a_shared_board_sees_all_tuples_in_the_order_of_arrival():
    stream = skewed(1000, 30, seed=2, batch=333)
    recorded = Recorded(shared=True)
    simulate(stream, recorded, Settings(n_workers=2, n_sources=5, window=140))
    assert routed(recorded) == stream.hashes()


def test_now_is_the_arrival_of_a_sources_first_tuple():
    recorded = Recorded()
    ts = np.array([0.0, 0.5, 0.75, 4.0, 4.5, 9.0])
    simulate(Listed(np.arange(6), ts=ts, batch=4), recorded, Settings(n_workers=2, n_sources=2))
    assert [call.now for call in recorded.calls("route", 0)] == [0.0, 4.5]
    assert [call.now for call in recorded.calls("route", 1)] == [0.5, 9.0]


def test_step_s_is_the_mean_time_between_a_sources_tuples():
    recorded, regular = Recorded(), Recorded()
    ts = np.array([0.0, 0.5, 0.75, 4.0, 4.5, 9.0, 20.0])
    simulate(Listed(np.arange(7), ts=ts), recorded, Settings(n_workers=2, n_sources=2, report_s=100.0))
    assert [call.step_s for call in recorded.calls("route")] == [20.0 / 3, 8.5 / 2]
    simulate(skewed(1000, 9, seed=0, batch=300), regular, Settings(n_workers=2, n_sources=4, rate=64))
    assert {call.step_s for call in regular.calls("route")} == {4 / 64}


def test_reports_come_every_report_s_of_virtual_time():
    # 128 tuples a second: binary fractions, so that times are exact.
    recorded = Recorded()
    simulate(skewed(1000, 9, seed=0, batch=77), recorded, Settings(n_workers=2, n_sources=1, rate=128, report_s=0.5))
    times = [report.now for report in recorded.calls("observe")]
    assert times == [0.5 * k for k in range(1, 16)]
    assert tuples_before(recorded, "observe") == [64 * k for k in range(1, 16)]


def test_after_a_pause_there_is_one_report_and_the_clock_goes_on():
    recorded = Recorded()
    ts = np.concatenate([np.arange(0, 2, 0.25), np.arange(10.25, 13, 0.25)])
    simulate(Listed(np.arange(len(ts)), ts=ts), recorded, Settings(n_workers=2, n_sources=1, report_s=1.0))
    assert [report.now for report in recorded.calls("observe")] == [1.0, 10.25, 11.0, 12.0]


def test_reports_hold_what_each_worker_received_since_the_last():
    recorded = Recorded()
    given = Settings(n_workers=3, n_sources=1, rate=1024, report_s=0.25, speeds=(4, 1, 0.5), report_noise=0)
    result = simulate(skewed(1100, 9, seed=0), recorded, given)
    reports = recorded.calls("observe")
    assert [report.worker_tuples.sum() for report in reports] == [256] * 4
    for report in reports:
        assert report.worker_seconds == pytest.approx(report.worker_tuples * 0.001 / np.array([4, 1, 0.5]))
    unreported = result.loads * [4, 1, 0.5] - sum(report.worker_tuples for report in reports)
    assert unreported.sum() == 1100 - 1024
    assert (unreported >= 0).all()


def test_routers_never_see_a_true_speed():
    recorded = Recorded()
    given = Settings(n_workers=4, n_sources=2, rate=1000, report_s=0.05, speeds=(4, 1), report_noise=0.1)
    simulate(skewed(5000, 9, seed=0), recorded, given)
    reports = recorded.calls("observe", 0)
    assert len(reports) == 99
    true = 0.001 / np.array([4, 1, 4, 1])
    factors = np.array([report.worker_seconds / report.worker_tuples / true for report in reports])
    assert (factors != 1.0).all()
    # Noise of a relative standard deviation of 0.1, independent from worker to worker.
    assert factors.mean() == pytest.approx(1.0, abs=0.02)
    assert factors.std() == pytest.approx(0.1, rel=0.2)
    assert abs(np.corrcoef(factors[:, 0], factors[:, 1])[0, 1]) < 0.4


def test_a_measured_time_is_never_negative_however_noisy():
    recorded = Recorded()
    simulate(skewed(3000, 9, seed=0), recorded, Settings(n_workers=4, rate=1000, report_s=0.05, report_noise=5.0))
    assert all((report.worker_seconds[report.worker_tuples > 0] > 0).all() for report in recorded.calls("observe"))


def test_every_source_gets_the_same_report_and_a_board_gets_it_once():
    given = Settings(n_workers=2, n_sources=3, rate=1000, report_s=0.2)
    several, shared = Recorded(), Recorded(shared=True)
    simulate(skewed(1000, 9, seed=0), several, given)
    simulate(skewed(1000, 9, seed=0), shared, given)
    first, second, third = (several.calls("observe", source) for source in range(3))
    assert first == second == third
    assert len(first) == len(shared.calls("observe")) == 4


def test_without_reset_loads_no_window_begins():
    recorded = Recorded()
    simulate(skewed(1000, 9, seed=0), recorded, Settings(n_workers=2, window=100))
    assert {call.what for call in recorded.log} == {"route"}


def test_reset_loads_folds_the_reports_of_a_window_and_then_begins_the_next():
    recorded = Recorded()
    given = Settings(n_workers=2, n_sources=2, window=100, reset_loads=True)
    simulate(skewed(350, 9, seed=0, batch=1000), recorded, given)
    window = ["route", "route", "report", "report", "fold", "begin_window", "follow", "begin_window", "follow"]
    assert [call.what for call in recorded.log] == window * 3 + ["route", "route"]
    assert [call.source for call in recorded.log][:9] == [0, 1, 0, 1, -1, 0, 0, 1, 1]
    plans = recorded.calls("follow", 0)
    assert plans == recorded.calls("follow", 1)
    assert [plan.version for plan in plans] == [0, 1, 2]


def test_fold_gets_the_last_plan_and_the_reports_of_sources_and_workers():
    recorded = Recorded()
    given = Settings(n_workers=2, n_sources=2, window=100, reset_loads=True, report_noise=0, speeds=(4, 1))
    simulate(skewed(300, 9, seed=0), recorded, given)
    folds, plans = recorded.calls("fold"), recorded.calls("follow", 0)
    assert [previous for previous, _ in folds] == [None, plans[0], plans[1]]
    for at, (_, reports) in enumerate(folds):
        sources, workers = reports[:-1], reports[-1]
        assert sources == recorded.calls("report")[2 * at : 2 * at + 2]
        assert workers.worker_tuples.sum() == 100
    assert plans[0].seconds_per_tuple == pytest.approx([0.00025, 0.001])


def test_a_shared_board_begins_a_window_once():
    recorded = Recorded(shared=True)
    simulate(skewed(300, 9, seed=0), recorded, Settings(n_workers=2, n_sources=4, window=100, reset_loads=True))
    assert len(recorded.calls("begin_window")) == len(recorded.calls("follow")) == len(recorded.calls("fold")) == 3


def test_workers_change_exactly_at_the_given_tuple():
    recorded = Recorded()
    changes = (Change(130, add=2), Change(407, remove=0), Change(407, remove=3), Change(900, remove=1))
    given = Settings(n_workers=2, n_sources=1, window=100, changes=changes)
    simulate(skewed(1000, 9, seed=0, batch=333), recorded, given)
    assert tuples_before(recorded, "set_workers") == [130, 407, 407, 900]
    assert recorded.calls("set_workers") == [[0, 1, 2, 3], [1, 2, 3], [1, 2], [2]]
    routes = [worker for call in recorded.calls("route") for worker in call.workers]
    assert [set(part) for part in np.split(np.array(routes), [130, 407, 900])] == [{0, 1}, {0, 1, 2, 3}, {1, 2}, {2}]


def test_a_change_at_the_first_tuple_and_one_after_the_end():
    changes = (Change(0, remove=0), Change(5000, add=1))
    result = simulate(skewed(1000, 9, seed=0), ShuffleGrouping(), Settings(n_workers=3, n_sources=1, changes=changes))
    assert result.loads.tolist() == [0.0, 500.0, 500.0, 0.0]
    # Neither the worker that went nor the one that never came counts.
    assert result.imbalance == 0.0
    assert result.load_stddev == 0.0
    assert result.makespan == pytest.approx(1.0)


def test_offline_greedy_is_given_the_exact_counts():
    given_counts = []

    class Spy(OfflineGreedy):
        def with_counts(self, keys, counts):
            given_counts.append((keys, counts))
            return super().with_counts(keys, counts)

    stream = skewed(3000, 700, seed=4, batch=500)
    simulate(stream, Spy(), Settings(n_workers=3))
    keys, counts = np.unique(hash_keys(stream.keys), return_counts=True)
    (found,) = given_counts
    order = np.argsort(found[0])
    assert found[0][order].tolist() == keys.tolist()
    assert found[1][order].tolist() == counts.tolist()


def test_router_bytes_are_those_of_one_source():
    three = Edge(ShuffleGrouping(), n_sources=3, n_workers=4, seed=0)
    assert three.router_bytes == ShuffleGrouping().build(4).nbytes > 0
    assert Edge(KeyGrouping(), n_sources=3, n_workers=4, seed=0).router_bytes == 0
