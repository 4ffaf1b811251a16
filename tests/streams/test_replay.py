from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from anabranch.errors import ConfigError, InputError
from anabranch.streams import Replay

N_ROWS = 5000
TABLE = pa.table(
    {
        "user": [f"u{i % 37}" for i in range(N_ROWS)],
        "item": pa.array(np.arange(N_ROWS) * 7 % 101),
        "at": pa.array(np.arange(N_ROWS) * 250 + 1_700_000_000_000, type=pa.timestamp("ms")),
        "price": np.arange(N_ROWS) / 8,
    }
)


def write(table: pa.Table, path: Path, **options) -> Path:
    if path.name.endswith(".parquet"):
        pq.write_table(table, path, **options)
    elif path.name.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            csv.write_csv(table, file)
    else:
        csv.write_csv(table, path)
    return path


@pytest.fixture(params=["rows.parquet", "rows.csv", "rows.csv.gz"])
def file(request, tmp_path) -> Path:
    return write(TABLE, tmp_path / request.param)


def test_gives_key_time_and_further_columns_in_row_order(file, read):
    table = read(Replay(file, key="user", timestamp="at", columns=("price", "item")), size=700)
    assert table.column_names == ["key", "ts", "price", "item"]
    assert table["key"].to_pylist() == TABLE["user"].to_pylist()
    np.testing.assert_allclose(table["ts"], np.arange(N_ROWS) * 0.25)
    assert table["price"].to_pylist() == TABLE["price"].to_pylist()
    assert table["item"].to_pylist() == TABLE["item"].to_pylist()


def test_the_number_of_tuples_is_known_from_parquet_only(file):
    assert Replay(file, key="user").n_tuples == (N_ROWS if file.suffix == ".parquet" else None)


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (0, 0), (4999, None), (1234, 3456), (6000, None)])
def test_slices_keep_their_times(file, start, stop, read):
    stream = Replay(file, key="item", timestamp="at")
    whole = read(stream)
    batches = list(stream.batches(size=100, start=start, stop=stop))
    assert pa.Table.from_batches(batches, schema=whole.schema).combine_chunks() == whole[start:stop].combine_chunks()


def test_batches_have_the_size_that_was_asked_for(file):
    sizes = [batch.num_rows for batch in Replay(file, key="user").batches(size=999)]
    assert sizes == [999, 999, 999, 999, 999, 5]


def test_a_folder_is_read_in_the_order_of_names(tmp_path, read):
    write(TABLE.slice(0, 10), tmp_path / "a.csv")
    write(TABLE.slice(10, 0), tmp_path / "b.parquet")
    (tmp_path / "c").mkdir()
    write(TABLE.slice(10, 20), tmp_path / "c" / "part.csv.gz")
    write(TABLE.slice(30, 3), tmp_path / "d.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    write(TABLE, tmp_path / "_old.csv")
    write(TABLE, tmp_path / ".hidden.parquet")
    (tmp_path / "notes.txt").write_text("not data")
    table = read(Replay(tmp_path, key="user", timestamp="at"))
    assert table["key"].to_pylist() == TABLE["user"].to_pylist()[:33]
    np.testing.assert_allclose(table["ts"], np.arange(33) * 0.25)
    assert Replay(tmp_path, key="user").n_tuples is None


def test_row_groups_before_the_start_are_not_read(tmp_path, read):
    file = write(TABLE.select(["item"]), tmp_path / "rows.parquet", row_group_size=1000, compression="none")
    whole = read(Replay(file, key="item"))
    content = bytearray(file.read_bytes())
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(0)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    content[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(content)
    assert read(Replay(file, key="item"), start=1500) == whole[1500:].combine_chunks()
    with pytest.raises(InputError, match=r"^cannot read .*rows\.parquet: .*; repair the file or leave it out$"):
        read(Replay(file, key="item"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([3, None, 1], pa.int16()), pa.array([3, None, 1], pa.int64())),
        (pa.array(["a", None, "b"]), pa.array(["a", None, "b"])),
        (pa.array(["a", None, "b"], pa.large_string()), pa.array(["a", None, "b"])),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.array(["a", None, "a"])),
        (pa.array([5, None, 5]).dictionary_encode(), pa.array([5, None, 5])),
        (pa.array([dt.date(2024, 1, 2), None, None]), pa.array(["2024-01-02", None, None])),
    ],
)
def test_keys_are_integers_or_text_and_nulls_stay(values, expected, tmp_path, read):
    file = write(pa.table({"k": values}), tmp_path / "k.parquet")
    assert read(Replay(file, key="k"))["key"].combine_chunks() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([10, 12, None], pa.timestamp("s")), [0.0, 2.0, None]),
        (pa.array([2**60, 2**60 + 500, None], pa.timestamp("ns", tz="UTC")), [0.0, 5e-7, None]),
        (pa.array([10, 12, 11], pa.timestamp("us")), [0.0, 2e-6, 1e-6]),
        (pa.array([dt.date(2024, 2, 28), dt.date(2024, 3, 1), None], pa.date32()), [0.0, 172_800.0, None]),
        (pa.array([dt.date(2024, 2, 28), dt.date(2024, 3, 1), None], pa.date64()), [0.0, 172_800.0, None]),
        (pa.array([5, 9, 4], pa.int32()), [0.0, 4.0, -1.0]),
        (pa.array([2**33, 2**33 + 4096, None], pa.uint64()), [0.0, 4096.0, None]),
        (pa.array([0, 10**11, None]), [0.0, 1e11, None]),
        (pa.array([0.5, 0.75, None], pa.float32()), [0.0, 0.25, None]),
    ],
)
def test_times_are_seconds_since_the_first_row(values, expected, tmp_path, read):
    file = write(pa.table({"k": [1, 2, 3], "t": values}), tmp_path / "t.parquet")
    table = read(Replay(file, key="k", timestamp="t"))
    assert table.schema.field("ts").type == pa.float64()
    assert table["ts"].to_pylist() == pytest.approx(expected)


