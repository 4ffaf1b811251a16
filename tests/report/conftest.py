from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anabranch import metrics
from anabranch.simulate.result import Result, Windows
from anabranch.simulate.sweeps import Cell


def _windows(n_windows: int, **changed: Any) -> Windows:
    values: dict[str, Any] = {
        "tuples": 100 * np.arange(1, n_windows + 1),
        "imbalance": np.full(n_windows, 0.5),
        "makespan": np.full(n_windows, 1.5),
        "replication": np.full(n_windows, 1.2),
        "latency_mean": np.full(n_windows, 0.001),
        "latency_p50": np.full(n_windows, 0.001),
        "latency_p99": np.full(n_windows, 0.004),
    }
    return Windows(**values | changed)


@pytest.fixture
def make_result() -> Callable[..., Result]:
    """A result made by hand; any field can be given, those of its windows as a dictionary."""

    def make(grouping: str = "key", **changed: Any) -> Result:
        histogram = np.zeros(metrics.N_LATENCY_BINS, np.int64)
        histogram[1000:1010] = 100
        values: dict[str, Any] = {
            "grouping": grouping,
            "parameters": {},
            "stream": "zipf",
            "stream_parameters": {"name": "zipf", "n_tuples": 1000, "n_keys": 50_000, "z": 1.4},
            "workers": 4,
            "sources": 5,
            "tuples": 1000,
            "keys": 40,
            "window": 100,
            "seed": 0,
            "version": "0.1.0",
            "settings": {},
            "rate": 1000.0,
            "imbalance": 0.25,
            "imbalance_mean": 0.25,
            "imbalance_mean_running": 0.25,
            "makespan": 1.5,
            "replication": 1.2,
            "replication_window": 1.1,
            "partials": 48,
            "load_stddev": 1.0,
            "latency_mean": 0.0012,
            "latency_p50": 0.001,
            "latency_p95": 0.002,
            "latency_p99": 0.0048,
            "saturation_rate": 812_345.0,
            "elapsed": 2.0,
            "tuples_per_second": 12_340_000.0,
            "router_bytes": 12_345,
            "loads": np.array([100.0, 500.0, 300.0, 100.0]),
            "latency_histogram": histogram,
            "windows": {},
        }
        values |= changed
        if isinstance(values["windows"], dict):
            values["windows"] = _windows(values["windows"].pop("n_windows", 10), **values["windows"])
        return Result(**values)

    return make


@pytest.fixture
def make_cell(make_result: Callable[..., Result]) -> Callable[..., Cell]:
    """A cell with one result made by hand."""

    def make(grouping: str = "key", swept: dict[str, Any] | None = None, **changed: Any) -> Cell:
        return Cell(swept or {}, (make_result(grouping, **changed),))

    return make


@pytest.fixture
def sweep(make_cell: Callable[..., Cell]) -> list[Cell]:
    """Two groupings over three numbers of workers and two skews, grouping by grouping."""
    return [
        make_cell(
            grouping,
            {"workers": workers, "z": z},
            workers=workers,
            stream_parameters={"z": z},
            makespan=base * z * workers,
            replication=base + workers,
        )
        for grouping, base in (("key", 2.0), ("shuffle", 1.0))
        for workers in (4, 16, 64)
        for z in (1.0, 2.0)
    ]
