"""What becomes of rows of files that cannot be used."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from anabranch.apps import (
    App,
    Balancing,
    Checkpoint,
    DeadLetters,
    Events,
    FileSource,
    FolderSink,
    GeoTrends,
    MemorySink,
    Pipeline,
    Vwap,
    WordCount,
)
from anabranch.apps.sources.file_log import FileLog
from anabranch.errors import QueryError
from anabranch.groupings import KeyGrouping

pytestmark = pytest.mark.spark

HEADER = "symbol,price,qty"


def malformed(
    spark: SparkSession, monkeypatch, folder: Path, app: App, columns: dict[str, str] | None = None
) -> list[tuple[str, str | None]]:
    """Reasons and values of all malformed rows below a folder, in order."""
    paths = sorted(str(path) for path in folder.rglob("*.*") if path.name[0] != ".")
    monkeypatch.setattr(FileLog, "of_batch", lambda *_: [f"file://{path}" for path in paths])
    found = FileSource(str(folder)).reread(spark, app, columns or {}, Checkpoint("none"), 0)
    assert not found.gone
    rows = found.rows.collect()
    assert {row["file"] for row in rows} <= set(paths)
    return [(row["reason"], row["value"]) for row in rows]


def test_rows_of_csv_that_cannot_be_used_have_a_reason(spark: SparkSession, monkeypatch, tmp_path: Path):
    lines = {
        "A,1.5,2": None,
        ",3,4": ("no value in symbol", '{"price":"3","qty":"4"}'),
        "A,abc,1": ("price is not a double: abc", '{"symbol":"A","price":"abc","qty":"1"}'),
        '"A, B",x,1': ("price is not a double: x", '{"symbol":"A, B","price":"x","qty":"1"}'),
        "A,2,3.5": ("quantity (column qty) is not a bigint: 3.5", '{"symbol":"A","price":"2","qty":"3.5"}'),
        "A,2,9223372036854775808": (
            "quantity (column qty) is not a bigint: 9223372036854775808",
            '{"symbol":"A","price":"2","qty":"9223372036854775808"}',
        ),
        # An empty cell is a null, as ever; other programs write whole numbers with a point.
        "A,,10.0": None,
        "A,1": ("no field quantity (column qty)", "A,1"),
        "A,1,2,3": ("more columns than symbol,price,qty", "A,1,2,3"),
        "A,Smith, John,2": ("more columns than symbol,price,qty", "A,Smith, John,2"),
    }
    (tmp_path / "a b[1]%20+é.csv").write_text("\n".join([HEADER, *lines]))
    assert malformed(spark, monkeypatch, tmp_path, Vwap()) == [bad for bad in lines.values() if bad]


def test_large_whole_numbers_are_exact_or_malformed(spark: SparkSession, monkeypatch, tmp_path: Path):
    """A double would round the first, and Spark makes the largest bigint of 2^63."""
    (tmp_path / "a.csv").write_text(f"{HEADER}\nA,1,9007199254740993.0\nA,1,1e3\nA,1,9223372036854775807.0\nA,1,1e30\n")
    good = FileSource(str(tmp_path)).read(spark, Vwap(), {}).select("quantity")
    query = good.writeStream.format("memory").queryName(tmp_path.name).trigger(availableNow=True).start()
    query.awaitTermination()
    assert [row.quantity for row in spark.table(f"`{tmp_path.name}`").collect()] == [9007199254740993, 1000, 2**63 - 1]
    (tmp_path / "a.csv").unlink()
    pq.write_table(pa.table({"symbol": ["A"], "price": [1.0], "qty": [2.0**63]}), tmp_path / "a.parquet")
    found = malformed(spark, monkeypatch, tmp_path, Vwap())
    assert [reason for reason, _ in found] == ["quantity (column qty) is not a bigint: 9.223372036854776E18"]


def test_a_short_line_that_has_what_is_needed_is_good(spark: SparkSession, monkeypatch, tmp_path: Path):
    (tmp_path / "a.csv").write_text("symbol,price,quantity,note\nA,1,2\nB,1\n")
    assert malformed(spark, monkeypatch, tmp_path, Vwap()) == [("no field quantity", "B,1")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [("B,1,2,x,y", "more columns than symbol,price,qty,note"), ("A,2", "no field quantity (column qty)")],
    ids=["long", "short"],
)
def test_a_malformed_line_is_so_to_the_stream_too_where_a_later_column_is_not_read(
    spark: SparkSession, monkeypatch, tmp_path: Path, line: str, reason: str
):
    (tmp_path / "a.csv").write_text(f"symbol,price,qty,note\nA,1,2,x\n{line}\n")
    good = FileSource(str(tmp_path)).read(spark, Vwap(), {}).select("symbol", "price")
    query = good.writeStream.format("memory").queryName(tmp_path.name).trigger(availableNow=True).start()
    query.awaitTermination()
    assert [tuple(row) for row in spark.table(f"`{tmp_path.name}`").collect()] == [("A", 1.0)]
    assert malformed(spark, monkeypatch, tmp_path, Vwap()) == [(reason, line)]


def test_rows_of_json_that_cannot_be_used_have_a_reason(spark: SparkSession, monkeypatch, tmp_path: Path):
    lines = {
        '{"symbol":"A","price":1,"quantity":2}': None,
        '{"symbol":"A","price":1.5,"quantity":"2"}': None,
        "": None,
        '{"price":1}': ("no value in symbol", '{"price":"1"}'),
        '{"symbol":null,"price":2}': ("no value in symbol", '{"price":"2"}'),
        "nope": ("not JSON", "nope"),
        "[1]": ("JSON, but not an object", "[1]"),
        '{"symbol":"A","price":"x"}': ("price is not a double: x", '{"price":"x","symbol":"A"}'),
        '{"symbol":"A","price":[1]}': ("price is not a double: [1]", '{"price":"[1]","symbol":"A"}'),
    }
    (tmp_path / "a.json").write_text("\n".join(lines))
    assert malformed(spark, monkeypatch, tmp_path, Vwap()) == [bad for bad in lines.values() if bad]


def test_rows_of_parquet_that_cannot_be_used_have_a_reason(spark: SparkSession, monkeypatch, tmp_path: Path):
    for day, quantities in enumerate(([1.0, 2.0], [2.5, None])):
        (tmp_path / f"day={day}").mkdir()
        rows = {"symbol": ["A", None], "price": ["1.5", "2"], "quantity": quantities}
        pq.write_table(pa.table(rows), tmp_path / f"day={day}" / "a.parquet")
    found = malformed(spark, monkeypatch, tmp_path, Vwap())
    assert sorted(reason for reason, _ in found) == [
        "no value in symbol",
        "no value in symbol",
        "quantity is not a bigint: 2.5",
    ]
    assert ("quantity is not a bigint: 2.5", '{"symbol":"A","price":"1.5","quantity":2.5,"day":1}') in found


def test_each_application_has_its_key(spark: SparkSession, monkeypatch, tmp_path: Path):
    (tmp_path / "a.csv").write_text("word,state,tag\nw,NY,a\n,CA,\nw,,b\n")
    key_of = {"word": WordCount(), "hashtag (column tag)": GeoTrends()}
    for name, app in key_of.items():
        assert [reason for reason, _ in malformed(spark, monkeypatch, tmp_path, app)] == [f"no value in {name}"]


def test_columns_of_expressions_keep_their_types(spark: SparkSession, monkeypatch, tmp_path: Path):
    (tmp_path / "a.csv").write_text("symbol,cents,qty\nA,150,1\n")
    source = FileSource(str(tmp_path))
    columns = {"price": "greatest(cents, 20) / 100"}
    source.read(spark, Vwap(), columns)
    # What comes later is not what the type was made from.
    (tmp_path / "b.csv").write_text("symbol,cents,qty\nA,1x,1\nA,9,1\n")
    monkeypatch.setattr(FileLog, "of_batch", lambda *_: [f"file://{tmp_path}/b.csv"])
    (bad,) = source.reread(spark, Vwap(), columns, Checkpoint("none"), 0).rows.collect()
    assert (bad["reason"], bad["value"], bad["key"]) == ("cents is not a int: 1x", "A,1x,1", "A")


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """A file a batch; the second has malformed rows."""
    (tmp_path / "in").mkdir()
    for number, rows in enumerate((["A,1,1", "007,2,2"], ["A,x,1", ",1,1", "A,3,1"], ["A,5,1"])):
        (tmp_path / "in" / f"{number}.csv").write_text("\n".join([HEADER, *rows]) + "\n")
        # Spark reads the oldest first.
        os.utime(tmp_path / "in" / f"{number}.csv", (number, number))
    return Pipeline(
        Vwap(),
        FileSource(str(tmp_path / "in"), batch=1),
        MemorySink(),
        Checkpoint(str(tmp_path / "state")),
        Balancing(KeyGrouping(), 2),
        once=True,
        dead_letters=FolderSink(str(tmp_path / "dead")),
    )


def kept(folder: Path) -> list[tuple[int, str]]:
    return sorted((row["batch"], row["reason"]) for row in pq.read_table(folder).to_pylist())


def test_a_run_goes_on_and_puts_malformed_rows_aside_also_after_a_crash(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path, monkeypatch
):
    batches, late = [], []
    events = Events(on_batch=batches.append, on_late=late.append)

    def crash(*_: object) -> None:
        raise RuntimeError("the power went")

    monkeypatch.setattr(DeadLetters, "_put_aside", crash)
    with pytest.raises(QueryError, match="the power went"):
        pipeline.run(spark, events)
    monkeypatch.undo()
    pipeline.run(spark, events)
    assert sum(metrics.malformed for metrics in batches) + sum(late) == 2
    assert kept(tmp_path / "dead") == [(1, "no value in symbol"), (1, "price is not a double: x")]
    totals = pipeline.sink.latest("symbol")  # type: ignore[attr-defined]
    assert {symbol: (row["vwap"], row["trades"]) for symbol, row in totals.items()} == {"A": (3.0, 3), "007": (2.0, 1)}


def test_a_strict_run_ends_at_the_first_malformed_row_and_goes_on_without(
    spark: SparkSession, pipeline: Pipeline, tmp_path: Path
):
    with pytest.raises(QueryError) as ended:
        replace(pipeline, strict=True).run(spark)
    assert str(ended.value) == (
        f"vwap has come to a malformed row, {tmp_path}/in/1.csv, row 1: price is not a double: x; mend it where it is, "
        "or leave --strict out to put such rows aside and go on"
    )
    assert pipeline.checkpoint.batches() == 1
    assert not list((tmp_path / "dead").glob("batch=*"))
    pipeline.run(spark)
    assert len(kept(tmp_path / "dead")) == 2


def test_files_that_are_gone_before_a_batch_is_read_again_are_said(spark: SparkSession, monkeypatch, tmp_path: Path):
    (tmp_path / "a.csv").write_text(f"{HEADER}\n,1,1\n")
    paths = [f"file://{tmp_path}/{name}.csv" for name in ("a", "b")]
    monkeypatch.setattr(FileLog, "of_batch", lambda *_: paths)
    notes: list[str] = []
    letters = DeadLetters(FileSource(str(tmp_path)), Vwap(), {}, Checkpoint(str(tmp_path / "c")), note=notes.append)
    assert letters._put_aside(spark, 0) == 1
    assert notes == [
        f"some malformed rows of batch 0 are lost: 1 of its files were gone, such as {tmp_path}/b.csv, before they "
        "were put aside; the answers have all good rows"
    ]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (None, "is not a Parquet file"),
        (pa.table({"word": [1, 2]}), "Parquet column \\[word\\]"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(spark: SparkSession, pipeline: Pipeline, tmp_path: Path, second, reason):
    folder = tmp_path / "parquet"
    folder.mkdir()
    pq.write_table(pa.table({"word": ["a"]}), folder / "a.parquet")
    source = FileSource(str(folder))
    reading = replace(pipeline, app=WordCount(), source=source)
    reading.run(spark)
    if second is None:
        (folder / "b c.parquet").write_text("no Parquet")
    else:
        pq.write_table(second, folder / "b c.parquet")
    message = rf"^word-count failed: cannot read {folder}/b c.parquet: .*{reason}.*; put a file that can be read there"
    with pytest.raises(QueryError, match=message):
        reading.run(spark)