def test_csv_fields_may_hold_line_breaks(tmp_path, read):
    file = tmp_path / "text.csv"
    file.write_text('k,text\n1,"two\nlines"\n2,one\n')
    assert read(Replay(file, key="k", columns=["text"]))["text"].to_pylist() == ["two\nlines", "one"]


def test_files_of_a_folder_are_read_with_the_types_of_the_first(tmp_path, read):
    write(pa.table({"k": [1], "x": [0.5]}), tmp_path / "a.csv")
    write(pa.table({"k": [2], "x": [2]}), tmp_path / "b.csv")
    assert read(Replay(tmp_path, key="k", columns=["x"])).to_pydict() == {"key": [1, 2], "x": [0.5, 2.0]}
    write(pa.table({"k": ["three"], "x": [1.5]}), tmp_path / "c.csv")
    with pytest.raises(InputError, match=r"column 'k' of .*c\.csv is string where the files before have int64"):
        read(Replay(tmp_path, key="k", columns=["x"]))


def test_a_large_csv_is_never_in_memory_whole(tmp_path):
    file = tmp_path / "large.csv"
    file.write_text("k,text\n" + "".join(f"{i},{'x' * 190}\n" for i in range(600_000)))
    pool = pa.default_memory_pool()
    before, peak = pool.bytes_allocated(), 0
    n_rows = 0
    for batch in Replay(file, key="k", columns=["text"]).batches(size=5000):
        n_rows += batch.num_rows
        peak = max(peak, pool.bytes_allocated() - before)
    assert n_rows == 600_000
    # Arrow reads some blocks of a megabyte ahead, about 40 MB at any length of the file.
    assert file.stat().st_size > 118_000_000
    assert peak < 80_000_000


