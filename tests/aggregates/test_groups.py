from __future__ import annotations

import datetime as dt
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Groups
from anabranch.aggregates import factorise as factorise_module
from anabranch.errors import ConfigError, InputError

WINDOW = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])
times = st.one_of(
    st.none(), st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 3)).map(lambda t: t.replace(tzinfo=dt.UTC))
)
KEYS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.sampled_from(["", "a", "é", "日本"])),
    (pa.int32(), st.integers(-2, 2)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 3))),
    (pa.decimal128(10, 2), st.sampled_from([Decimal("1.50"), Decimal("-1.50")])),
    (pa.binary(), st.binary(max_size=2)),
    (WINDOW, st.fixed_dictionaries({"start": times, "end": times})),
    (pa.list_(pa.int64()), st.lists(st.one_of(st.none(), st.integers(0, 1)), max_size=2)),
    (pa.null(), st.none()),
]


@given(data=st.data(), chosen=st.lists(st.sampled_from(KEYS), min_size=1, max_size=4), n=st.integers(0, 30))
def test_rows_are_grouped_by_equal_keys(data: st.DataObject, chosen: list[Any], n: int) -> None:
    columns = {}
    for i, (type_, values) in enumerate(chosen):
        rows = data.draw(st.lists(st.one_of(st.none(), values), min_size=n, max_size=n))
        half = pa.chunked_array([pa.array(rows[: n // 2], type_), pa.array(rows[n // 2 :], type_)])
        columns[f"k{i}"] = half
    table = pa.table({**columns, "other": np.arange(n)})
    groups, keys = Groups.of(table, list(columns))
    assert keys.schema == table.select(list(columns)).schema
    distinct = [repr(row) for row in keys.to_pylist()]
    assert len(set(distinct)) == groups.n == len(distinct)
    assert [distinct[code] for code in groups.codes] == [repr(row) for row in table.select(list(columns)).to_pylist()]


def test_codes_of_many_columns_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factorise_module, "_LARGEST", 10)
    table = pa.table({f"k{i}": [i, 0, i, 0, 2] for i in range(4)})
    groups, keys = Groups.of(table, table.column_names)
    assert groups.codes.tolist() == [0, 1, 0, 1, 2] and keys.num_rows == groups.n == 3


def test_a_null_struct_is_another_key_than_a_struct_of_nulls() -> None:
    table = pa.table({"k": pa.array([None, {"start": None, "end": None}], WINDOW)})
    assert Groups.of(table, ["k"])[0].n == 2


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(-(10**12), 10**12))), max_size=20),
    type_=st.sampled_from([pa.int64(), pa.decimal128(38, 3), pa.decimal128(15, 0)]),
)
def test_sums_counts_and_extremes_of_groups(rows: list[tuple[int, int | None]], type_: pa.DataType) -> None:
    groups = Groups(np.array([code for code, _ in rows], np.int64), 4)
    scale = type_.scale if pa.types.is_decimal(type_) else 0
    column = [None if v is None else Decimal(v).scaleb(-scale) if scale else v for _, v in rows]
    by_group: defaultdict[int, list[Any]] = defaultdict(list)
    for (code, _), value in zip(rows, column, strict=True):
        by_group[code] += [] if value is None else [value]
    for method, function in ((groups.sum, sum), (groups.min, min), (groups.max, max)):
        found = method(pa.array(column, type_)).to_pylist()
        assert found == [function(by_group[g]) if by_group[g] else None for g in range(4)]
    assert groups.count(pa.array(column, type_)).to_pylist() == [len(by_group[g]) for g in range(4)]
    assert sum(groups.count().to_pylist()) == len(rows)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.timestamp("us", "UTC"), [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        (pa.timestamp("us"), [dt.datetime(1969, 1, 1), dt.datetime(2020, 1, 1)]),
        (pa.date32(), [dt.date(1969, 1, 1), dt.date(2020, 1, 1)]),
        (pa.duration("us"), [dt.timedelta(-1), dt.timedelta(1)]),
        (pa.time64("us"), [dt.time(1), dt.time(23)]),
        (pa.binary(), [b"\x01", b"\xff"]),
        (pa.string(), ["z", "ä"]),
        (pa.float32(), [-1.5, 2.5]),
        (pa.int8(), [-128, 127]),
        (pa.bool_(), [False, True]),
    ],
)
def test_extremes_keep_the_type(type_: pa.DataType, values: list[Any]) -> None:
    column = pa.array([values[1], None, values[0]], type_)
    groups = Groups(np.zeros(3, np.int64), 1)
    for found, expected in ((groups.min(column), values[0]), (groups.max(column), values[1])):
        assert found.type == type_ and found.to_pylist() == [expected]


@pytest.mark.parametrize(
    ("values", "type_"),
    [([2**63 - 1, 1], pa.int64()), ([-(2**63), -1], pa.int64()), ([Decimal(9 * 10**37)] * 2, pa.decimal128(38, 0))],
)
def test_a_sum_that_overflows_is_an_input_error(values: list[Any], type_: pa.DataType) -> None:
    with pytest.raises(InputError, match=r"must fit in .*; cast"):
        Groups(np.zeros(2, np.int64), 1).sum(pa.array(values, type_))


def test_a_sum_may_overflow_on_the_way() -> None:
    values = pa.array([2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 2])
    assert Groups(np.zeros(5, np.int64), 1).sum(values).to_pylist() == [0]


def test_text_has_no_sum() -> None:
    with pytest.raises(ConfigError, match="got string; cast"):
        Groups(np.zeros(1, np.int64), 1).sum(pa.array(["1"]))
