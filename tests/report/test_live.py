from __future__ import annotations

import math

import numpy as np
import pytest

from anabranch.report.live import HEADERS, LiveRun, batch_times, live_page, live_rows, loads, makespans


def run(grouping="key", seconds=(4.0, 2.0), worker_tuples=((3, 1), (1, 1)), partials=(3, 3), keys=(2, 2)) -> LiveRun:
    return LiveRun(
        grouping,
        *(np.array(values, dtype=float) for values in (seconds, partials, keys)),
        np.array(worker_tuples, float),
    )


def test_figures_are_over_all_batches():
    made = run()
    assert made.tuples == 6
    assert made.throughput == 1.0
    assert made.makespan == (3 + 1) / (2 + 1)
    assert made.replication == 1.5
    assert (made.batch_s(0.5), made.batch_s(0.99)) == (2.0, 4.0)


def test_batches_whose_keys_are_not_known_do_not_count_in_replication():
    assert run(partials=(3, 5), keys=(2, 0)).replication == 1.5
    assert math.isnan(run(keys=(0, 0)).replication)


def test_the_better_run_of_each_column_is_marked():
    better = run("fish", seconds=(1.0, 1.0), worker_tuples=((2, 2), (1, 1)), partials=(4, 4))
    key, fish = live_rows([run(), better])
    assert [entry.text for entry in fish.entries] == ["fish", "3.00", "1.00 s", "1.00 s", "1.000", "2.000"]
    assert [entry.best for entry in key.entries] == [False, False, False, False, False, True]
    assert [entry.best for entry in fish.entries] == [False, True, True, True, True, False]
    assert not any(entry.best for entry in live_rows([better])[0].entries)


def test_loads_are_ordered_within_each_batch():
    swapped = run(worker_tuples=((3, 1), (1, 3)))
    assert loads([swapped]).series[0].y.tolist() == [1.5, 0.5]


def test_panels_have_one_point_a_batch():
    assert batch_times([run()]).series[0].y.tolist() == [4.0, 2.0]
    assert makespans([run()]).series[0].y.tolist() == [1.5, 1.0]


def test_the_page_holds_what_was_run_and_refers_to_nothing_outside():
    pytest.importorskip("plotly")
    html = live_page("a < b", {"work": "5 µs & more"}, [run(), run("fish")])
    body = html[html.index("<body>") :]
    assert "<h1>a &lt; b</h1>" in body
    assert "5 µs &amp; more" in body
    for header in HEADERS:
        assert f"<th>{header}</th>" in body
    assert "src=" not in body
    assert "href=" not in body
