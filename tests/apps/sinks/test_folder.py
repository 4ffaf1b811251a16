"""A folder is the same whether pyarrow or Spark itself opens it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from anabranch.apps import Balancing, Checkpoint, FileSource, FolderSink, Pipeline, WordCount, latest
from anabranch.apps.sinks.folder import ArrowFiles, Folder
from anabranch.apps.sinks.hadoop import HadoopFiles, NeedsSessionError
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import PartialKeyGrouping

pytestmark = pytest.mark.spark


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A URI that only Spark opens: pyarrow takes it for HDFS, whose library is not there."""
    (tmp_path / "mounted").mkdir()
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    name = "fs.viewfs.mounttable.anabranch.link./data"
    configuration.set(name, f"file://{tmp_path / 'mounted'}")
    configuration.set("fs.viewfs.impl.disable.cache", "true")
    yield "viewfs://anabranch/data"
    configuration.unset(name)


@pytest.fixture(params=["path", "file:", "file://", "viewfs:"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param == "viewfs:":
        return Folder(f"{request.getfixturevalue('mounted')}/a/b")
    return Folder(f"{'' if request.param == 'path' else request.param}{tmp_path}/a/b")


def test_files_come_and_go(folder: Folder):
    assert isinstance(folder._files, HadoopFiles if folder.uri.startswith("viewfs") else ArrowFiles)
    assert folder.read("name") is None
    assert folder.names() == folder.names("below") == []
    for text in ("один\n", "two", "two"):
        folder.write("name", text)
        assert folder.read("name") == text
    assert folder.names() == ["name"]
    for text in ("first", "second"):
        Folder(folder.at("writing/part")).write("rows", text)
        folder.replace("part", by="writing/part")
        assert Folder(folder.at("part")).read("rows") == text
    assert folder.names() == ["name", "part", "writing"]
    assert folder.names("part") == ["rows"]
    assert folder.names("writing") == []


def test_what_cannot_be_done_is_an_error(folder: Folder):
    folder.write("file", "in the way")
    with pytest.raises(InputError, match=r"cannot make .*name a folder that can be written"):
        Folder(folder.at("file/below")).make()
    with pytest.raises(InputError, match=r"cannot read .*name a folder that can be read"):
        Folder(folder.uri.removesuffix("/b")).read("b")


def test_what_nobody_opens_is_an_error(spark: SparkSession):
    with pytest.raises(InputError, match=r"cannot read 'nowhere://bucket/a/name': .*nowhere"):
        Folder("nowhere://bucket/a").read("name")


def test_what_only_spark_opens_needs_a_session(monkeypatch):
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    with pytest.raises(NeedsSessionError, match="only Spark opens, and no Spark runs yet"):
        Folder("viewfs://anabranch/data").names()


def test_a_pipeline_keeps_checkpoint_and_sink_where_only_spark_reaches_them(
    spark: SparkSession, mounted: str, tmp_path: Path
):
    (tmp_path / "in").mkdir()
    source, sink = FileSource(str(tmp_path / "in")), FolderSink(f"{mounted}/counts")
    balancing = Balancing(PartialKeyGrouping(), 2)
    with pytest.raises(ConfigError, match=r"ledger cannot be in the checkpoint.*--ledger"):
        Pipeline(WordCount(), source, sink, Checkpoint(f"{mounted}/state"), balancing, once=True).claim()
    assert Folder(mounted).names() == []

    checkpoint = Checkpoint(f"{mounted}/state", str(tmp_path / "ledger"))
    pipeline = Pipeline(WordCount(), source, sink, checkpoint, balancing, once=True)
    (tmp_path / "in" / "0.txt").write_text("the cat and the dog")
    pipeline.run(spark)
    pipeline.claim()
    assert (checkpoint.batches(), sink.batches()) == (1, [0])
    counts = {row["word"]: row["count"] for row in latest(spark, sink.uri, "word").collect()}
    assert counts == {"the": 2, "cat": 1, "and": 1, "dog": 1}
    assert (tmp_path / "ledger" / "anabranch.json").exists()
