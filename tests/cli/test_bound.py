"""``anabranch bound``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.simulate import Settings, bound
from anabranch.streams import Alternating, Bursts, Replay, Singletons, Zipf

SMALL = ("bound", "--tuples", "2k", "--stream", "zipf(keys=50)", "--window", "500")


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.parquet"
    pq.write_table(pa.table({"word": ["to", "be", "or", "not", "to", "be"] * 50}), path)
    return path


def records(out: str) -> list[dict]:
    return json.loads(out, parse_constant=pytest.fail)


def test_the_table_has_a_row_per_number_of_workers(run):
    done = run(*SMALL, "--workers", "4,7", "--stream", "zipf(keys=50, z=1.4)")
    assert done.code == 0
    assert done.err == ""
    four, seven = [line.split() for line in done.out.splitlines()[-2:]]
    for cells, n_workers in ((four, 4), (seven, 7)):
        found = bound(Zipf(2000, 50, 1.4), Settings(n_workers=n_workers, window=500))
        least, at = found.replications
        assert cells[:2] == ["zipf(n_keys=50,", "z=1.4)"]
        assert cells[2:6] == [str(n_workers), "5", str(found.share), str(found.keys)]
        figures = (found.makespan, least.replication, at.replication, at.replication_total)
        assert cells[6:] == [f"{figure:.5f}" for figure in figures]


def test_options_reach_the_bound(run):
    options = ("--workers", 3, "--sources", 2, "--seed", 4, "--makespan", "1.01,1.2")
    (record,) = records(
        run("bound", "--tuples", "30k", "--stream", "zipf(keys=50, z=1.1)", *options, "--json", "-").out
    )
    expected = bound(Zipf(30_000, 50, 1.1), Settings(n_workers=3, n_sources=2, seed=4), makespans=[1.01, 1.2])
    assert record == json.loads(json.dumps(expected.record()))
    assert record["window"] == 20_000


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("bursts(keys=50, share=0.4, length=1k)", Bursts(2000, 50, 1.2, 0.4, 1000)),
        ("bursts(keys=50)", Bursts(2000, 50, 1.2)),
        ("alternating(keys=50, period=300, phases=3)", Alternating(2000, 50, 1.2, 300, 3)),
        ("alternating(keys=50)", Alternating(2000, 50, 1.2)),
        ("singletons(keys=50, share=0.2)", Singletons(2000, 50, 1.2, 0.2)),
        ("singletons(keys=50)", Singletons(2000, 50, 1.2)),
    ],
)
def test_parameters_reach_the_stream(run, text, stream):
    (record,) = records(run(*SMALL, "--stream", text, "--json", "-").out)
    assert {"name": record["stream"], **record["stream_parameters"]} == stream.describe()


def test_a_sweep_has_a_record_per_combination(run):
    found = records(run(*SMALL, "--workers", "4,8", "--sources", "1,2", "--stream", "zipf(z=1,2)", "--json", "-").out)
    assert [(r["stream_parameters"]["z"], r["workers"], r["sources"]) for r in found] == [
        (z, workers, sources) for z in (1.0, 2.0) for workers in (4, 8) for sources in (1, 2)
    ]


def test_a_file_is_called_by_its_name(run, words, tmp_path):
    target = tmp_path / "bounds.json"
    options = ("bound", "--input", words, "--key", "word", "--workers", 2, "--window", 6, "--tuples", 12)
    done = run(*options, "--json", target)
    assert done.code == 0
    assert "words.parquet, key word" in done.out
    assert str(tmp_path) not in done.out
    assert done.err == f"records: {target}\n"
    (record,) = records(target.read_text())
    expected = bound(Replay(str(words), "word"), Settings(n_workers=2, window=6, limit=12))
    assert record == json.loads(json.dumps(expected.record()))
    assert (record["tuples"], record["keys"], record["makespan"]) == (12, 4, 1.0)


def test_no_figure_is_cut_off_on_a_narrow_terminal(on_terminal):
    options = (*SMALL, "--stream", "bursts(keys=50)")
    assert max(map(len, on_terminal(80, *options))) <= 80
    assert "…" not in "".join(on_terminal(40, *options))
    shown = "bursts(n_keys=50, z=1.2, share=0.3, length=3000)"
    assert any(line.startswith(shown) for line in on_terminal(140, *options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "--workers must be at least 1, got '0'"),
        (["--sources", "2000000"], "--sources must be at most 1000000, got '2000000'"),
        (["--window", "0"], "--window must be at least 1, got '0'"),
        (["--seed", "-1"], "--seed must be at least 0, got '-1'"),
        (["--makespan", "1.05,0.9"], "--makespan must be at least 1, got '1.05,0.9'; 1 is perfect balance"),
        (["--makespan", "low"], "--makespan must be a number such as 16, 1.4, 10k or 2M, got 'low'"),
        (["--stream", "burst"], "no stream is named 'burst'; did you mean bursts?"),
        (["--stream", "zipf(share=0.3)"], "zipf has no parameter 'share'; it takes tuples, keys, z"),
        (["--stream", "bursts(share=2)"], "share must be from 0 to 1, got 2"),
        (["--stream", "bursts(length=0)"], "length must be at least 1, got 0"),
        (["--stream", "alternating(phases=1)"], "phases must be at least 2, got 1"),
        (["--stream", "alternating(period=0)"], "period must be at least 1, got 0"),
        (["--input", "x.csv", "--stream", "zipf"], "--input replays a file and takes no --stream; leave one of them"),
        (["--input", "x.csv"], "--input needs --key COLUMN: which column holds the key?"),
        (["--key", "word"], "--key is about columns of --input; give --input FILE with it"),
    ],
)
def test_wrong_options_are_an_error_of_one_line(fails, options, message):
    # A stream as long as this would not end.
    assert fails(2, "bound", "--tuples", "1000G", *options).startswith(message)


def test_a_file_that_is_not_there(fails, tmp_path):
    assert "missing.parquet" in fails(1, "bound", "--input", tmp_path / "missing.parquet", "--key", "word")


def test_help_teaches_with_an_example(run):
    text = " ".join(run("bound", "--help").out.split())
    assert "anabranch bound --stream 'zipf(z=1.4)' --workers 16,32,64" in text
    assert "--makespan NUMBER" in text
