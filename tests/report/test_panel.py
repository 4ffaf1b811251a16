from __future__ import annotations

import numpy as np
import pytest

from anabranch import metrics
from anabranch.report.panel import (
    MAX_POINTS,
    heading,
    imbalance_over_time,
    is_sweep,
    latency_distribution,
    latency_over_time,
    loads,
    panels,
)
from anabranch.simulate.sweeps import Cell


def test_a_single_run_has_four_panels(make_cell):
    made = panels([make_cell("key"), make_cell("shuffle")])
    assert [(p.title, p.kind, p.x.log, p.y.log) for p in made] == [
        ("Load per worker", "bar", False, False),
        ("Imbalance over time", "line", False, True),
        ("Latency over time", "line", False, True),
        ("Latency distribution", "line", True, True),
    ]
    assert all([s.name for s in p.series] == ["key", "shuffle"] for p in made)


def test_loads_are_sorted_and_relative_to_the_mean(make_cell):
    (series,) = loads([make_cell()]).series
    assert series.x.tolist() == [1, 2, 3, 4]
    assert series.y.tolist() == [2.0, 1.2, 0.4, 0.4]
    assert series.note == "makespan 1.500 · replication 1.200"


def test_loads_of_repeats_are_averaged_rank_by_rank(make_result):
    repeats = (make_result(loads=np.array([1.0, 3.0])), make_result(loads=np.array([6.0, 2.0])))
    (series,) = loads([Cell({}, repeats)]).series
    assert series.y.tolist() == [1.5, 0.5]


def test_loads_of_nothing_are_zero(make_cell):
    assert loads([make_cell(loads=np.zeros(3))]).series[0].y.tolist() == [0, 0, 0]


def test_many_workers_are_drawn_as_steps(make_cell):
    assert loads([make_cell(loads=np.ones(64))]).kind == "bar"
    assert loads([make_cell(loads=np.ones(65))]).kind == "step"


def test_a_tower_over_fifty_times_the_mean_needs_a_log_scale(make_cell):
    tower = np.zeros(100)
    tower[7] = 1.0
    panel = loads([make_cell("key", loads=tower), make_cell("shuffle", loads=np.ones(100))])
    assert panel.y.log
    assert "log scale" in panel.y.label
    tower[8:10] = 1.0
    assert not loads([make_cell("key", loads=tower)]).y.log


def test_imbalance_below_one_tuple_of_the_stream_is_clipped(make_cell):
    windows = {"n_windows": 4, "imbalance": np.array([0.5, 0.0, 1e-16, 0.002])}
    (series,) = imbalance_over_time([make_cell(windows=windows)]).series
    assert series.x.tolist() == [100, 200, 300, 400]
    assert series.y.tolist() == [0.5, 0.001, 0.001, 0.002]


def test_a_window_without_latency_stays_a_gap(make_cell):
    windows = {"n_windows": 3, "latency_mean": np.array([0.002, np.nan, 0.0])}
    (series,) = latency_over_time([make_cell(windows=windows)]).series
    np.testing.assert_array_equal(series.y, [0.002, np.nan, 1e-9])


def test_windows_of_repeats_are_averaged(make_result):
    repeats = tuple(make_result(windows={"n_windows": 2, "imbalance": np.array(v)}) for v in ([0.1, 0.3], [0.3, 0.5]))
    (series,) = imbalance_over_time([Cell({}, repeats)]).series
    np.testing.assert_allclose(series.y, [0.2, 0.4])


def test_many_windows_are_averaged_in_runs(make_cell):
    n = 2 * MAX_POINTS
    windows = {"n_windows": n, "imbalance": np.arange(1.0, n + 1)}
    (series,) = imbalance_over_time([make_cell(windows=windows)]).series
    assert series.x.tolist() == list(range(200, 100 * n + 1, 200))
    assert series.y.tolist() == [2 * i + 1.5 for i in range(MAX_POINTS)]


def test_latency_distribution_is_the_share_at_or_above_each_edge(make_cell):
    histogram = np.zeros(metrics.N_LATENCY_BINS, np.int64)
    histogram[[100, 102, 103]] = [2, 1, 1]
    (series,) = latency_distribution([make_cell(latency_histogram=histogram)]).series
    assert series.x.tolist() == metrics.latency_edges()[100:104].tolist()
    assert series.y.tolist() == [1.0, 0.5, 0.5, 0.25]


