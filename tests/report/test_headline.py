from __future__ import annotations

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
    parameters = {"path": "/home/somebody/data/words.csv", "key": "word", "time": None}
    shown = headline([make_result(stream="replay", stream_parameters=parameters)])
    assert shown.startswith("replay(path=words.csv, key=word) · ")
