"""`hash_keys` equals Spark's ``xxhash64``, whatever shape the Arrow data comes in."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import InputError
from anabranch.hashing import hash_keys

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "xxhash64_vectors.json").read_text(encoding="utf-8"))

ARROW_TYPES = {
    "string": pa.string(),
    "binary": pa.binary(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal(10,2)": pa.decimal128(10, 2),
}
PARSE = {
    "binary": bytes.fromhex,
    "float": float,
    "double": float,
    "date": dt.date.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "decimal(10,2)": Decimal,
}


def column(kind: str, values: list[object]) -> pa.Array:
    parse = PARSE.get(kind, lambda value: value)
    return pa.array([None if value is None else parse(value) for value in values], ARROW_TYPES[kind])


def signed(hashes: np.ndarray) -> list[int]:
    assert hashes.dtype == np.uint64
    return hashes.view(np.int64).tolist()


@pytest.mark.parametrize("types", sorted({tuple(vector["types"]) for vector in VECTORS}), ids=",".join)
def test_vectors_of_spark(types):
    vectors = [vector for vector in VECTORS if tuple(vector["types"]) == types]
    columns = [column(kind, [vector["values"][i] for vector in vectors]) for i, kind in enumerate(types)]
    assert signed(hash_keys(*columns)) == [int(vector["hash"]) for vector in vectors]


def test_the_vectors_cover_every_type_alone():
    assert {vector["types"][0] for vector in VECTORS if len(vector["types"]) == 1} == set(ARROW_TYPES)


TYPED_VALUES = {
    "string": st.text(max_size=70),
    "binary": st.binary(max_size=70),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "boolean": st.booleans(),
    "float": st.floats(width=32),
    "double": st.floats(),
    "date": st.dates(dt.date(1, 1, 1)),
    "timestamp": st.datetimes(dt.datetime(1900, 1, 1), timezones=st.just(dt.UTC)),
    "decimal(10,2)": st.decimals(-(10**7), 10**7, places=2),
}


@st.composite
def arrays(draw):
    kind = draw(st.sampled_from(sorted(TYPED_VALUES)))
    values = draw(st.lists(st.none() | TYPED_VALUES[kind], min_size=1, max_size=20))
    return pa.array(values, ARROW_TYPES[kind])


@given(arrays(), st.data())
def test_chunks_slices_and_dictionaries_hash_alike(array, data):
    whole = hash_keys(array)
    start = data.draw(st.integers(0, len(array)))
    stop = data.draw(st.integers(start, len(array)))
    chunked = pa.chunked_array([array[:start], array[start:stop], array[stop:]])
    encoded = array.dictionary_encode()
    assert hash_keys(array[start:stop]).tolist() == whole[start:stop].tolist()
    assert hash_keys(chunked).tolist() == whole.tolist()
    assert hash_keys(encoded).tolist() == whole.tolist()
    assert hash_keys(encoded[start:stop]).tolist() == whole[start:stop].tolist()
    assert hash_keys(whole.view(np.int64), encoded).tolist() == hash_keys(whole.view(np.int64), array).tolist()


def test_chunks_with_dictionaries_of_their_own_hash_alike():
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", None, "a"]).dictionary_encode()]
    assert hash_keys(pa.chunked_array(chunks)).tolist() == hash_keys(["a", "b", "c", None, "a"]).tolist()


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
)
def test_every_layout_of_text_hashes_alike(kind):
    words = pa.array(["", "a", None, "a longer word than fits into a view", "b" * 40])
    assert hash_keys(words.cast(kind)).tolist() == hash_keys(words).tolist()
    assert hash_keys(words.cast(kind)[2:]).tolist() == hash_keys(words)[2:].tolist()


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(10, 2), pa.decimal128(18, 2), pa.decimal256(10, 2)])
def test_every_width_of_decimal_hashes_alike(kind):
    values = [Decimal("1.00"), None, Decimal("-3.50"), Decimal("9999999.99")]
    narrow = pa.array(values, pa.decimal128(10, 2))
    assert hash_keys(pa.array(values, kind)).tolist() == hash_keys(narrow).tolist()
    assert hash_keys(pa.array(values, kind)[2:]).tolist() == hash_keys(narrow)[2:].tolist()


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_every_unit_of_timestamp_hashes_alike(unit):
    seconds = pa.array([0, -1, 1_700_000_000, None], pa.timestamp("s", "UTC"))
    assert hash_keys(seconds.cast(pa.timestamp(unit, "UTC"))).tolist() == hash_keys(seconds).tolist()


def test_every_nan_is_the_same_key():
    doubles = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    singles = np.array([0x7FC00000, 0x7FC00001, 0xFFC00000], np.uint32)
    for bits, kind in ((doubles, np.float64), (singles, np.float32)):
        hashes = hash_keys(pa.array(bits.view(kind)))
        assert set(hashes.tolist()) == set(hash_keys(pa.array([float("nan")], pa.from_numpy_dtype(kind))).tolist())


def test_numpy_arrays_and_lists_hash_as_arrow_does():
    numbers = np.array([1, -2, 2**40])
    assert hash_keys(numbers).tolist() == hash_keys(pa.array(numbers)).tolist() == hash_keys([1, -2, 2**40]).tolist()
    assert hash_keys(np.array(["a", "b"])).tolist() == hash_keys(["a", "b"]).tolist()


@pytest.mark.parametrize("kind", [*ARROW_TYPES.values(), pa.null(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_no_rows_and_only_nulls(kind):
    assert len(hash_keys(pa.array([], kind))) == 0
    assert len(hash_keys(pa.chunked_array([], kind))) == 0
    assert hash_keys(pa.array([None, None], kind)).tolist() == [42, 42]


def test_the_seed_is_the_start_of_the_chain():
    first = hash_keys(["a"])
    assert hash_keys(["b"], seed=int(first[0])).tolist() == hash_keys(["a"], ["b"]).tolist()
    assert hash_keys([None], seed=-1).tolist() == [2**64 - 1]


@pytest.mark.parametrize(
    "value",
    [
        pa.array([[1]]),
        pa.array([1], pa.time32("s")),
        pa.array([Decimal(1)], pa.decimal128(19, 0)),
        pa.array([{"a": 1}]),
    ],
    ids=["list", "time", "long decimal", "struct"],
)
def test_an_unsupported_type_is_refused(value):
    with pytest.raises(InputError, match="cannot hash"):
        hash_keys(value)


@pytest.mark.parametrize("value", [[1, "a"], [object()], np.zeros((2, 2)), [2**70], 5])
def test_what_arrow_cannot_read_is_refused(value):
    with pytest.raises(InputError, match="one hashable type"):
        hash_keys(value)


def test_columns_of_unequal_length_and_no_column_are_refused():
    with pytest.raises(InputError, match="equally long, got 2 and 1 rows"):
        hash_keys(["a", "b"], [1])
    with pytest.raises(InputError, match="at least one column"):
        hash_keys()


@pytest.mark.spark
def test_random_rows_hash_as_in_spark(spark):
    from pyspark.sql import functions as F

    rng = np.random.default_rng(7)
    n = 500

    def with_nulls(values):
        return [None if rng.random() < 0.1 else value for value in values]

    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    data = {
        "s": with_nulls(["".join(map(chr, rng.integers(32, 0x2FFF, rng.integers(0, 70)))) for _ in range(n)]),
        "b": with_nulls([rng.bytes(rng.integers(0, 70)) for _ in range(n)]),
        "i8": with_nulls(rng.integers(-128, 128, n).tolist()),
        "i16": with_nulls(rng.integers(-(2**15), 2**15, n).tolist()),
        "i32": with_nulls(rng.integers(-(2**31), 2**31, n).tolist()),
        "i64": with_nulls(rng.integers(-(2**63), 2**63, n, dtype=np.int64).tolist()),
        "bool": with_nulls((rng.random(n) < 0.5).tolist()),
        "f32": with_nulls([float(np.float32(x)) for x in rng.normal(0, 1e10, n)]),
        "f64": with_nulls([*rng.normal(0, 1e100, n - 3).tolist(), -0.0, float("nan"), float("-inf")]),
        "day": with_nulls([dt.date(1970, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(-9000, 50_000, n)]),
        "at": with_nulls([epoch + dt.timedelta(microseconds=int(u)) for u in rng.integers(-(10**15), 10**16, n)]),
        "money": with_nulls([Decimal(int(c)).scaleb(-2) for c in rng.integers(-(10**9), 10**9, n)]),
        "wide": with_nulls([Decimal(int(c)).scaleb(-6) for c in rng.integers(-(10**17), 10**17, n)]),
    }
    schema = (
        "s string, b binary, i8 tinyint, i16 smallint, i32 int, i64 bigint, bool boolean, f32 float, f64 double, "
        "day date, at timestamp, money decimal(10,2), wide decimal(18,6)"
    )
    keys = [[name] for name in data] + [list(data), ["s", "i64"], ["i64", "s"], ["day", "at", "money"], ["f64", "b"]]
    frame = spark.createDataFrame(list(zip(*data.values(), strict=True)), schema)
    hashed = frame.select("*", *(F.xxhash64(*columns).alias("+".join(columns) + "#") for columns in keys))
    table = hashed.toArrow()
    for columns in keys:
        ours = hash_keys(*(table[name] for name in columns))
        assert signed(ours) == table["+".join(columns) + "#"].to_pylist(), columns
