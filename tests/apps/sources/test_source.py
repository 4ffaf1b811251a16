from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from anabranch.apps.sources.file_source import FileSource, format_of
from anabranch.apps.sources.source import GeneratorSource, source
from anabranch.errors import ConfigError, InputError
from anabranch.spark.generator.settings import GeneratorSettings
from anabranch.streams import Drifting, Zipf


@pytest.mark.parametrize(
    ("names", "format"),
    [
        (["a.txt"], "text"),
        (["a.log", "deep/b.txt.gz"], "text"),
        (["a.CSV", "_SUCCESS", ".a.CSV.crc"], "csv"),
        (["a.tsv.zst"], "csv"),
        (["a.jsonl", "b.json"], "json"),
        (["part-0.snappy.parquet", "_metadata/x.json"], "parquet"),
        (["a.parquet", "readme.md"], "parquet"),
    ],
)
def test_the_format_is_that_of_the_files_that_spark_reads(tmp_path, names, format):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert format_of(str(tmp_path)) == format


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_single_file_is_refused(tmp_path, scheme):
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(ConfigError, match=r"--source must be a folder or a pattern, got the file '.*/a.csv'; name its"):
        source(f"{scheme}{tmp_path}/a.csv")
    assert source(f"{scheme}{tmp_path}/*.csv") == FileSource(f"{scheme}{tmp_path}/*.csv")


@pytest.mark.parametrize(("names", "there"), [(["a.txt", "b.csv"], "ending in .csv, .txt"), ([], "no files")])
def test_an_unclear_format_has_to_be_given(tmp_path, names, there):
    for name in names:
        (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=f"got .*{there}; add --format"):
        format_of(str(tmp_path))


def test_only_local_folders_are_searched(tmp_path):
    with pytest.raises(InputError, match="there is no"):
        format_of(str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="add --format"):
        format_of("s3://bucket/words")
    with pytest.raises(ConfigError, match="format must be one of"):
        FileSource("words", "orc")


def test_a_generator_is_written_like_a_stream():
    made = source("generator:drifting(z=1.5, keys=20k, every=1.5k, rate=2M, tuples=1e6, seed=7)", batch=500)
    assert isinstance(made, GeneratorSource)
    stream = Drifting(1_000_000, 20_000, 1.5, 1500)
    settings = GeneratorSettings(stream, seed=7, rate=2e6, batch=500, tuples=1_000_000)
    assert GeneratorSettings.of(made.options()) == settings


def test_what_the_brackets_say_of_the_batch_goes_before_the_option():
    assert GeneratorSettings.of(GeneratorSource("generator:zipf(batch=7)", 500).options()).batch == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("generator:zpf", "did you mean zipf"),
        ("generator:zipf?z=1.4", "no stream is named 'zipf.z=1.4'"),
        ("generator:zipf(zz=1)", "zipf has no parameter 'zz'; it takes tuples, keys, z, seed, rate, batch, partitions"),
        ("generator:zipf(z=high)", "z must be a number, got 'high'"),
        ("generator:zipf(z=1,2)", "z takes one value here, got 1,2"),
        ("generator:zipf(rate=5", r"cannot read 'zipf\(rate=5'; write it as in 'zipf\(z=1.4, keys=100k, rate=50k\)'"),
        ("generator:zipf(batch=0)", "batch must be at least 1"),
        ("generator:evolving-zipf", "got no tuples"),
        ("generator:replay", "read files with Spark"),
    ],
)
def test_a_generator_that_cannot_be_made_is_refused_at_once(text, message):
    with pytest.raises(ConfigError, match=message):
        source(text)


def test_a_generator_takes_no_format():
    with pytest.raises(ConfigError, match="leave it out"):
        source("generator:zipf", format="csv")


def test_a_path_is_a_path_even_with_a_stream_for_a_name():
    assert source(Zipf.name) == FileSource("zipf")
