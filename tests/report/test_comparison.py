from __future__ import annotations

import math

import pytest
from rich.console import Console

from anabranch.report import markdown, table
from anabranch.simulate.sweeps import Cell


def _text(cells, width=100):
    made = table(cells, width)
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(made)
    return [line.rstrip() for line in capture.get().splitlines()]


def _styled(made):
    console = Console(width=100, force_terminal=True, color_system="standard", _environ={})
    with console.capture() as capture:
        console.print(made)
    return capture.get()


def test_one_row_a_cell_in_human_units(make_cell):
    lines = _text([make_cell("key"), make_cell("static-two-choices", latency_mean=math.nan, router_bytes=16)])
    assert lines[0].split() == ["latency", "latency", "saturation", "router", "router"]
    assert lines[1].split() == [
        "grouping",
        "makespan",
        "imbalance",
        "replication",
        "mean",
        "p99",
        "tuples/s",
        "M",
        "tuples/s",
        "bytes",
    ]
    assert lines[3].split() == [
        "key",
        "1.500",
        "0.25",
        "1.200",
        "1.20",
        "ms",
        "4.80",
        "ms",
        "812",
        "k",
        "12.3",
        "12.3",
        "kB",
    ]
    assert lines[4].split() == [
        "static-two-choices",
        "1.500",
        "0.25",
        "1.200",
        "–",
        "4.80",
        "ms",
        "812",
        "k",
        "12.3",
        "16",
        "B",
    ]
    assert len(lines) == 5


def test_swept_parameters_follow_the_grouping_and_equal_points_stand_together(sweep):
    lines = _text(sweep)
    assert lines[1].split()[:4] == ["grouping", "workers", "z", "makespan"]
    shown = [line.split()[:3] for line in lines[3:] if line]
    assert shown[:4] == [["key", "4", "1"], ["shuffle", "4", "1"], ["key", "4", "2"], ["shuffle", "4", "2"]]
    assert lines[5] == ""
    assert len(shown) == 12


def test_repeats_show_mean_and_spread(make_result):
    results = tuple(make_result(makespan=m, imbalance=i) for m, i in ((1.0, 2e-5), (1.5, 4e-5)))
    lines = _text([Cell({}, results)])
    assert lines[3].split()[:7] == ["key", "1.250", "±0.250", "3.0e-5", "±1e-5", "1.200", "±0.000"]


def test_longest_names_with_repeats_fit_into_100_columns(make_result):
    names = ("static-two-choices", "distribution-aware", "partial-key(choices=3)")
    cells = [Cell({}, (make_result(name, makespan=77.9), make_result(name, makespan=78.2))) for name in names]
    lines = _text(cells)
    assert all(len(line) <= 100 for line in lines)
    assert sum("78.05 ±0.15" in line for line in lines) == 3
    assert lines[5].startswith("partial-key ")
    assert lines[6] == "(choices=3)"


def test_with_sweep_and_repeats_only_the_spread_goes_to_the_next_line(make_result):
    cells = [
        Cell({"workers": w, "z": 1.4}, (make_result(name), make_result(name)))
        for name in ("partial-key", "online-greedy")
        for w in (10, 100)
    ]
    lines = _text(cells, 105)
    assert all(len(line) <= 105 for line in lines)
    assert lines[1].split()[:6] == ["grouping", "workers", "z", "makespan", "imbalance", "replication"]
    assert [line.split()[0] for line in lines[3:] if line and not line.startswith(" ")] == [
        "partial-key",
        "online-greedy",
    ] * 2


@pytest.mark.parametrize(
    ("width", "hidden"),
    [
        (100, []),
        (90, ["router bytes"]),
        (80, ["router bytes", "router M tuples/s"]),
        (70, ["router bytes", "router M tuples/s", "saturation tuples/s"]),
        (60, ["router bytes", "router M tuples/s", "saturation tuples/s", "latency mean"]),
    ],
)
def test_columns_that_do_not_fit_are_hidden_in_order_and_counted(make_cell, width, hidden):
    cells = [make_cell("distribution-aware"), make_cell("key")]
    lines = _text(cells, width)
    assert all(len(line) <= width for line in lines)
    assert len(lines[1].split()) == 1 + 8 + 1 - len(hidden) - ("router M tuples/s" in hidden)
    assert lines[3].startswith("distribution-aware ")
    noted = f"{len(hidden)} column{'s' if len(hidden) > 1 else ''} hidden; widen the terminal or use --json"
    assert lines[5:] == ([noted] if hidden else [])


def test_nothing_is_hidden_or_broken_without_a_width(make_result):
    cells = [Cell({"workers": 10}, (make_result("partial-key", makespan=77.9), make_result(makespan=78.2)))]
    made = table(cells)
    assert made.caption is None
    assert len(made.columns) == 10


def test_a_name_is_not_cut_off_however_narrow_the_terminal(make_cell):
    cells = [make_cell("fish(hot_keys='d-choices', assignment='count')"), make_cell("distribution-aware")]
    console = Console(width=30, color_system=None)
    with console.capture() as capture:
        console.print(table(cells, 30), crop=False)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert [line.split()[0] for line in lines[3:7]] == [
        "fish",
        "(hot_keys='d-choices',",
        "assignment='count')",
        "distribution-aware",
    ]
    assert lines[6].split()[1:] == ["1.500", "0.25", "1.200", "4.80", "ms"]


def test_best_makespan_and_replication_are_green(make_cell):
    cells = [
        make_cell("key", makespan=5.0, replication=1.0),
        make_cell("shuffle", makespan=1.0001, replication=2.8),
        make_cell("spillway", makespan=1.0002, replication=1.01),
        make_cell("fish", makespan=math.nan, replication=math.nan),
    ]
    styled = _styled(table(cells)).splitlines()[3:]
    assert [line.count("\x1b[1;32m") for line in styled] == [1, 1, 1, 0]
    assert "\x1b[1;32m      1.000\x1b[0m" in styled[0]


def test_markdown_has_the_same_table(make_cell):
    cells = [make_cell("key", makespan=5.0, replication=1.0), make_cell("a|b", makespan=1.0, replication=2.0)]
    assert markdown(cells) == (
        "| grouping | makespan | imbalance | replication | latency mean | latency p99 | saturation tuples/s"
        " | router M tuples/s | router bytes |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| key | 5.000 | 0.25 | **1.000** | 1.20 ms | 4.80 ms | 812 k | 12.3 | 12.3 kB |\n"
        "| a\\|b | **1.000** | 0.25 | 2.000 | 1.20 ms | 4.80 ms | 812 k | 12.3 | 12.3 kB |\n"
    )


def test_the_best_of_a_sweep_is_the_best_under_equal_parameters(sweep):
    marked = [line for line in markdown(sweep).splitlines()[2:] if "**" in line]
    assert len(marked) == 6
    assert all(line.startswith("| shuffle |") for line in marked)


def test_a_grouping_alone_is_not_the_best(make_cell):
    assert "**" not in markdown([make_cell("key")])
