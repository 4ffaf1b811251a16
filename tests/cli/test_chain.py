"""``anabranch chain``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.chain import ChainSettings, Servers, simulate_chain
from anabranch.streams import CorrelatedPairs, Replay

SMALL = ("chain", "--tuples", "4k", "--period", "1k")
PAIRS_OF_30 = ("--stream", "correlated-pairs(values=30)")


@pytest.fixture
def tweets(tmp_path: Path) -> Path:
    path = tmp_path / "tweets.parquet"
    states, tags = ["CA", "NY", None, "TX"] * 100, ["sun", "snow", "vote", "oil"] * 100
    pq.write_table(pa.table({"state": states, "key": tags, "at": [float(i) for i in range(400)]}), path)
    return path


def records(out: str) -> list[dict]:
    return json.loads(out, parse_constant=pytest.fail)


def test_the_table_has_a_row_per_method_and_swept_value(run):
    done = run(*SMALL, "--servers", "2,3", "--method", "hash", "--method", "greedy", *PAIRS_OF_30)
    assert done.code == 0
    assert done.err == ""
    head, *rows = [line.split() for line in done.out.splitlines()]
    assert head == ["servers", "method", "locality", "predicted", "makespan", "throughput/s", "moved"]
    assert [row[:2] for row in rows] == [["2", "hash"], ["2", "greedy"], ["3", "hash"], ["3", "greedy"]]
    settings = ChainSettings(n_servers=3, method="greedy", period=1_000, limit=4_000)
    result = simulate_chain(CorrelatedPairs(4_000, 30, 0.8), settings)
    assert rows[-1][2:5] == [f"{result.locality:.3f}", f"{result.predicted:.3f}", f"{result.makespan:.3f}"]


def test_options_reach_the_simulator(run):
    options = [
        "--servers",
        3,
        "--stream",
        "correlated-pairs(locality=0.7, values=12)",
        "--method",
        "greedy",
        "--mode",
        "offline",
        "--history",
        2,
    ]
    options += [
        "--capacity",
        50,
        "--alpha",
        1.2,
        "--padding",
        "2k",
        "--gigabits",
        1,
        "--between",
        "shuffle",
        "--seed",
        5,
    ]
    options += ["--fade", 0.5]
    (record,) = records(run(*SMALL, *options, "--careful", "--split", "--json", "-").out)
    settings = ChainSettings(
        n_servers=3,
        method="greedy",
        mode="offline",
        period=1_000,
        history=2,
        fade=0.5,
        capacity=50,
        alpha=1.2,
        careful=True,
        split=True,
        padding=2_000,
        servers=Servers(bandwidth=0.125e9),
        between="shuffle",
        seed=5,
        limit=4_000,
    )
    expected = simulate_chain(CorrelatedPairs(4_000, 12, 0.7), settings)
    assert record == json.loads(json.dumps(expected.record()))


def test_a_sweep_has_a_record_per_combination(run):
    of_stream = ("--stream", "correlated-pairs(locality=0.6,1)")
    found = records(run(*SMALL, "--servers", "1,2", "--padding", "0,4k", *of_stream, "--json", "-").out)
    assert len(found) == 2 * 2 * 2 * 2
    assert {record["settings"]["padding"] for record in found} == {0, 4_000}
    assert {record["stream_parameters"]["locality"] for record in found} == {0.6, 1.0}


def test_a_file_with_times_and_a_column_called_key(run, tweets, tmp_path):
    target = tmp_path / "chain.json"
    options = ("--input", tweets, "--keys", "state,key", "--timestamp", "at", "--period-s", 100, "--servers", 2)
    done = run("chain", *options, "--method", "greedy", "--json", target)
    assert done.code == 0
    assert done.err == f"records: {target}\n"
    (record,) = records(target.read_text())
    settings = ChainSettings(("state", "key"), 2, method="greedy", period_s=100.0)
    expected = simulate_chain(Replay(str(tweets), "key", timestamp="at", columns=("state",)), settings)
    assert record == json.loads(json.dumps(expected.record()))
    assert record["locality"] == 1.0
    assert [period["tuples"] for period in record["periods"]] == [100] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--servers", "0"], "--servers must be at least 1, got '0'"),
        (["--method", "magic"], "method must be one of metis, greedy, hash, worst, got 'magic'"),
        (["--mode", "daily"], "mode must be one of online, offline, got 'daily'"),
        (["--stream", "correlated-pairs(locality=2)"], "locality must be from 0 to 1, got 2"),
        (["--gigabits", "0"], "bandwidth must be above 0, got 0.0"),
        (["--fade", "0"], "fade must be above 0 and at most 1, got 0.0"),
        (["--alpha", "0.5"], "alpha must be at least 1, got 0.5"),
        (["--keys", "a,b"], "--keys is about --input; give --input FILE with it"),
        (["--period-s", "9"], "--period-s is about --input; give --input FILE with it"),
        (["--input", "x.csv"], "--input needs --keys COLUMN,COLUMN"),
        (
            ["--input", "x.csv", "--keys", "a,b", "--period-s", "9"],
            "--timestamp COLUMN and --period-s SECONDS go together",
        ),
        (["--input", "x.csv", "--keys", "a,b", "--timestamp", "at"], "--timestamp COLUMN and --period-s SECONDS go"),
        (["--period", "1M"], "the stream has 4,000 tuples, which is one period, and the first goes by hash"),
        (["--input", "x.csv", "--keys", "a"], "--input needs --keys COLUMN,COLUMN"),
        (["--input", "x.csv", "--keys", "a,a"], "--keys must name different columns, got 'a,a'"),
        (["--stream", "zipf"], "operators in a row need a stream of two keys, got 'zipf'; take correlated-pairs"),
        (["--stream", "correlated-pairs(padding=3)"], "--padding says how large tuples are here, got 'correlated-"),
        (["--input", "x.csv", "--keys", "a,b", "--stream", "correlated-pairs"], "--input replays a file and takes no"),
    ],
)
def test_wrong_options_are_an_error_of_one_line(fails, options, message):
    assert fails(2, *SMALL, *options).startswith(message)


def test_a_missing_column_is_named(fails, tweets):
    assert "town" in fails(1, "chain", "--input", tweets, "--keys", "state,town")


def test_help_teaches_with_an_example(run):
    text = " ".join(run("chain", "--help").out.split())
    assert "anabranch chain --stream 'correlated-pairs(locality=0.6,0.8)' --servers 2,4,6 --padding 0,12k" in text
    assert "--history N" in text
    assert "makespan: largest load" in text