class TestErrors:
    def test_missing_file(self, tmp_path):
        with pytest.raises(InputError, match=r"^no file or folder .*absent\.csv; check the path$"):
            Replay(tmp_path / "absent.csv", key="k")

    def test_folder_without_data(self, tmp_path):
        with pytest.raises(InputError, match=r"has no data file; put \.parquet, \.csv or \.csv\.gz files into it"):
            Replay(tmp_path, key="k")

    def test_unknown_extension(self, tmp_path):
        (tmp_path / "rows.json").write_text("{}")
        with pytest.raises(InputError, match=r"the format of .*rows\.json is unknown; name a \.parquet, "):
            Replay(tmp_path / "rows.json", key="k")

    @pytest.mark.parametrize(
        "parameters",
        [{"key": "usr"}, {"key": "user", "timestamp": "usr"}, {"key": "user", "columns": ["price", "usr"]}],
    )
    def test_missing_column(self, file, parameters):
        with pytest.raises(InputError, match=r"has no column 'usr'; its columns are user, item, at, price$"):
            Replay(file, **parameters).batches()

    def test_no_rows(self, tmp_path):
        for name in ("none.parquet", "none.csv"):
            file = write(TABLE.slice(0, 0), tmp_path / name)
            for start in (0, 5):
                with pytest.raises(InputError, match=rf"{name} has no rows; name data with at least one"):
                    Replay(file, key="user").batches(start=start)
        with pytest.raises(InputError, match=rf"{tmp_path.name} has no rows"):
            Replay(tmp_path, key="user").batches()

    @pytest.mark.parametrize("name", ["empty.parquet", "empty.csv", "empty.csv.gz"])
    def test_empty_file(self, name, tmp_path):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(InputError, match=r"^cannot read .*; repair the file or leave it out$"):
            Replay(tmp_path / name, key="k").batches()

    @pytest.mark.parametrize("name", ["bad.parquet", "bad.csv.gz"])
    def test_not_what_its_name_says(self, name, tmp_path):
        (tmp_path / name).write_bytes(b"k\n1\nthis is neither\n" * 10)
        with pytest.raises(InputError, match=r"^cannot read ") as raised:
            Replay(tmp_path / name, key="k").batches()
        assert "\n" not in str(raised.value)

    def test_truncated_file(self, tmp_path):
        for name in ("rows.parquet", "rows.csv.gz"):
            file = write(TABLE, tmp_path / name)
            file.write_bytes(file.read_bytes()[:-2000])
            with pytest.raises(InputError, match=r"^cannot read "):
                list(Replay(file, key="user").batches())

    def test_ragged_csv(self, tmp_path):
        (tmp_path / "ragged.csv").write_text("k,x\n1,2\n3\n")
        with pytest.raises(InputError, match=r"^cannot read .*ragged\.csv: .*Expected 2 columns, got 1"):
            Replay(tmp_path / "ragged.csv", key="k").batches()

    def test_unreadable_timestamp(self, tmp_path):
        file = write(TABLE, tmp_path / "rows.parquet")
        with pytest.raises(InputError, match=r"timestamp column 'user' must be a timestamp, .* got string; convert it"):
            Replay(file, key="item", timestamp="user").batches()

    @pytest.mark.parametrize("first", [None, float("nan")])
    def test_no_time_in_the_first_row(self, first, tmp_path):
        file = write(pa.table({"k": [1, 2], "t": pa.array([first, 1.0])}), tmp_path / "t.parquet")
        with pytest.raises(InputError, match=r"timestamp column 't' is (None|nan) in the first row"):
            Replay(file, key="k", timestamp="t").batches()

    @pytest.mark.parametrize(
        ("value", "unit", "factor"),
        [
            (1_700_000_000_000, "milliseconds", 1000),
            (1.7e12, "milliseconds", 1000),
            (1_700_000_000_000_000, "microseconds", 1_000_000),
            (1_700_000_000_000_000_000, "nanoseconds", 1_000_000_000),
        ],
    )
    def test_numbers_that_cannot_be_seconds(self, value, unit, factor, tmp_path):
        file = write(pa.table({"k": [1, 2], "t": [value, value + 5]}), tmp_path / "t.parquet")
        with pytest.raises(InputError) as raised:
            Replay(file, key="k", timestamp="t").batches()
        assert str(raised.value) == (
            f"timestamp column 't' must be in seconds, got {value:.15g}, which looks like {unit}; "
            f"divide by {factor} or make it a timestamp"
        )

    def test_key_that_is_neither_integer_nor_text(self, tmp_path):
        file = write(pa.table({"k": [[1], [2]]}), tmp_path / "k.parquet")
        with pytest.raises(InputError, match=r"key column 'k' is .*; name a column of integers or text"):
            Replay(file, key="k").batches()

    def test_header_that_is_not_utf_8(self, tmp_path):
        file = tmp_path / "latin.csv"
        file.write_bytes(b"\xff\xfe\x00bad,\xe9\n\xe9,1\n")
        with pytest.raises(InputError) as raised:
            Replay(file, key="word").batches()
        assert str(raised.value) == (
            f"cannot read {file}: its header is not UTF-8; convert it, as with iconv -f latin1 -t utf-8"
        )

    def test_key_that_is_not_utf_8(self, tmp_path):
        message = "^key column 'k' holds bytes that are not UTF-8; convert the file, a CSV file with iconv -f latin1"
        (tmp_path / "latin.csv").write_bytes(b"k,v\n\xe9,1\n")
        write(pa.table({"k": [b"\xff", b"a"]}), tmp_path / "k.parquet")
        for name in ("latin.csv", "k.parquet"):
            with pytest.raises(InputError, match=message):
                Replay(tmp_path / name, key="k").batches()

    def test_key_that_is_not_utf_8_far_into_the_file(self, tmp_path):
        file = tmp_path / "late.csv"
        file.write_bytes(b"k\n" + b"plain\n" * 500_000 + b"\xe9\n")
        with pytest.raises(InputError, match=r"^cannot read .*; convert it, as with iconv -f latin1 -t utf-8$"):
            list(Replay(file, key="k").batches())

    @pytest.mark.parametrize("separator", [";", "\t", "|"])
    def test_another_separator(self, separator, tmp_path):
        file = tmp_path / "rows.csv"
        file.write_text(f"word{separator}x\na{separator}1\n")
        with pytest.raises(InputError, match=r"has no column 'word'; .*; is the separator a comma\?$"):
            Replay(file, key="word").batches()

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"columns": ("key",)}, "output columns must differ, got 'key' twice"),
            ({"columns": ("ts",), "timestamp": "at"}, "output columns must differ, got 'ts' twice"),
            ({"columns": ("item", "item")}, "output columns must differ, got 'item' twice"),
            ({"columns": "item"}, "columns must be a sequence of names, got 'item'"),
        ],
    )
    def test_columns_that_clash(self, parameters, message, file):
        with pytest.raises(ConfigError, match=message):
            Replay(file, key="user", **parameters)
