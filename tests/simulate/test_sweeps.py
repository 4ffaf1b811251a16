"""Sweeps: which cells there are, and what their records hold."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from anabranch.errors import ConfigError
from anabranch.groupings import KeyGrouping, PartialKeyGrouping, ShuffleGrouping
from anabranch.simulate import METRICS, Cell, Settings, simulate, sweep
from anabranch.streams import Zipf, named, names

SETTINGS = Settings(n_workers=4, n_sources=2, window=1000)
GROUPINGS = {"key": KeyGrouping(), "three": PartialKeyGrouping(choices=3)}
# What the record of a cell holds at the least: files of the outside build on these names.
PROMISED = {
    *("grouping", "parameters", "stream", "workers", "sources", "tuples", "keys", "window", "seed", "version"),
    *("imbalance", "imbalance_mean", "makespan", "replication", "replication_window", "load_stddev"),
    *("latency_mean", "latency_p50", "latency_p95", "latency_p99"),
    *("saturation_rate", "tuples_per_second", "router_bytes"),
}


def make_stream(z: float = 1.0, n_keys: int = 50) -> Zipf:
    return Zipf(n_tuples=2500, n_keys=n_keys, z=z)


def strict(record: object) -> str:
    return json.dumps(record, allow_nan=False)


def test_every_grouping_runs_on_every_combination():
    vary = {"n_workers": [2, 3], "n_sources": [2], "z": [0.5, 1.5], "n_keys": [50]}
    cells = list(sweep(make_stream, GROUPINGS, SETTINGS, vary=vary))
    # What does not vary is no part of a cell's name.
    assert [(cell.grouping, cell.swept) for cell in cells] == [
        (name, {"workers": workers, "z": z}) for workers in (2, 3) for z in (0.5, 1.5) for name in ("key", "three")
    ]
    for cell in cells:
        (result,) = cell.results
        assert result.workers == cell.swept["workers"] == len(result.loads)
        assert result.stream_parameters["z"] == cell.swept["z"]
        assert result.sources == 2


def test_a_swept_parameter_loses_its_prefix_in_the_name():
    vary = {"n_keys": [10, 20], "n_sources": [1, 2]}
    cells = list(sweep(make_stream, {"key": KeyGrouping()}, SETTINGS, vary=vary))
    assert [cell.swept for cell in cells] == [
        {"keys": keys, "sources": sources} for keys in (10, 20) for sources in (1, 2)
    ]


def test_without_anything_to_vary_there_is_one_cell_a_grouping():
    cells = list(sweep(make_stream, GROUPINGS, SETTINGS))
    assert [(cell.grouping, cell.swept, len(cell.results)) for cell in cells] == [("key", {}, 1), ("three", {}, 1)]


def test_a_cell_is_the_simulation_of_its_parameters():
    (cell,) = sweep(make_stream, {"mine": KeyGrouping()}, SETTINGS, vary={"z": [1.3]})
    alone = simulate(make_stream(z=1.3), KeyGrouping(), SETTINGS)
    assert cell.mean("makespan") == alone.makespan
    assert cell.spread("makespan") == 0.0
    assert cell.results[0].grouping == "mine"


def test_repeats_take_the_next_seeds_and_are_averaged():
    (cell,) = sweep(make_stream, {"key": KeyGrouping()}, replace(SETTINGS, seed=5), repeat=3)
    alone = [simulate(make_stream(), KeyGrouping(), replace(SETTINGS, seed=seed)) for seed in (5, 6, 7)]
    assert [result.seed for result in cell.results] == [5, 6, 7]
    values = [result.makespan for result in alone]
    assert len(set(values)) == 3
    mean = sum(values) / 3
    assert cell.mean("makespan") == pytest.approx(mean)
    assert cell.spread("makespan") == pytest.approx((sum((v - mean) ** 2 for v in values) / 3) ** 0.5)
    record = cell.record()
    assert record["makespan"] == pytest.approx(mean)
    assert record["spread"]["makespan"] == pytest.approx(cell.spread("makespan"))
    assert record["repeat"] == 3


def test_no_repeat_is_no_run():
    with pytest.raises(ConfigError, match=r"^repeat must be at least 1, got 0"):
        list(sweep(make_stream, GROUPINGS, SETTINGS, repeat=0))


def test_progress_counts_the_tuples_of_all_runs():
    steps: list[int] = []
    list(sweep(make_stream, GROUPINGS, SETTINGS, vary={"z": [1.0, 2.0]}, repeat=2, progress=steps.append))
    assert sum(steps) == 2500 * 2 * 2 * 2


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_record_has_the_promised_names_and_is_strict_json(repeat):
    (cell,) = sweep(make_stream, {"three": PartialKeyGrouping(choices=3)}, SETTINGS, vary={"z": [1.3]}, repeat=repeat)
    record = json.loads(strict(cell.record()))
    assert set(record) >= PROMISED | set(METRICS)
    assert set(record["spread"]) == set(METRICS)
    assert record["grouping"] == "three"
    assert record["parameters"] == {"choices": 3, "estimation": "local", "probe_s": None}
    assert record["stream"] == "zipf"
    assert record["stream_parameters"] == {"n_tuples": 2500, "n_keys": 50, "z": 1.3}
    assert (record["workers"], record["sources"], record["tuples"], record["window"]) == (4, 2, 2500, 1000)
    assert ("windows" in record) == (repeat == 1)


def test_a_record_without_repeats_has_loads_and_windows():
    (cell,) = sweep(make_stream, {"shuffle": ShuffleGrouping()}, SETTINGS)
    record = json.loads(strict(cell.record()))
    assert record["loads"] == [625.0] * 4
    assert record["windows"]["tuples"] == [1000, 2000, 2500]
    assert {len(values) for values in record["windows"].values()} == {3}


def test_what_is_not_a_number_becomes_null():
    (cell,) = sweep(make_stream, {"key": KeyGrouping()}, SETTINGS)
    result = replace(cell.results[0], makespan=float("nan"))
    for repeats in (1, 2):
        record = json.loads(strict(Cell({}, (result,) * repeats).record()))
        assert record["makespan"] is None
        assert record["spread"]["makespan"] is None
    assert replace(result, saturation_rate=float("inf")).record()["saturation_rate"] is None


@pytest.mark.parametrize("name", names())
def test_the_record_of_every_stream_is_strict_json(name):
    stream = named(name)(n_tuples=1200)
    record = simulate(stream, KeyGrouping(), SETTINGS).record()
    assert json.loads(strict(record))["stream"] == stream.name


def test_the_mean_over_repeats_is_a_plain_number():
    (cell,) = sweep(make_stream, {"key": KeyGrouping()}, SETTINGS, repeat=2)
    assert type(cell.mean("partials")) is float
    assert np.isfinite([cell.mean(metric) for metric in METRICS]).all()
