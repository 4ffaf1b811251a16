from __future__ import annotations

import pytest

from anabranch.report.headline import headline


def test_states_stream_workers_sources_tuples_and_window(make_result):
    results = [
        make_result("key", tuples=2_000_000, window=10_000),
        make_result("shuffle", tuples=2_000_000, window=10_000),
    ]
    assert headline(results) == "zipf(n_keys=50 k, z=1.4) · 4 workers · 5 sources · 2 M tuples · window 10 k"


def test_leaves_out_what_differs(make_result):
    results = [make_result(workers=4, stream_parameters={"z": z}) for z in (1.0, 2.0)] + [make_result(workers=8)]
    assert headline(results) == "zipf · 5 sources · 1000 tuples · window 100"
    assert (
        headline([make_result(), make_result(stream="country")]) == "4 workers · 5 sources · 1000 tuples · window 100"
    )


def test_one_worker_is_singular(make_result):
    assert "· 1 worker · 1 source ·" in headline([make_result(workers=1, sources=1)])


def test_shows_a_files_name_but_not_its_folders(make_result):
    parameters = {"path": "/home/somebody/data/words.csv", "key": "word", "timestamp": None, "columns": []}
    shown = headline([make_result(stream="replay", stream_parameters=parameters)])
    assert shown.startswith("words.csv, key word · ")
    shown = headline([make_result(stream="replay", stream_parameters=parameters | {"timestamp": "at"})])
    assert shown.startswith("words.csv, key word, timestamp at · ")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ([], "· 4 workers · 5"),
        (["1000000:+1"], "· 4 workers, then 5 from tuple 1 M · 5"),
        (["100:+2", "100:-3", "200:-0"], "· 4 workers, then 5 from tuple 100, 4 from tuple 200 · 5"),
        (["1:+1", "2:+1", "3:+1", "4:+1"], "· 4 workers, then 4 changes · 5"),
    ],
)
def test_workers_that_come_and_go_are_counted(make_result, changes, shown):
    assert shown in headline([make_result(settings={"changes": changes, "speeds": [1.0]})])


def test_changes_of_different_numbers_of_workers(make_result):
    results = [make_result(workers=n, settings={"changes": ["100:+2"]}) for n in (4, 8)]
    assert "z=1.4) · changes 100:+2 · 5 sources" in headline(results)


def test_speeds_are_shown_where_they_differ(make_result):
    assert "· speeds 2, 1 · 5 sources" in headline([make_result(settings={"speeds": [2.0, 1.0]})])
    assert "speeds" not in headline([make_result(settings={"speeds": [1.0, 1.0]})])
