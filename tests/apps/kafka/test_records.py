from __future__ import annotations

import json
import re
from base64 import b64decode
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch.apps import Hashtags, Vwap, WordCount
from anabranch.apps.balancing import ROW
from anabranch.apps.kafka import json_values
from anabranch.apps.kafka.ends import _shown
from anabranch.apps.kafka.records import REASON, Records
from anabranch.errors import ConfigError, InputError


def parsed(spark: SparkSession, records: Records, app, values, columns=None) -> list[tuple]:
    """Per value, the application's fields, or the reason."""
    rows = spark.createDataFrame([(None if v is None else bytearray(v),) for v in values], "value binary")
    made = records.parse(rows, app, columns or {})
    names = [field.name for field in app.fields if field.name in made.columns]
    return [row[REASON] or tuple(row[name] for name in names) for row in made.collect()]


@pytest.mark.spark
def test_what_is_no_text_is_shown_in_base64_without_line_breaks(spark: SparkSession):
    raw = bytes(range(256))
    rows = spark.createDataFrame([(bytearray(raw),), (bytearray(b"a text"),)], f"{ROW}value binary")
    shown, text = (row.value for row in rows.select(_shown("value")).collect())
    assert (b64decode(shown, validate=True), text) == (raw, "a text")


def is_json(value: bytes) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


@pytest.mark.spark
def test_a_json_record_is_good_or_has_a_reason(spark: SparkSession):
    expected = {
        b'{"symbol": "A", "price": 1.5, "quantity": 3}': ("A", 1.5, 3),
        b' {"ticker": "A", "value": "1e3", "size": "3", "more": [1]}\n': ("A", 1000.0, 3),
        b'{"symbol": 7, "price": -0.25, "qty": 0}': ("7", -0.25, 0),
        b'{"symbol": "A", "price": 1.5}': "no value in quantity",
        b'{"symbol": null, "price": 1.5, "quantity": 3}': "no value in symbol",
        b'{"symbol": "A", "price": "abc", "quantity": 3}': "price is not a double: abc",
        b'{"symbol": "A", "price": 1, "quantity": 3.5}': "quantity is not a bigint: 3.5",
        b'{"symbol": "A", "price": 1, "quantity": "%s"}' % (b"x" * 500): "quantity is not a bigint: " + "x" * 100,
        b'{"symbol": "A", "price": 1': "not JSON",
        b'{"symbol": "A", "price": 1, "quantity": 3}{"symbol": "B"}': "not JSON",
        b'{"symbol": "A", "price": 1, "quantity": 3}} {"z": {}': "not JSON",
        b'{"symbol": "A", "price": 1, "quantity": 3},"y":1': "not JSON",
        b'{"symbol": "A", "price": 1, "quantity": 3},"record":{"symbol": "B"}': "not JSON",
        b'{"symbol": "A", "price": 1, "quantity": 3},"__anabranch_end":true} more': "not JSON",
        b'{"symbol": "A", "price": 1, "quantity": 3}],"y":[1': "not JSON",
        b'{"symbol": "A", "price": 1, "quantity": 3},{}': "not JSON",
        b'{"symbol": {"a": [{}]}, "price": 1, "quantity": 3}': ('{"a":[{}]}', 1.0, 3),
        b'{"symbol": {"a": NaN}, "price": 1, "quantity": 3, "more": {}}': ('{"a":"NaN"}', 1.0, 3),
        b"plain": "not JSON",
        b"": "not JSON",
        b"[1, 2]": "JSON, but not an object",
        b"7": "JSON, but not an object",
        b"null": "JSON, but not an object",
        b'{"symbol": "\xff", "price": 1, "quantity": 3}': "not UTF-8",
        None: "no value",
    }
    assert dict(zip(expected, parsed(spark, Records("json"), Vwap(), expected), strict=True)) == expected


