"""``anabranch predictors``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.predictors import ALL, SlidingSpaceSaving, evaluate
from anabranch.streams import Drifting, names

SMALL = ("predictors", "--tuples", "4k", "--stream", "zipf(keys=200)", "--window", "1k")
NAMES = [cls.name for cls in ALL]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.parquet"
    pq.write_table(pa.table({"word": ["to", "be", "or", "not", "to", "be"] * 50}), path)
    return path


def records(out: str) -> list[dict]:
    # NaN is no JSON, though Python reads it.
    return json.loads(out, parse_constant=pytest.fail)


def test_the_table_has_a_row_a_predictor(run):
    done = run(*SMALL)
    assert done.code == 0
    assert done.err == ""
    head, *rows = [line for line in done.out.splitlines() if line.strip()]
    for heading in ("predictor", "precision", "recall", "F1", "found after", "entries", "bytes", "M tuples/s"):
        assert heading in head
    assert [row.split()[0] for row in rows] == NAMES
    assert all(len(line) <= 120 for line in done.out.splitlines())


def test_json_has_a_record_a_predictor(run):
    done = run(*SMALL, "--json", "-")
    assert done.code == 0
    assert done.err == ""
    found = records(done.out)
    assert [record["predictor"] for record in found] == NAMES
    for record in found:
        assert record["windows"] == 4
        assert 0 <= record["precision"] <= 1
        assert 0 <= record["recall"] <= 1
        assert record["nbytes"] > 0


def test_json_to_a_file_comes_with_the_table(run, tmp_path):
    path = tmp_path / "new" / "scores.json"
    done = run(*SMALL, "--json", path)
    assert done.code == 0
    assert "precision" in done.out
    assert done.err == f"records: {path}\n"
    assert [record["predictor"] for record in records(path.read_text())] == NAMES


def test_options_reach_the_stream_and_the_predictors(run):
    options = ["--stream", "drifting(keys=200, z=1.3, every=1500)", "--workers", 4, "--seed", 7]
    found = {record["predictor"]: record for record in records(run(*SMALL, *options, "--json", "-").out)}
    predictor = SlidingSpaceSaving.for_stream(4, 1000, 7)
    stream = Drifting(n_tuples=4000, n_keys=200, z=1.3, every=1500)
    expected = evaluate(stream, predictor, n_workers=4, window=1000, seed=7).record()
    # How fast it was is another matter each time.
    for record in (expected, found["sliding-space-saving"]):
        del record["tuples_per_second"]
    assert found["sliding-space-saving"] == expected


def test_what_was_never_found_is_never_and_null(run):
    """Without a hot key there is nothing to find."""
    options = ("--stream", "zipf(z=0, keys=1k)", "--workers", "1")
    assert "never" in run(*SMALL, *options).out
    assert all(record["identify_tuples"] is None for record in records(run(*SMALL, *options, "--json", "-").out))


def test_a_file_is_replayed(run, words):
    options = ("predictors", "--input", words, "--key", "word", "--workers", 1, "--json", "-")
    whole = records(run(*options, "--window", 60).out)
    assert [record["windows"] for record in whole] == [5] * len(ALL)
    exact = next(record for record in whole if record["predictor"] == "sliding-space-saving")
    assert (exact["precision"], exact["recall"]) == (1.0, 1.0)
    part = records(run(*options, "--window", 60, "--tuples", 130).out)
    assert [record["windows"] for record in part] == [2] * len(ALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "--workers must be at least 1, got '0'"),
        (["--workers", "2.5"], "--workers must be a whole number, got '2.5'"),
        (["--workers", "two"], "--workers must be a number such as 16, 1.4, 10k or 2M, got 'two'"),
        (["--window", "0"], "--window must be at least 1, got '0'"),
        (["--tuples", "0"], "--tuples must be at least 1, got '0'"),
        (["--seed", "-1"], "--seed must be at least 0, got '-1'"),
        (["--stream", "zip"], "no stream is named 'zip'; did you mean zipf?"),
        (["--stream", "replay"], "--stream takes no replay; use --input FILE --key COLUMN"),
        (["--stream", "zipf(z=1,2)"], "predictors takes one value per parameter of --stream; sweep with a loop around"),
        (["--stream", "zipf(z=-1)"], "z must be at least 0, got -1"),
        (["--stream", "zipf(keys=0)"], "keys must be at least 1, got 0"),
        (["--stream", "zipf(every=5)"], "zipf has no parameter 'every'; it takes tuples, keys, z"),
        (["--key", "word"], "--key is about columns of --input; give --input FILE with it"),
    ],
)
def test_wrong_options_are_an_error_of_one_line(fails, options, message):
    assert fails(2, *SMALL, *options).startswith(message)


def test_a_file_takes_no_stream(fails):
    line = fails(2, "predictors", "--input", "x.csv", "--key", "word", "--stream", "zipf")
    assert line == "--input replays a file and takes no --stream; leave one of them out"


def test_files_that_cannot_be_read(fails, words, tmp_path):
    assert fails(2, "predictors", "--input", words) == "--input needs --key COLUMN: which column holds the key?"
    assert "missing.csv" in fails(1, "predictors", "--input", tmp_path / "missing.csv", "--key", "word")
    assert "'nope'" in fails(1, "predictors", "--input", words, "--key", "nope", "--window", 60)


def test_a_stream_shorter_than_a_window(fails, words, tmp_path):
    expected = "--window must be at most the 4000 tuples of the stream, got 5000; lower it"
    assert fails(2, *SMALL, "--window", "5k") == expected
    assert fails(2, "predictors", "--input", words, "--key", "word", "--window", "50k") == (
        "--window must be at most the 300 tuples of the stream, got 50000; lower it"
    )
    (tmp_path / "words.csv").write_text("word\nto\nbe\n")
    line = fails(1, "predictors", "--input", tmp_path / "words.csv", "--key", "word", "--window", 5)
    assert line == "the stream is shorter than one window of 5 tuples; choose a smaller window"


def test_a_short_stream_is_one_window_unless_told(run, fails, words, tmp_path):
    """How long it is, only reading tells where it is CSV."""
    file, short = tmp_path / "words.csv", tmp_path / "none.csv"
    file.write_text("word\n" + "to\nbe\n" * 60)
    asked = ("--key", "word", "--workers", 1, "--json", "-")
    for source, more, n in ((words, (), 300), (file, (), 120), (words, ("--tuples", 70), 70)):
        done = run("predictors", "--input", source, *asked, *more)
        assert (done.code, done.err) == (0, f"one window of {n} tuples: the stream has no more\n")
        assert [record["windows"] for record in records(done.out)] == [1] * len(ALL)
    short.write_text("word\n")
    assert fails(1, "predictors", "--input", short, *asked).endswith("has no rows; name data with at least one")


@pytest.mark.parametrize("name", names())
def test_every_stream_can_be_run(run, name):
    options = ("--stream", name, "--tuples", "2k", "--window", "1k", "--json", "-")
    assert [record["windows"] for record in records(run("predictors", *options).out)] == [2] * len(ALL)


def test_a_narrow_terminal_cuts_nothing_off(on_terminal):
    lines = on_terminal(80, *SMALL)
    assert all(len(line) <= 80 for line in lines)
    assert not any("…" in line for line in lines)
    assert [line.split()[0] for line in lines[2:]] == NAMES


def test_a_json_path_that_cannot_be_written(fails, tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "scores.json", tmp_path):
        # A stream as long as this would not end.
        assert str(path) in fails(1, "predictors", "--tuples", "1000G", "--json", path)
