"""A chain of operators: locality, balance and throughput, period by period."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from anabranch.chain import ChainSettings, Manager, Pairs, Placement, Servers, place, simulate_chain
from anabranch.errors import ConfigError, InputError
from anabranch.hashing import hash_keys
from anabranch.streams import CorrelatedPairs, Stream, Zipf


@dataclass(frozen=True, eq=False)
class Columns(Stream):
    """Given columns, in batches of another size than periods have."""

    name: ClassVar[str] = "columns"

    columns: dict[str, list]

    def _read(self, seed: int, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        return iter(pa.table(self.columns).slice(start, stop).to_batches(max_chunksize=700))


STREAM = CorrelatedPairs(n_tuples=40_000, n_values=40, locality=0.8)
GIVEN = ChainSettings(n_servers=4, method="greedy", period=10_000)


def hashes(stream: Stream, *names: str) -> list[np.ndarray]:
    return [np.concatenate([hash_keys(batch[name]) for batch in stream.batches()]) for name in names]


def given(**parameters: object) -> ChainSettings:
    return ChainSettings(**{"n_servers": 4, "method": "greedy", "period": 10_000, **parameters})


def test_each_period_is_routed_by_the_tables_of_the_one_before():
    result = simulate_chain(STREAM, GIVEN)
    first, second = hashes(STREAM, "key", "second")
    placement, predicted = Placement.hashed(2, 4), np.nan
    assert [period.tuples for period in result.periods] == [10_000] * 4
    for at, period in enumerate(result.periods):
        mine = slice(at * 10_000, (at + 1) * 10_000)
        routes = [router.route(of[mine]) for router, of in zip(placement.routers(), (first, second), strict=True)]
        assert period.locality == pytest.approx((routes[0] == routes[1]).mean())
        loads = [np.bincount(of, minlength=4) for of in routes]
        assert period.makespans == pytest.approx([of.max() / of.mean() for of in loads])
        assert period.predicted == pytest.approx(predicted, nan_ok=True)
        placement = place(Pairs.exact(first[mine], second[mine]), 4, method="greedy", previous=placement)
        predicted = placement.locality[0]


def test_totals_leave_out_the_first_period():
    result = simulate_chain(STREAM, GIVEN)
    later = result.periods[1:]
    assert result.tuples == 40_000
    assert result.locality == pytest.approx(np.mean([period.locality for period in later]))
    assert result.makespan == pytest.approx(np.mean([max(period.makespans) for period in later]))
    assert result.throughput == pytest.approx(len(later) / sum(1 / period.throughput for period in later))
    alone = simulate_chain(STREAM, given(period=10**6))
    assert alone.locality == alone.periods[0].locality
    assert np.isnan(alone.predicted)


def test_planned_is_local_and_hash_is_not():
    planned, hashed, worst = (simulate_chain(STREAM, given(method=method)) for method in ("greedy", "hash", "worst"))
    assert worst.locality < hashed.locality < 0.4 < 0.8 <= planned.locality
    assert worst.throughput < planned.throughput
    assert planned.makespan < 1.1
    assert hashed.moved == 0


def test_offline_plans_once_and_online_follows():
    """The second half has other pairs."""
    keys = np.arange(20_000) % 40
    stream = Columns(
        {"key": keys.tolist(), "second": np.where(np.arange(20_000) < 10_000, keys, (keys + 7) % 40).tolist()}
    )
    online, offline = (simulate_chain(stream, given(period=2_500, mode=mode)) for mode in ("online", "offline"))
    assert [period.locality for period in offline.periods[1:4]] == [1.0] * 3
    assert max(period.locality for period in offline.periods[4:]) < 0.5
    assert [period.locality for period in online.periods[5:]] == [1.0] * 3
    assert [period.moved > 0 for period in online.periods] == [False, True, False, False, False, True, False, False]


def test_history_pools_periods():
    one, two = (simulate_chain(rare_pairs(), given(period=2_000, history=history)) for history in (1, 3))
    assert two.locality > one.locality


def rare_pairs() -> Stream:
    """Rare keys: one period does not show them all."""
    keys = np.concatenate([batch["key"].to_numpy() for batch in Zipf(16_000, 3_000, 0.6).batches()])
    return Columns({"key": keys.tolist(), "second": (keys + 5_000).tolist()})


def test_few_counters_still_find_frequent_pairs():
    exact, few, fewer = (simulate_chain(STREAM, given(capacity=capacity)) for capacity in (None, 1_600, 60))
    assert few.locality == pytest.approx(exact.locality)
    assert simulate_chain(STREAM, given(method="hash")).locality < fewer.locality <= exact.locality + 0.01


def test_careful_leaves_tables_that_do_not_pay():
    free, dear = (simulate_chain(STREAM, given(careful=True, state_bytes=size)) for size in (1.0, 1e12))
    assert free.locality > 0.8
    assert free.periods[1].moved > 0
    assert dear.locality < 0.4
    assert dear.moved == 0


def test_three_operators():
    keys = np.arange(30_000) % 60
    stream = Columns({"a": keys.tolist(), "b": (keys + 100).tolist(), "c": (keys + 200).tolist()})
    result = simulate_chain(stream, given(keys=("a", "b", "c"), period=15_000))
    assert result.locality == 1.0
    assert len(result.periods[1].makespans) == 3


def test_stateless_operators_between():
    """Local-or-shuffle costs work and no network; shuffle sends most tuples away and back."""
    plain, local, shuffled = (
        simulate_chain(STREAM, given(between=between)) for between in ("nothing", "local-or-shuffle", "shuffle")
    )
    assert local.locality == pytest.approx((1 + plain.locality) / 2)
    assert shuffled.locality == pytest.approx(1 / 4, abs=0.02)
    assert shuffled.throughput < local.throughput < plain.throughput


def test_periods_by_time():
    ts = np.repeat([0.0, 5.0, 12.0, 40.0], [1_000, 500, 700, 300])
    stream = Columns({"key": list(range(2_500)), "second": list(range(2_500)), "ts": ts.tolist()})
    result = simulate_chain(stream, given(period_s=10.0))
    assert [period.tuples for period in result.periods] == [1_500, 700, 300]
    for late in (1_400, 1_600, 2_499):
        ts[late] = -1.0
        with pytest.raises(InputError, match="need rows in the order of their time; sort the file by it"):
            simulate_chain(
                Columns({"key": list(range(2_500)), "second": list(range(2_500)), "ts": ts.tolist()}),
                given(period_s=10.0),
            )
        ts[late] = ts[late - 1]


def test_padding_and_bandwidth_reach_the_model():
    rates = [simulate_chain(STREAM, given(padding=padding)).throughput for padding in (0, 12_000)]
    assert rates[1] < rates[0]
    slow = simulate_chain(STREAM, given(padding=12_000, servers=Servers(bandwidth=1e8)))
    assert slow.throughput < rates[1]


def test_a_limit_is_the_start_of_the_stream():
    limited = simulate_chain(STREAM, given(limit=20_000))
    assert limited.tuples == 20_000
    assert limited.periods[1] == simulate_chain(STREAM, GIVEN).periods[1]


def test_the_record_is_json():
    record = simulate_chain(STREAM, GIVEN).record()
    again = json.loads(json.dumps(record, allow_nan=False))
    assert again["settings"]["keys"] == ["key", "second"]
    assert again["periods"][0]["predicted"] is None
    assert len(again["periods"][0]["makespans"]) == 2


def test_progress_counts_every_tuple():
    seen: list[int] = []
    simulate_chain(STREAM, GIVEN, progress=seen.append)
    assert sum(seen) == 40_000


def test_missing_columns_are_named():
    with pytest.raises(InputError, match="the stream has no column 'second', it has key; name another"):
        simulate_chain(Zipf(100, 10, 1.0))
    with pytest.raises(InputError, match="no column 'ts', it has key, second; give a period in tuples"):
        simulate_chain(STREAM, given(period_s=5.0))
    with pytest.raises(InputError, match="the stream has no tuples"):
        simulate_chain(Columns({"key": [], "second": []}))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"keys": ("key",)}, "a chain has at least 2 operators"),
        ({"n_servers": 0}, "n_servers must be at least 1, got 0"),
        ({"period": 0}, "period must be at least 1, got 0"),
        ({"history": 0}, "history must be at least 1, got 0"),
        ({"fade": 0.0}, "fade must be above 0 and at most 1, got 0.0"),
        ({"capacity": 0}, "capacity must be at least 1, got 0"),
        ({"period_s": 0.0}, "period_s must be above 0, got 0.0"),
        ({"padding": -1}, "padding must be 0 or more bytes, got -1"),
        ({"seed": -1}, "seed must be 0 or a positive whole number, got -1"),
        ({"mode": "daily"}, "mode must be one of online, offline, got 'daily'"),
        ({"between": "all"}, "between must be one of nothing, local-or-shuffle, shuffle, got 'all'"),
        ({"method": "magic"}, "method must be one of metis, greedy, hash, worst, got 'magic'"),
        ({"alpha": 0.5}, "alpha must be at least 1, got 0.5"),
    ],
)
def test_wrong_settings_are_refused(parameters, message):
    with pytest.raises(ConfigError, match=message):
        given(**parameters)


@pytest.mark.parametrize("careful", [False, True])
def test_hot_keys_are_split_where_that_is_asked_for(careful):
    rng = np.random.default_rng(2)
    first = rng.integers(0, 50, 8_000)
    second = np.where(rng.random(8_000) < 0.5, 99, first)
    stream = Columns({"key": first, "second": second})
    whole, parts = (
        simulate_chain(stream, given(period=4_000, split=split, careful=careful)) for split in (False, True)
    )
    assert whole.periods[1].makespans[1] > 1.9
    assert max(parts.periods[1].makespans) < 1.15
    # All 51 keys of the second operator have more than a hundredth of a server's share.
    assert [period.split for period in parts.periods] == [0, 51] and parts.split == 51 and whole.split == 0
    assert parts.periods[1].locality == 1.0


def test_the_manager_has_the_settings_of_the_chain():
    chosen = {"n_servers": 3, "alpha": 1.2, "method": "worst", "seed": 7, "servers": Servers(bandwidth=1e7)}
    chosen |= {"padding": 9, "state_bytes": 5.0, "split": True}
    assert given(**chosen).manager == Manager(**chosen)
