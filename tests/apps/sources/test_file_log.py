from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from anabranch.apps import Checkpoint
from anabranch.apps.sources.file_log import FileLog
from anabranch.errors import InputError


def log(folder: Path, name: str, *entries: tuple[str, int]) -> None:
    """Leave a file of Spark's log of files, with paths and the numbers of their entries."""
    (folder / "sources" / "0").mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"path": f"file:///in/{path}", "timestamp": 1, "batchId": at}) for path, at in entries)
    (folder / "sources" / "0" / name).write_text("\n".join(["v1", *lines]))


def read_to(folder: Path, ends: dict[int, int]) -> None:
    """Leave where batches end in the log."""
    (folder / "offsets").mkdir()
    for batch, end in ends.items():
        (folder / "offsets" / str(batch)).write_text(f'v1\n{{"batchTimestampMs":1}}\n{{"logOffset":{end}}}')


def test_a_batch_has_the_files_between_its_offsets(tmp_path):
    log(tmp_path, "0", ("a.csv", 0))
    log(tmp_path, "1", ("b%20c%5B1%5D%2520+.csv", 1), ("d.csv", 1))
    log(tmp_path, "2", ("e.csv", 2))
    read_to(tmp_path, {0: 0, 1: 2})
    found = FileLog(Checkpoint(str(tmp_path)))
    assert found.of_batch(0) == ["file:///in/a.csv"]
    assert found.of_batch(1) == ["file:///in/b c[1]%20+.csv", "file:///in/d.csv", "file:///in/e.csv"]


def test_entries_that_spark_has_put_together_are_found(tmp_path):
    log(tmp_path, "9.compact", *((f"{at}.csv", at) for at in range(10)))
    log(tmp_path, "19.compact", *((f"{at}.csv", at) for at in range(20)))
    log(tmp_path, "20", ("20.csv", 20))
    read_to(tmp_path, {7: 7, 8: 8, 9: 11, 10: 20})
    found = FileLog(Checkpoint(str(tmp_path)))
    assert found.of_batch(8) == ["file:///in/8.csv"]
    assert found.of_batch(9) == [f"file:///in/{at}.csv" for at in (9, 10, 11)]
    assert found.of_batch(10) == [f"file:///in/{at}.csv" for at in range(12, 21)]


@pytest.mark.parametrize("gone", ["offsets/0", "offsets/1", "sources/0/1"])
def test_what_spark_has_deleted_is_named(tmp_path, gone):
    log(tmp_path, "1", ("a.csv", 1))
    read_to(tmp_path, {0: 0, 1: 1})
    (tmp_path / gone).unlink()
    with pytest.raises(InputError, match=f"has no {gone} any more; start with a new checkpoint"):
        FileLog(Checkpoint(str(tmp_path))).of_batch(1)
