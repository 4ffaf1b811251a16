from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from anabranch.errors import ConfigError
from anabranch.spark.generator import source as generator
from anabranch.spark.generator.settings import GeneratorSettings
from anabranch.spark.generator.source import (
    GeneratorStreamReader,
    ReadMaxRows,
    Slice,
    generate,
    read_slice,
    slices,
)
from anabranch.streams import Country, Drifting, Zipf

STREAM = Zipf(n_tuples=10_000, n_keys=50, z=1.2)


def settings(**changed) -> GeneratorSettings:
    return GeneratorSettings(**{"stream": STREAM, "tuples": STREAM.n_tuples, "seed": 3, "start": 0} | changed)


def rows(made: GeneratorSettings, *parts: Slice) -> pa.Table:
    return pa.Table.from_batches([batch for part in parts for batch in read_slice(made, part)])


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=8), st.integers(1, 7))
def test_tuples_do_not_depend_on_how_they_are_cut(bounds, partitions):
    made = settings(stream=Zipf(n_tuples=40_000, n_keys=50, z=1.2), tuples=40_000, partitions=partitions)
    cuts = [0, *sorted(bounds), 40_000]
    parts = [part for low, high in pairwise(cuts) for part in slices(made, low, high, 0)]
    assert rows(made, *parts).equals(rows(made, Slice(0, 40_000, 0)))


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 50))
def test_slices_are_even_and_none_is_empty(first, length, partitions):
    cut = slices(settings(partitions=partitions), first, first + length, 0)
    sizes = [part.stop - part.first for part in cut]
    assert sum(sizes) == length
    assert len(sizes) == min(partitions, length)
    assert not sizes or max(sizes) - min(sizes) <= 1 <= min(sizes)


def test_keys_are_those_of_the_stream_and_values_are_prices():
    table = rows(settings(), Slice(0, 10_000, 0))
    keys = [str(key) for batch in STREAM.batches(3) for key in batch["key"].to_pylist()]
    assert table["key"].to_pylist() == keys
    values = table["value"].to_numpy()
    assert 1.0 <= values.min() < 2.0
    assert 100.0 <= values.max() < 101.0
    assert len(set(values.tolist())) > 5000


@pytest.mark.parametrize(("rate", "step_us"), [(0.0, 1), (1000.0, 1000)])
def test_event_time_advances_at_the_rate(rate, step_us):
    times = rows(settings(rate=rate), Slice(5, 8, 10_000_000))["timestamp"].to_pylist()
    began = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=10)
    assert times == [began + timedelta(microseconds=i * step_us) for i in (5, 6, 7)]


def test_batches_are_bounded_until_the_stream_ends():
    reader = GeneratorStreamReader(settings(batch=4000))
    offset = reader.initialOffset()
    ends = []
    while (latest := reader.latestOffset(offset)) != offset:
        ends.append(latest["tuple"])
        offset = latest
    assert ends == [4000, 8000, 10_000]


def test_without_arguments_a_batch_starts_where_the_last_one_was_planned_to_end():
    """As Spark 4.1 asks; on a restart it plans an empty batch at the offset that it resumes from."""
    reader = GeneratorStreamReader(settings(batch=4000, tuples=None))
    assert reader.partitions({"tuple": 5000, "started": 7}, {"tuple": 5000, "started": 7}) == []
    latest = reader.latestOffset()
    assert latest == {"tuple": 9000, "started": 7}
    assert reader.latestOffset() == latest
    reader.partitions({"tuple": 5000, "started": 7}, latest)
    assert reader.latestOffset() == {"tuple": 13_000, "started": 7}


def test_without_arguments_a_stream_that_ends_is_one_batch():
    assert GeneratorStreamReader(settings(batch=4000)).latestOffset()["tuple"] == 10_000


