from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from anabranch.apps import Balancing, GeoTrends, Hashtags, Vwap, WordCount, named, names
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import ShuffleGrouping

# Shuffle grouping splits every key: what is wrong with merging shows.
BALANCING = Balancing(ShuffleGrouping(), 3, edge="adaptive")


def test_applications_are_known_by_name():
    assert [named(name).name for name in names()] == names()
    assert all(named(name).summary().endswith(".") for name in names())
    with pytest.raises(ConfigError, match="did you mean vwap"):
        named("vwapp")


@pytest.mark.spark
def test_words_of_lines_are_counted_in_lower_case(spark: SparkSession):
    lines = spark.createDataFrame(
        [("To be, or not TO be: don't!",), (None,), ("",), ("über #spark to",)], "value string"
    )
    counts = WordCount().build(WordCount().read(lines), BALANCING).collect()
    assert {row.word: row["count"] for row in counts} == {
        "to": 3,
        "be": 2,
        "or": 1,
        "not": 1,
        "don't": 1,
        "über": 1,
        "#spark": 1,
    }


@pytest.mark.spark
def test_a_column_of_words_is_taken_as_it_is(spark: SparkSession):
    rows = spark.createDataFrame([("To be", "x"), ("To be", "y"), (None, "z")], "key string, text string")
    assert [row.word for row in WordCount().read(rows).collect()] == ["To be", "To be"]
    assert [row.word for row in WordCount().read(rows, {"word": "upper(text)"}).collect()] == ["X", "Y", "Z"]


@pytest.mark.spark
def test_hashtags_are_counted_with_their_states_and_authors(spark: SparkSession):
    rows = [("a", "NY", "u1"), ("a", "NY", "u2"), ("a", "CA", "u1"), ("b", "TX", "u3"), (None, "TX", "u3")]
    posts = spark.createDataFrame(rows, "key string, state string, author string")
    app = Hashtags(top=1)
    found = {row.hashtag: row for row in app.build(app.read(posts), BALANCING).collect()}
    assert set(found) == {"a", "b"}
    assert (found["a"].mentions, found["a"].states, found["a"].authors) == (3, 2, 2)
    assert [tuple(entry) for entry in found["a"].top_states] == [("NY", 2)]
    assert "authors" not in app.build(app.read(posts.drop("author")), BALANCING).columns


def test_at_least_one_state_is_listed():
    with pytest.raises(ConfigError, match="top must be at least 1, got 0"):
        Hashtags(top=0)


@pytest.mark.spark
def test_vwap_weighs_prices_by_quantity(spark: SparkSession):
    trades = spark.createDataFrame(
        [("N", 10.0, 1), ("N", 20.0, 3), ("N", 0.1, None), ("P", 5.0, 0)], "symbol string, price double, qty int"
    )
    app = Vwap()
    found = {row.symbol: row for row in app.build(app.read(trades), BALANCING).collect()}
    assert (found["N"].vwap, found["N"].trades, found["N"].volume) == (17.5, 3, 4)
    assert (found["P"].vwap, found["P"].trades, found["P"].volume) == (None, 1, 0)


@pytest.mark.spark
def test_columns_that_are_missing_unknown_or_wrong_are_named(spark: SparkSession):
    rows = spark.createDataFrame([("N", 1.0)], "symbol string, price double")
    with pytest.raises(InputError, match=r"needs a column quantity, and the source has symbol, price; .*--column"):
        Vwap().read(rows)
    with pytest.raises(ConfigError, match="vwap reads symbol, price, quantity, got a column for 'volume'"):
        Vwap().read(rows, {"quantity": "1", "volume": "price"})
    with pytest.raises(InputError, match="cannot read its columns: there is no column nope, there are "):
        Vwap().read(rows, {"quantity": "nope"})
    with pytest.raises(InputError, match="needs a column word or line, and the source has symbol, price"):
        WordCount().read(rows)


@pytest.mark.spark
def test_places_and_their_hashtags_are_counted_in_a_row(spark: SparkSession, rocksdb: None):
    rows = [("NY", "a"), ("NY", "a"), ("CA", "a"), ("NY", "b"), (None, "b"), ("TX", None)]
    posts = spark.createDataFrame(rows, "state string, tag string")
    app = GeoTrends(top=1)
    found = {row.trend: row for row in app.build(app.read(posts), Balancing(n_workers=2)).collect()}
    assert {trend: (row.posts, row.others) for trend, row in found.items()} == {
        "location NY": (3, 2),
        "location CA": (1, 1),
        "location unknown": (1, 1),
        "hashtag a": (3, 2),
        "hashtag b": (2, 2),
    }
    assert [tuple(entry) for entry in found["hashtag a"].leading] == [("NY", 2)]
    with pytest.raises(ConfigError, match="geo-trends routes by tables of its own; leave --grouping and --edge out"):
        app.build(app.read(posts), BALANCING)


@pytest.mark.parametrize(("app", "message"), [({"top": 0}, "top must be"), ({"every": 0}, "every must be")])
def test_trends_need_whole_numbers(app, message):
    with pytest.raises(ConfigError, match=f"{message} at least 1"):
        GeoTrends(**app)