def test_latency_distribution_starts_where_a_thousandth_is_done(make_cell):
    histogram = np.zeros(metrics.N_LATENCY_BINS, np.int64)
    histogram[[100, 900, 901]] = [1, 5000, 4999]
    (series,) = latency_distribution([make_cell(latency_histogram=histogram)]).series
    assert series.x.tolist() == metrics.latency_edges()[900:902].tolist()
    assert series.y.tolist() == [0.9999, 0.4999]


def test_groupings_without_latencies_are_left_out(make_cell):
    empty = make_cell("key", latency_histogram=np.zeros(metrics.N_LATENCY_BINS, np.int64))
    assert [s.name for s in latency_distribution([empty, make_cell("shuffle")]).series] == ["shuffle"]
    assert latency_distribution([empty]).series == ()


def test_a_sweep_has_three_panels_for_each_value_of_the_second_parameter(sweep):
    assert is_sweep(sweep)
    made = panels(sweep)
    assert [p.title for p in made] == [
        "Makespan, z = 1",
        "Replication, z = 1",
        "Latency p99, z = 1",
        "Makespan, z = 2",
        "Replication, z = 2",
        "Latency p99, z = 2",
    ]
    makespan = made[3]
    assert makespan.x.label == "workers"
    assert makespan.x.log
    assert makespan.x.ticks == ((4.0, "4"), (16.0, "16"), (64.0, "64"))
    assert [s.name for s in makespan.series] == ["key", "shuffle"]
    assert makespan.series[0].x.tolist() == [4, 16, 64]
    assert makespan.series[0].y.tolist() == [16, 64, 256]
    assert makespan.series[0].spread is None


def test_a_sweep_along_one_parameter_is_sorted_by_it(make_cell):
    made = panels([make_cell("key", {"z": z}, makespan=10 * z) for z in (2.0, 0.5, 1.0)])
    assert [p.title for p in made] == ["Makespan", "Replication", "Latency p99"]
    assert made[0].series[0].x.tolist() == [0.5, 1.0, 2.0]
    assert made[0].series[0].y.tolist() == [5, 10, 20]
    assert not made[0].x.log


def test_the_first_number_is_on_the_x_axis(make_cell):
    cells = [make_cell("key", {"stream": s, "one": 1, "z": z}) for s in ("zipf", "ln1") for z in (1.0, 2.0)]
    made = panels(cells)
    assert {p.x.label for p in made} == {"z"}
    assert made[0].title == "Makespan, stream = zipf, one = 1"


def test_values_that_are_not_numbers_stand_in_order_of_appearance(make_cell):
    made = panels([make_cell("key", {"stream": s}, makespan=m) for s, m in (("zipf", 3.0), ("country", 2.0))])
    assert made[0].x.ticks == ((0.0, "zipf"), (1.0, "country"))
    assert made[0].series[0].x.tolist() == [0, 1]
    assert made[0].series[0].y.tolist() == [3, 2]
    assert not made[0].x.log


def test_a_sweep_with_repeats_has_spreads(make_result):
    cells = [
        Cell({"z": z}, (make_result(makespan=1.0), make_result(makespan=3.0), make_result(makespan=2.0)))
        for z in (1.0, 2.0)
    ]
    series = panels(cells)[0].series[0]
    assert series.y.tolist() == [2, 2]
    assert series.spread is not None
    np.testing.assert_allclose(series.spread, (2 / 3) ** 0.5)


def test_at_most_six_combinations_are_shown_and_the_heading_says_so(make_cell):
    cells = [make_cell("key", {"workers": w, "z": z}) for w in (1, 2) for z in range(11)]
    made = panels(cells)
    assert [p.title for p in made[::3]] == [f"Makespan, z = {z}" for z in (0, 2, 4, 6, 8, 10)]
    assert heading(cells).endswith(" · 6 of 11 combinations shown")
    assert "combinations" not in heading(cells[:6])


@pytest.mark.parametrize("swept", [{}, {"z": 1.0}])
def test_one_point_is_not_a_sweep(make_cell, swept):
    cells = [make_cell("key", swept), make_cell("shuffle", swept)]
    assert not is_sweep(cells)
    assert panels(cells)[0].title == "Load per worker"
