"""What every exported stream promises."""

from __future__ import annotations

import inspect
import json
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import streams
from anabranch.errors import ConfigError
from anabranch.streams import (
    Alternating,
    Bursts,
    CorrelatedPairs,
    Country,
    Drifting,
    EvolvingZipf,
    LogNormal,
    Replay,
    Singletons,
    Stream,
    Zipf,
)

N_TUPLES = 10_007

EXAMPLES = [
    Zipf(N_TUPLES, 100, 1.2),
    Zipf(N_TUPLES, 1_000_000_000, 0.0),
    EvolvingZipf(N_TUPLES, 100, 1.2),
    Drifting(N_TUPLES, 100, 1.2, every=700),
    Alternating(N_TUPLES, 100, 1.2, period=700, n_phases=3),
    Bursts(N_TUPLES, 100, 1.2, length=700),
    Singletons(N_TUPLES, 100, 1.2),
    LogNormal(N_TUPLES, 1.0, 1.0),
    LogNormal.ln1(N_TUPLES),
    LogNormal.ln2(N_TUPLES),
    Country(N_TUPLES, 30),
    Country(N_TUPLES, 80, half_skew=True),
    CorrelatedPairs(N_TUPLES, 50, 0.6),
    CorrelatedPairs(N_TUPLES, 50, 0.6, padding=20_000),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    table = pa.table({"word": [f"w{i * i % 91}" for i in range(N_TUPLES)], "at": np.arange(N_TUPLES) * 0.5})
    pq.write_table(table.slice(0, 4000), folder / "part-0.parquet", row_group_size=1500)
    pq.write_table(table.slice(4000), folder / "part-1.parquet", row_group_size=2500)
    return Replay(folder, key="word", timestamp="at")


@pytest.fixture(params=[*EXAMPLES, None], ids=lambda stream: "Replay" if stream is None else repr(stream))
def stream(request, recorded) -> Stream:
    return recorded if request.param is None else request.param


def test_every_exported_stream_is_in_this_contract():
    exported = {getattr(streams, name) for name in streams.__all__}
    concrete = {cls for cls in exported if inspect.isclass(cls) and not inspect.isabstract(cls)}
    assert concrete == {type(example) for example in EXAMPLES} | {Replay}


def test_names_are_unique_and_in_kebab_case():
    names = [cls.name for cls in {type(example) for example in EXAMPLES}]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() and " " not in name and "_" not in name for name in names)


def test_has_the_promised_number_of_tuples_and_a_key_column(stream, read):
    table = read(stream)
    assert stream.n_tuples == table.num_rows == N_TUPLES
    key = table.schema.field("key").type
    assert key in (pa.int64(), pa.string(), pa.dictionary(pa.int32(), pa.string()))
    assert table["key"].null_count == 0


def test_same_seed_same_tuples(stream, read):
    assert read(stream, seed=5) == read(stream, seed=5)


def test_another_seed_gives_other_tuples(stream, read):
    same = read(stream, seed=5) == read(stream, seed=6)
    assert same == isinstance(stream, Replay)


@pytest.mark.parametrize("size", [1000, 4096, 10_006, 10_007, 1_000_000])
def test_tuples_do_not_depend_on_the_batch_size(stream, size, read):
    batches = list(stream.batches(7, size))
    assert [batch.num_rows for batch in batches[:-1]] == [size] * (len(batches) - 1)
    assert pa.Table.from_batches(batches).combine_chunks() == read(stream, 7, 777)


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 1), (0, 4000), (3999, 4001), (5000, None), (8005, 8006), (9000, 10**9)]
)
def test_start_and_stop_give_a_slice_of_the_whole(stream, start, stop, read):
    assert read(stream, 3, 512, start=start, stop=stop) == read(stream, 3)[start:stop].combine_chunks()


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (50, 50), (60, 50), (N_TUPLES, None), (10**12, None)])
def test_an_empty_slice_has_no_batch(stream, start, stop):
    assert list(stream.batches(start=start, stop=stop)) == []


@pytest.mark.parametrize("bad", [{"size": 0}, {"start": -1}, {"stop": -1}])
def test_bad_bounds_raise_at_the_call(stream, bad):
    (name,) = bad
    with pytest.raises(ConfigError, match=f"^{name} must be at least"):
        stream.batches(**bad)


def test_negative_and_huge_seeds_are_seeds(stream, read):
    assert read(stream, seed=-1, stop=100).num_rows == read(stream, seed=2**64 - 2, stop=100).num_rows == 100


def test_survives_pickling(stream, read):
    copy = pickle.loads(pickle.dumps(stream))
    assert copy == stream
    assert read(copy, seed=2) == read(stream, seed=2)


def test_is_frozen(stream):
    with pytest.raises(FrozenInstanceError):
        setattr(stream, fields(stream)[0].name, 1)


def test_describes_itself_in_json(stream):
    described = json.loads(json.dumps(stream.describe()))
    assert described.pop("name") == stream.name
    assert type(stream)(**described) == stream


@pytest.mark.parametrize("stream", EXAMPLES, ids=repr)
@pytest.mark.parametrize("n_tuples", [0, -1, 1e6, True, "10"])
def test_a_stream_has_at_least_one_tuple(stream, n_tuples):
    with pytest.raises(ConfigError, match=r"^n_tuples must be "):
        replace(stream, n_tuples=n_tuples)


@pytest.mark.parametrize(
    "stream",
    [
        Zipf(5_000_000, 10**9, 1.0),
        Drifting(5_000_000, 10**9, 1.0, every=10_000),
        Alternating(5_000_000, 10**9, 1.0, period=10_000),
        Singletons(5_000_000, 10**9, 1.0),
    ],
    ids=repr,
)
def test_memory_does_not_grow_with_the_stream(stream):
    for _ in stream.batches(stop=1):
        pass
    arrow_before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        n_read = sum(batch.num_rows for batch in stream.batches())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert n_read == stream.n_tuples
    # A batch is half a megabyte; all tuples would be 40.
    assert peak < 4_000_000
    assert pa.total_allocated_bytes() - arrow_before < 4_000_000
