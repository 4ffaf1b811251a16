"""``anabranch simulate``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import groupings
from anabranch.groupings import ConsistentGrouping, WChoices
from anabranch.simulate import METRICS, Change, Settings, simulate
from anabranch.streams import Zipf, names

# A table must be made by somebody, so that "all" leaves it out.
ALONE = [name for name in groupings.names() if name != "table"]
SMALL = ("simulate", "--tuples", "2k", "--stream", "zipf(keys=50)", "--window", "500")


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.parquet"
    table = {"word": ["to", "be", "or", "not", "to", "be"] * 50, "at": [i * 0.5 for i in range(300)]}
    pq.write_table(pa.table(table | {"page": [i // 7 for i in range(300)]}), path)
    return path


def records(out: str) -> list[dict]:
    # NaN is no JSON, though Python reads it.
    return json.loads(out, parse_constant=pytest.fail)


def test_the_table_has_a_row_a_grouping(run):
    done = run(*SMALL, "--grouping", "key", "--grouping", "shuffle")
    assert done.code == 0
    assert done.err == ""
    head, *rows = [line for line in done.out.splitlines() if line.strip()]
    assert any("makespan" in line for line in [head, *rows])
    assert [line.split()[0] for line in rows if line.split()[0] in groupings.names()] == ["key", "shuffle"]
    assert all(len(line) <= 140 for line in done.out.splitlines())


def test_without_a_grouping_there_are_all(run):
    done = run(*SMALL, "--json", "-")
    assert [record["grouping"] for record in records(done.out)] == ALONE


def test_a_grouping_is_called_as_it_was_given(run):
    done = run(*SMALL, "--grouping", "partial-key(choices=3)", "--grouping", "all", "--grouping", "key", "--json", "-")
    found = records(done.out)
    assert [record["grouping"] for record in found] == ["partial-key(choices=3)", *ALONE]
    assert found[0]["parameters"]["choices"] == 3
    shown = run(*SMALL, "--grouping", "partial-key(choices=3)").out
    assert "partial-key" in shown
    assert "(choices=3)" in shown


def test_options_reach_the_simulator(run):
    options = ["--workers", 3, "--sources", 2, "--seed", 4, "--service-ms", 20, "--merge-ms", 5, "--speeds", "2,1"]
    options += ["--rate", 70, "--report-s", 0.5, "--report-noise", 0.2, "--change", "1.5k:+2", "--change", "1.8k:-0"]
    options += ["--stream", "zipf(keys=50, z=1.1)", "--reset-loads", "--source-key", "key"]
    # A grouping that goes by what the workers report: noise and period of the reports show in its routes.
    done = run(*SMALL, *options, "--grouping", "consistent", "--json", "-")
    given = Settings(
        n_workers=3,
        n_sources=2,
        window=500,
        seed=4,
        rate=70.0,
        service_s=0.02,
        merge_s=0.005,
        speeds=(2.0, 1.0),
        report_s=0.5,
        report_noise=0.2,
        reset_loads=True,
        source_key="key",
        changes=(Change(1500, add=2), Change(1800, remove=0)),
    )
    expected = simulate(Zipf(n_tuples=2000, n_keys=50, z=1.1), ConsistentGrouping(), given)
    (record,) = records(done.out)
    assert record["loads"] == expected.loads.tolist()
    for metric in set(METRICS) - {"tuples_per_second"}:
        assert record[metric] == getattr(expected, metric), metric


def test_the_planned_edge_runs_all_groupings_that_a_table_can_hold(run):
    found = records(
        run(*SMALL, "--stream", "zipf(keys=50, z=1.4)", "--edge", "planned", "--seed", 2, "--json", "-").out
    )
    assert {"spillway", "key", "shuffle", "w-choices"} <= {record["grouping"] for record in found}
    assert {"fish", "partial-key", "offline-greedy"}.isdisjoint(record["grouping"] for record in found)
    assert {record["settings"]["edge"] for record in found} == {"planned"}
    expected = simulate(Zipf(2000, 50, 1.4), WChoices(), Settings(window=500, seed=2, edge="planned"))
    (got,) = (record for record in found if record["grouping"] == "w-choices")
    assert got["loads"] == expected.loads.tolist()


def test_a_worker_beyond_the_default_number_may_go(run):
    options = ("--workers", 20, "--change", "1k:-19", "--grouping", "shuffle", "--sources", 1, "--json", "-")
    (record,) = records(run(*SMALL, *options).out)
    assert record["loads"][19] == 50


def test_defaults_are_those_of_the_help(run):
    (record,) = records(run("simulate", "--grouping", "key", "--json", "-").out)
    assert record["stream_parameters"] == {"n_tuples": 1_000_000, "n_keys": 100_000, "z": 1.2}
    assert (record["workers"], record["sources"], record["window"], record["seed"]) == (16, 5, 50_000, 0)


def test_a_sweep_has_a_record_a_cell_with_mean_and_spread(run):
    done = run(
        *SMALL,
        *("--stream", "zipf(keys=50, z=1.0:1.2:0.1)", "--workers", "4,8", "--repeat", 2),
        *("--grouping", "key", "--grouping", "shuffle", "--json", "-"),
    )
    found = records(done.out)
    assert [(record["grouping"], record["swept"]) for record in found] == [
        (name, {"workers": workers, "z": z})
        for workers in (4, 8)
        for z in (1.0, 1.1, 1.2)
        for name in ("key", "shuffle")
    ]
    assert all(record["repeat"] == 2 for record in found)
    assert all(set(record["spread"]) == set(METRICS) for record in found)
    assert all(record["spread"]["makespan"] > 0 for record in found if record["grouping"] == "key")


def test_a_sweep_shows_the_spread(run):
    done = run(*SMALL, "--stream", "zipf(keys=50, z=1.0,1.4)", "--repeat", 2, "--grouping", "key")
    assert done.code == 0
    assert "±" in done.out
    assert "1.4" in done.out


def test_json_to_a_file_comes_with_the_table(run, tmp_path):
    path = tmp_path / "new" / "run.json"
    done = run(*SMALL, "--grouping", "key", "--json", path)
    assert done.code == 0
    assert "makespan" in done.out
    assert done.err == f"records: {path}\n"
    assert [record["grouping"] for record in records(path.read_text())] == ["key"]


@pytest.mark.parametrize(("ending", "begin"), [(".png", b"\x89PNG"), (".html", b"<!")])
def test_a_plot_is_drawn_into_a_file(run, tmp_path, ending, begin):
    path = tmp_path / f"picture{ending}"
    done = run(*SMALL, "--grouping", "key", "--grouping", "shuffle", "--plot", path)
    assert done.code == 0
    assert path.read_bytes().lstrip()[: len(begin)] == begin
    assert len(path.read_bytes()) > 10_000
    assert str(path) in done.err


def test_a_file_is_replayed(run, words):
    options = ("--input", words, "--grouping", "key", "--json", "-")
    (record,) = records(run("simulate", *options, "--key", "word").out)
    assert (record["stream"], record["tuples"], record["keys"]) == ("replay", 300, 4)
    (timed,) = records(run("simulate", *options, "--key", "word", "--timestamp", "at", "--tuples", 101).out)
    assert timed["tuples"] == 101
    assert timed["rate"] == pytest.approx(2.0)


@pytest.mark.parametrize("column", ["page", "word"])
def test_a_column_of_a_file_decides_the_source(run, words, column):
    done = run(
        "simulate", "--input", words, "--key", "word", "--source-key", column, "--grouping", "key", "--json", "-"
    )
    assert done.code == 0
    assert records(done.out)[0]["tuples"] == 300


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "--workers must be at least 1, got '0'"),
        (["--workers", "1e9"], "--workers must be at most 1000000, got '1e9'"),
        (["--workers", "2.5"], "--workers must be whole numbers, got '2.5'"),
        (["--workers", "16,"], "--workers must be a number such as 16, 1.4, 10k or 2M, got '16,'"),
        (["--sources", "0"], "--sources must be at least 1, got '0'"),
        (["--window", "0"], "--window must be at least 1, got '0'"),
        (["--tuples", "0"], "--tuples must be at least 1, got '0'"),
        (["--seed", "-1"], "--seed must be at least 0, got '-1'"),
        (["--speeds", "nan"], "--speeds takes relative speeds such as 2,1, got 'nan'"),
        (["--speeds", "1,0"], "--speeds must be above 0, got '1,0'; 1 is a worker of normal speed"),
        (["--rate", "0"], "--rate must be above 0, got '0'"),
        (["--repeat", "0"], "--repeat must be at least 1, got '0'"),
        (["--service-ms", "-1"], "--service-ms must be above 0, got '-1'"),
        (["--merge-ms", "-1"], "--merge-ms must be 0 or more, got '-1'"),
        (["--report-s", "0"], "--report-s must be above 0, got '0'"),
        (["--report-noise", "-0.5"], "--report-noise must be 0 or more, got '-0.5'"),
        (["--grouping", "partial-key(choices=x)"], "choices must be a whole number, got 'x'"),
        (["--grouping", "fish(theta=nan)"], "theta must be a number or None, got 'nan'"),
        (["--grouping", "partial-key(choices=0)"], "choices must be at least 1, got 0"),
        (["--grouping", "partial-kee"], "no grouping is named 'partial-kee'; did you mean partial-key?"),
        (["--grouping", "partial-key(choice=2)"], "partial-key has no parameter 'choice'; it takes choices, "),
        (["--grouping", "partial-key(choices="], "cannot read 'partial-key(choices='; write it as in "),
        (["--grouping", "partial-key(choices='2')"], "choices must be a whole number, got '2'"),
        (["--stream", "zpf"], "no stream is named 'zpf'; did you mean zipf?"),
        (["--stream", "zipfian(z=2"], "cannot read 'zipfian(z=2'; write it as in 'zipf(z=1.4, keys=100k)'"),
        (["--stream", "xyzzy"], f"no stream is named 'xyzzy'; there are {', '.join(names())}"),
        (["--stream", "zipf(tuples=9)"], "--tuples and tuples= in --stream both say the length, got 'zipf(tuples=9)'"),
        (["--stream", "replay"], "--stream takes no replay; use --input FILE --key COLUMN"),
        (["--stream", "log-normal(sigma=0)"], "sigma must be above 0, got 0"),
        (["--stream", "zipf(half_skew=True)"], "zipf has no parameter 'half_skew'; it takes tuples, keys, z"),
        (["--stream", "zipf(keys=10,0)"], "keys must be at least 1, got 0"),
        (["--stream", "correlated-pairs(values=1)"], "locality must be 1 when values is 1, got 0.8"),
        (["--source-key", "user"], "--source-key names a column of --input, got 'user'; stream zipf has key only"),
        (
            ["--stream", "correlated-pairs", "--source-key", "user"],
            "--source-key names a column of --input, got 'user'; stream correlated-pairs has key and second only",
        ),
        (
            ["--input", "x.csv", "--timestamp", "at", "--rate", "5"],
            "--timestamp and --rate both say when tuples arrive",
        ),
        (["--change", "100:+1"], "the change at tuple 100 lies after the end of the stream (100 tuples)"),
        (["--stream", "zipf(flip=0.5)"], "zipf has no parameter 'flip'; it takes tuples, keys, z"),
        (["--stream", "zipf(z=1:2)"], "z takes a range as first:last:step, got '1:2'"),
        (["--stream", "zipf(z=2:1:0.1)"], "z takes a rising range first:last:step with a step above 0, got '2:1:0.1'"),
        (["--stream", "zipf(z=-1)"], "z must be at least 0, got -1"),
        (["--change", "5"], "cannot read the change '5'; write 5000000:+2 (two come) or 5000000:-3 (worker 3 goes)"),
        (["--change", "5:-99"], "worker 99 is not there at tuple 5; there are "),
        (["--change", "x:-9"], "--change must be a number such as 16, 1.4, 10k or 2M, got 'x'"),
        (["--workers", "32,4", "--change", "5:-20"], "worker 20 is not there at tuple 5; there are [0, 1, 2, 3]"),
        (["--input", "x.csv", "--stream", "zipf"], "--input replays a file and takes no --stream; leave one of them"),
        (["--input", "x.csv"], "--input needs --key COLUMN: which column holds the key?"),
        (["--key", "word"], "--key is about columns of --input; give --input FILE with it"),
        (["--timestamp", "at"], "--timestamp is about columns of --input; give --input FILE with it"),
        (["--edge", "local"], "edge must be one of adaptive, planned, got 'local'"),
        (["--edge", "planned", "--change", "5:+1"], "workers of the planned edge cannot change, got 5:+1; use the"),
        (["--edge", "planned", "--grouping", "key", "--grouping", "fish"], "fish chooses tuple by tuple and cannot be"),
        (["--edge", "planned", "--grouping", "offline-greedy"], "offline-greedy needs the counts of the whole stream"),
        (["--plot", "picture.gif"], "a picture's file must end in .png, .svg, .pdf, .html, got 'picture.gif'"),
    ],
)
def test_wrong_options_are_an_error_of_one_line(fails, options, message):
    assert fails(2, "simulate", *([] if "--tuples" in options else ["--tuples", "100"]), *options).startswith(message)


def test_a_value_of_a_sweep_that_does_not_fit_is_refused_before_the_run(fails):
    # A stream as long as this would not end.
    assert fails(2, "simulate", "--tuples", "1000G", "--stream", "zipf(z=1,-1)") == (
        "z must be at least 0, got -1; choose a value in that range"
    )


def test_a_change_has_to_fit_into_the_shortest_stream_of_a_sweep(fails):
    line = fails(2, "simulate", "--stream", "zipf(tuples=4k,1k,2k)", "--change", "1.5k:+1", "--grouping", "key")
    assert line == "the change at tuple 1500 lies after the end of the stream (1000 tuples)"


def test_the_second_key_of_pairs_decides_the_source(run):
    options = ("--stream", "correlated-pairs", "--source-key", "second", "--grouping", "key", "--json", "-")
    assert records(run("simulate", "--tuples", "2k", *options).out)[0]["tuples"] == 2000


def test_a_change_after_the_end_of_a_file(fails, run, words):
    options = ("simulate", "--input", words, "--key", "word", "--grouping", "key")
    line = fails(2, *options, "--change", "300:+1")
    assert line == "the change at tuple 300 lies after the end of the stream (300 tuples)"
    assert run(*options, "--change", "299:+1").code == 0


def test_the_help_groups_its_options_which_are_fewer_than_25(run):
    lines = run("simulate", "--help").out.splitlines()
    sections = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert sections == [
        "The stream:",
        "How tuples are routed:",
        "Workers, sources and windows:",
        "Time that passes:",
        "Options:",
    ]
    assert len([line for line in lines if line.startswith("  --") and "--help" not in line]) < 25


def test_a_narrow_terminal_hides_columns_and_says_so(on_terminal):
    given = ("--no-progress", "--grouping", "distribution-aware", "--grouping", "key")
    lines = on_terminal(80, *SMALL, *given)
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("distribution-aware ") for line in lines)
    assert "router" not in lines[0]
    assert lines[-1] == "2 columns hidden; widen the terminal or use --json"
    wide = on_terminal(120, *SMALL, *given)
    assert wide[0].split()[-2:] == ["router", "router"]
    assert not any("hidden" in line for line in wide)


def test_a_picture_of_a_file_is_headed_by_its_name_and_the_changes(run, words, tmp_path):
    path = tmp_path / "picture.html"
    options = ("--speeds", "2,1", "--change", "100:+1", "--grouping", "key", "--plot", path)
    assert run("simulate", "--input", words, "--key", "word", *options).code == 0
    heading = "words.parquet, key word · 16 workers, then 17 from tuple 100 · speeds 2, 1 · 5 sources"
    assert f"<h1>{heading}" in path.read_text()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["--key", "nope"], "'nope'"),
        (["--key", "word", "--timestamp", "nope"], "'nope'"),
        (["--key", "word", "--source-key", "nope"], "'nope'"),
        (["--key", "at", "--timestamp", "word"], "timestamp column 'word' must be a timestamp"),
    ],
)
def test_a_column_that_is_not_there_or_does_not_fit(fails, words, column, message):
    assert message in fails(1, "simulate", "--input", words, *column)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_files_that_cannot_be_read(fails, tmp_path):
    def line(path: Path) -> str:
        found = fails(1, "simulate", "--input", path, "--key", "word")
        assert path.name in found
        return found

    assert "no file or folder" in line(tmp_path / "missing.parquet")
    assert "format" in line(write(tmp_path / "words.txt", b"word\nto\n"))
    line(write(tmp_path / "empty.csv", b""))
    assert "no rows" in line(write(tmp_path / "header.csv", b"word,page\n"))
    line(write(tmp_path / "empty.parquet", b""))
    line(write(tmp_path / "corrupt.parquet", b"PAR1" + bytes(range(256)) * 4 + b"PAR1"))
    line(write(tmp_path / "corrupt.csv.gz", b"no gzip"))
    assert "its header is not UTF-8; convert it" in line(
        write(tmp_path / "latin.csv", b"\xff\xfe\x00bad,\xe9\n\xe9,1\n")
    )
    assert line(write(tmp_path / "semicolons.csv", b"word;x\na;1\n")).endswith("word;x; is the separator a comma?")


def test_a_parquet_file_that_is_corrupt_inside(fails, words):
    data = bytearray(words.read_bytes())
    data[4:60] = b"\xff" * 56
    words.write_bytes(data)
    assert fails(1, "simulate", "--input", words, "--key", "word")


def test_rows_without_a_timestamp_and_rows_out_of_order(fails, tmp_path):
    path = tmp_path / "times.csv"
    options = ("simulate", "--input", path, "--key", "word", "--timestamp", "at", "--grouping", "key")
    path.write_text("word,at\nto,1\nbe,\nor,3\n")
    assert fails(1, *options).startswith("every tuple needs a timestamp")
    path.write_text("word,at\nto,1\nbe,5\nor,3\n")
    assert fails(1, *options) == (
        "timestamps must not go back, got 2 s after 4 s; sort the rows or give a rate instead"
    )


def test_a_json_path_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "run.json", tmp_path):
        done = run(*SMALL, "--grouping", "key", "--json", path)
        assert done.code == 1
        assert done.err.startswith("Error: ")
        assert done.err.count("\n") == 1
        assert str(tmp_path) in done.err


def test_a_plot_with_an_unknown_ending_is_refused_before_the_run(fails, tmp_path):
    # A stream as long as this would not end.
    fails(2, "simulate", "--tuples", "1000G", "--plot", tmp_path / "picture.gif")


def test_a_stream_too_short_to_learn_from_is_pointed_out(run):
    short = run("simulate", "--tuples", "20k", "--grouping", "distribution-aware", "--grouping", "dynamic-key")
    assert "note: distribution-aware learns for 100,000 tuples and the stream has 20,000: it only learned" in short.err
    assert "note: dynamic-key adapts after 60 s and the stream lasts 1.6 s" in short.err
    uneven = run("simulate", "--tuples", "20k", "--grouping", "fish", "--speeds", "2,1")
    assert "note: fish ran without knowing the speeds: workers first report after 10 s" in uneven.err
    assert "note:" not in run("simulate", "--tuples", "20k", "--grouping", "fish").err