@pytest.mark.spark
def test_damaged_json_is_judged_as_a_part_of_an_object_that_must_be_whole(spark: SparkSession):
    """Out of simple records texts are cut, which is faster, and must come to the same."""
    random, values = Random(1), []
    whole = (
        '{"word": "x", "line": "y"}', '{"word":"a","n":{"b":1}}', '{"word":"x"}{"word":"y"}', '{"word":[1,2]}',
        '{"n": -1.50e3, "word": "word", "m": null}', ' {"word" : 0.10,\r\n "line":true }\t', '{"word":"a","word":"b"}',
        r'{"word":"say \"no\"","line":"\u00e9"}', '{"word":"é中😀", "": ""}', '{"key":"a\tb"}', '{"word":01}',
        '{"word":1234567890123456789012345678901234567890}', '{"word":-0.123456789012345678901234567890, "line":1e400}',
        '{"word":0.1234567890123456, "line":123456789012345678}', '{"key":1E-7, "text":-0.0}', "{'word':'x'}",
        '{"word":[1.50, "a", null, 0.12345678901234567890], "line":false}', '{"word":12345678.123456789, "line":"1E5"}',
        '{"line":"word","word":": ","text":"a.b, c: d"}', '{"m":["word","key"], "word": "", "key":"word:"}',
        '{"n": 12, "b": true, "c": null, "word": "x", "d": -0.5}', '{"a":"\\n\\u00e9","word":"b","e":"\\\\"}',
        '{"word":"y","w\\u006frd":"x"}', '{"word":null,"key":"x"}', '{"wor": "x", "words":"y", "text":"word"}',
        '{"value":"[1]","n":1.5}', '{"word":"a","word": "b"}', '{"text": "\x01"}', '{"Word":"a","key" :"b"}',
    )  # fmt: skip
    for _ in range(3000):
        value = list(random.choice(whole))
        for _ in range(random.randint(0, 2)):
            at = random.randrange(len(value))
            value[at : at + random.randint(0, 1)] = random.choice(("", "{", "}", '"', ",", ":", "1", "\\", "null", " "))
        values.append("".join(value).encode())
    rows = spark.createDataFrame([(bytearray(b'{"r":' + value + b',"end":true}'),) for value in values], "value binary")
    names = ", ".join(f"{name} string" for name in ("word", "key", "line", "value", "text"))
    read = rows.select(F.from_json(F.col("value").cast("string"), f"r struct<{names}>, end string").alias("o"))
    fields = (F.coalesce("o.r.word", "o.r.key"), F.coalesce("o.r.line", "o.r.value", "o.r.text"))
    expected = []
    for end, there, *found in read.select("o.end", F.col("o.r").isNotNull(), *fields).collect():
        unreadable = "not JSON" if end is None else None if there else "JSON, but not an object"
        expected.append(unreadable or ("no value in word or line" if found == [None, None] else tuple(found)))
    found = parsed(spark, Records("json"), WordCount(), values)
    differing = [row for row in zip(values, found, expected, strict=True) if row[1] != row[2]]
    # from_json does not look closely at what is inside of a list.
    assert not [row for row in differing if row[1] != "not JSON" or is_json(row[0])]
    assert {type(one) for one in expected} == {str, tuple}


@pytest.mark.spark
def test_simple_objects_need_no_decoder_of_their_own(spark: SparkSession):
    simple = ['{"word":"a"}', '{"word": "é :,{}[]"}', '{"n": -1.5, "line":"", "time": "1\\n\\u00e9", "x": null}']
    others = [
        '{"word":1}',
        '{"word":"a","line":"b"}',
        '{"word":"a","word":"a"}',
        r'{"word":"\n"}',
        '{"word":"a","n":[]}',
    ]
    others += [
        f'{{"{"n" * 1001}":1,"word":"a"}}',
        '{"word":"a"} ',
        '{"word":"\t"}',
        '{"n":1}',
        '{"word":"a"',
        '["word"]',
        '{"n":01,"word":"a"}',
    ]
    others += [
        r'{"n":"\x","word":"a"}',
        r'{"w\u006frd":"x","word":"a"}',
        '{"word":"a",}',
        '{"word":"a"}\n',
        '{"word":"a"}}',
    ]
    rows = spark.createDataFrame([(bytearray(value.encode()),) for value in simple + others], "value binary")
    read = json_values.read(rows, "value", ["word", "line"])
    doubtful = [row[0] for row in read.select(json_values._DOUBTFUL).collect()]
    assert doubtful == [None] * len(simple) + others


@pytest.mark.spark
@pytest.mark.parametrize("names", [["a.b", 'a"b', "a\\b"], ['a"b']])
def test_names_that_json_escapes_are_left_to_from_json(spark: SparkSession, names):
    values = ['{"a"b":"x"}', r'{"a\b":"x"}', '{"acb":"x"}', '{"":"x"}', '{"a.b":"x"}']
    rows = spark.createDataFrame([(bytearray(value.encode()),) for value in values], "value binary")
    read = json_values.read(rows, "value", names)
    doubtful = [row[0] for row in read.select(json_values._DOUBTFUL).collect()]
    assert doubtful == [*values[:4], None if "a.b" in names else values[4]]


