"""Which column a name means, and columns whose names Spark takes for syntax."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.aggregates import Max, Sum, TopK, WeightedMean
from anabranch.errors import InputError
from anabranch.groupings import WChoices
from anabranch.spark import balance
from anabranch.spark.columns.names import plain, read_by, shown

NAMES = ["qty", "order.qty", "a`b", "Twice", "TWICE", "`odd`"]


@given(st.text(st.sampled_from("ab.`%2E56")))
def test_plain_names_have_no_syntax_and_can_be_turned_back(name: str) -> None:
    assert not {".", "`"} & {*plain(name)}
    assert shown(plain(name)) == name


@given(st.text(st.sampled_from("ab.`%2E56")), st.text(st.sampled_from("ab.`%2E56")))
def test_different_names_have_different_plain_ones(one: str, other: str) -> None:
    assert (plain(one) == plain(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "fold", "found"),
    [
        ("qty", str, "qty"),
        ("QTY", str.lower, "qty"),
        ("`Qty`", str.lower, "qty"),
        ("order.qty", str, "order.qty"),
        ("`order.qty`", str, "order.qty"),
        ("ORDER.qty", str.lower, "order.qty"),
        ("`a``b`", str, "a`b"),
        ("a`b", str, "a`b"),
        ("Twice", str.lower, "Twice"),
        ("`odd`", str, "`odd`"),
    ],
)
def test_a_name_is_taken_as_it_is_then_unquoted_then_in_another_case(
    name: str, fold: Callable[[str], str], found: str
) -> None:
    columns = {column: plain(column) for column in NAMES}
    assert read_by("n", [name], columns, fold) == (plain(found),)


@pytest.mark.parametrize(
    ("name", "fold", "message"),
    [
        ("QTY", str, r"n reads column QTY, which is not there; there are qty, order\.qty"),
        ("order.id", str.lower, r"order\.id, which is not there.*take a field out of a struct first"),
        ("twice", str.lower, "which may be Twice or TWICE; write one of them"),
    ],
)
def test_a_name_of_no_column_or_of_two_is_refused(name: str, fold: Callable[[str], str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_by("n", [name], {column: column for column in NAMES}, fold)


@pytest.mark.spark
@pytest.mark.parametrize("edge", ["adaptive", "planned"])
def test_columns_with_dots_and_names_in_another_case(spark, edge) -> None:
    rows = [("a", 1, 2.0), ("b", 2, 4.0), ("a", 3, 6.0)]
    df = spark.createDataFrame(pa.table(dict(zip(["k.k", "v`s", "price.usd"], zip(*rows, strict=True), strict=True))))
    df = df.withColumn("dec", df["`price.usd`"].cast("decimal(10,2)"))
    found = balance(df, "k.k", WChoices(), 2, edge=edge).aggregate(
        n=Sum("V`S"), top=TopK("v`s", 1), high=Max("`Price.USD`"), mean=WeightedMean("DEC", "v`s")
    )
    assert found.columns == ["k.k", "n", "top", "high", "mean"]
    wanted = [("a", 4, [(1, 1)], 6.0, 5.0), ("b", 2, [(2, 1)], 4.0, 4.0)]
    assert sorted((key, n, [tuple(one) for one in top], *rest) for key, n, top, *rest in found.collect()) == wanted