def test_at_a_rate_no_tuple_comes_before_its_time(monkeypatch):
    now = 100.0
    monkeypatch.setattr(generator.time, "time", lambda: now)
    reader = GeneratorStreamReader(settings(rate=10.0, batch=4000, start=None))
    offset = reader.initialOffset()
    assert offset == {"tuple": 0, "started": 100_000_000}
    now = 102.55
    assert reader.latestOffset(offset)["tuple"] == 25
    reader.prepareForTriggerAvailableNow()
    now = 500.0
    assert reader.latestOffset(offset)["tuple"] == 25
    assert GeneratorStreamReader(reader.settings).latestOffset(offset)["tuple"] == 4000


def test_an_endless_stream_has_one_batch_now():
    reader = GeneratorStreamReader(settings(tuples=None, batch=4000))
    assert reader.latestOffset({"tuple": 8000, "started": 0})["tuple"] == 12_000
    reader.prepareForTriggerAvailableNow()
    latest = reader.latestOffset({"tuple": 8000, "started": 0})
    assert latest["tuple"] == 12_000
    assert reader.latestOffset(latest) == latest


def test_options_are_read_as_spark_hands_them_over():
    made = GeneratorSettings.of({"Stream": "country(skew_percent=50, half_skew=True)", "tuples": "1000"})
    assert made.stream == Country(1000, 50.0, half_skew=True)
    assert GeneratorSettings.of({"stream": "zipf(keys=5, z=1)", "seed": str(2**60 + 1)}).seed == 2**60 + 1
    moment = {"stream": "ln1", "tuples": "10", "start": "1970-01-01T00:01:00"}
    assert GeneratorSettings.of(moment).start == 60_000_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream": "replay"}, "must be a synthetic one"),
        ({"stream": "zipf(keys=5.5)"}, "keys must be a whole number"),
        ({"stream": "zipf", "n_keys": "5"}, "the generator has no option 'n_keys'; it takes stream, seed, rate, "),
        ({"stream": "zipf(z=nan)"}, "z must be a number"),
        ({"stream": "zipf", "rate": "-1"}, "rate must be at least 0"),
        ({"stream": "zipf", "tuples": "0"}, "at least 1"),
        ({"stream": "zipf", "start": "noon"}, "start must be a moment"),
        ({"stream": "country(half_skew=maybe)", "tuples": "9"}, "half_skew must be True or False, got 'maybe'"),
        ({"stream": "country(skew_percent=5, half_skew=True)"}, "got no tuples"),
        ({"stream": "evolving-zipf"}, "got no tuples"),
    ],
)
def test_options_that_make_no_stream_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        GeneratorSettings.of(options)


@pytest.mark.spark
def test_a_batch_dataframe_is_the_whole_stream(spark: SparkSession):
    made = generate(spark, STREAM, streaming=False, seed=3, partitions=3)
    assert made.rdd.getNumPartitions() == 3
    assert (
        made.toArrow()
        .cast(rows(settings(), Slice(0, 1, 0)).schema)
        .sort_by("timestamp")
        .equals(rows(settings(), Slice(0, 10_000, 0)).combine_chunks())
    )


@pytest.mark.spark
def test_a_query_that_resumes_reads_every_tuple_once(spark: SparkSession, tmp_path: Path):
    taken: dict[int, list[str]] = {}

    def run(n_tuples: int) -> None:
        stream = Drifting(n_tuples=n_tuples, n_keys=50, z=1.2, every=100)
        words = generate(spark, stream, seed=3, batch=400, partitions=3)
        keep = lambda batch, number: taken.update({number: [row.key for row in batch.collect()]})  # noqa: E731
        writer = words.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    for n_tuples in (300, 1000):
        run(n_tuples)
        # The last batch is not marked as done: it is what a crash leaves behind, and runs again.
        last = max(taken)
        for left in (f"{last}", f".{last}.crc"):
            (tmp_path / "commits" / left).unlink()
        replayed = taken.pop(last)
        run(n_tuples)
        assert taken[last] == replayed
    run(1500)
    if ReadMaxRows is not None:
        assert [len(taken[number]) for number in sorted(taken)] == [300, 400, 300, 400, 100]
    stream = Drifting(n_tuples=1500, n_keys=50, z=1.2, every=100)
    keys = [str(key) for batch in stream.batches(3) for key in batch["key"].to_pylist()]
    assert [key for number in sorted(taken) for key in taken[number]] == keys