@pytest.mark.spark
@pytest.mark.parametrize("app", [WordCount(), Vwap(), Hashtags()], ids=lambda app: app.name)
def test_java_compiles_what_reads_records(spark: SparkSession, app, capsys):
    """It leaves methods of over 8000 bytes to its interpreter."""
    rows = spark.createDataFrame([], "value binary")
    Records("json").parse(rows, app, {}).explain("codegen")
    sizes = [int(size) for size in re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)]
    assert sizes
    assert max(sizes) < 8000


@pytest.mark.spark
def test_a_csv_record_is_read_by_position(spark: SparkSession):
    expected = {
        b"A,1.5,3": ("A", 1.5, 3),
        b"A,1.5,3\r\n": ("A", 1.5, 3),
        b'"A ""x"", y",1.5,3': ('A "x", y', 1.5, 3),
        b"A,1.5": "no value in quantity",
        b",1.5,3": "no value in symbol",
        b"": "no value in symbol",
        b"A,1.5,3,4": "more columns than symbol,price,quantity",
        b"A,1.5,3\nB,2.5,4": "more columns than symbol,price,quantity",
        b"A,x,3": "price is not a double: x",
        b"\xff,1,2": "not UTF-8",
    }
    assert dict(zip(expected, parsed(spark, Records("csv"), Vwap(), expected), strict=True)) == expected


@pytest.mark.spark
def test_columns_can_be_named_and_computed(spark: SparkSession):
    other_order = Records("csv", ("n", "symbol", "cents"))
    columns = {"price": "try_cast(cents AS int) / 100", "quantity": "n"}
    values = [b"3,A,150", b"3,A,free", b"three,A,150"]
    expected = [("A", 1.5, 3), "no value in price", "quantity is not a bigint: three"]
    assert parsed(spark, other_order, Vwap(), values, columns) == expected
    renamed = {"price": "close", "quantity": "`traded`"}
    values = [b'{"key": "A", "close": 2, "traded": 4}']
    assert parsed(spark, Records("json", ("traded",)), Vwap(), values, renamed) == [("A", 2.0, 4)]


@pytest.mark.spark
def test_an_optional_field_may_be_missing_but_not_all_of_them(spark: SparkSession):
    posts = [b'{"tag": "a", "state": "NY"}', b'{"tag": "a", "state": "NY", "user": "u"}']
    assert parsed(spark, Records("json"), Hashtags(), posts) == [("a", "NY", None), ("a", "NY", "u")]
    words = [b'{"word": "To"}', b'{"text": "to be"}', b'{"lines": 1}']
    expected = [("To", None), (None, "to be"), "no value in word or line"]
    assert parsed(spark, Records("json"), WordCount(), words) == expected
    rows = spark.createDataFrame([(bytearray(word),) for word in words[:2]], "value binary")
    read = WordCount().read(Records("json").parse(rows, WordCount(), {}).drop(REASON))
    assert sorted(row.word for row in read.collect()) == ["To", "be", "to"]


@pytest.mark.spark
def test_text_is_one_column_whatever_it_says(spark: SparkSession):
    values = [b"to be", b"", b'{"a": 1}', b"\xff", None]
    expected = [("to be",), ("",), ('{"a": 1}',), "not UTF-8", "no value"]
    assert parsed(spark, Records("text"), WordCount(), values) == expected


@pytest.mark.spark
def test_a_column_that_is_not_there_is_an_error_before_anything_is_read(spark: SparkSession):
    rows = spark.createDataFrame([], "value binary")
    with pytest.raises(InputError, match=r"vwap cannot read its columns: .*closing.*; see --column"):
        Records("csv").parse(rows, Vwap(), {"price": "closing + 1"})
    with pytest.raises(InputError, match="vwap needs a field symbol, and the records have value; say which it is with"):
        Records("text").parse(rows, Vwap(), {})
    with pytest.raises(InputError, match="word-count needs a field word, and the records have a, b"):
        Records("csv", ("a", "b")).parse(rows, WordCount(), {})
    with pytest.raises(ConfigError, match="got a column for 'cost'"):
        Records("csv").parse(rows, Vwap(), {"cost": "price"})


@pytest.mark.parametrize(
    ("format", "columns", "message"),
    [
        ("avro", (), "format of records must be one of json, text, csv, got 'avro'"),
        ("text", ("a",), "text has one column, value, got columns a"),
        ("csv", ("a", "A"), "columns must have names that differ, got 'a,A'"),
        ("csv", ("",), "columns must have names that differ, got ''"),
    ],
)
def test_what_cannot_be_read_is_refused(format, columns, message):
    with pytest.raises(ConfigError, match=message):
        Records(format, columns)
