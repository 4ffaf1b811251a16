"""Writes ``xxhash64_vectors.json`` beside this file: what Spark's own ``xxhash64`` (seed 42) gives for fixed rows.

Run it again only to add cases, with the extra ``spark`` and Java 17 or later::

    .venv/bin/python tests/data/make_xxhash64_vectors.py

Each vector is ``{"types": [...], "values": [...], "hash": "..."}``: one Spark SQL type and one value for each column
that is hashed, and the hash as a signed 64-bit decimal string. JSON cannot hold every value, so they are written as

================  ==================================================================
type              value
================  ==================================================================
string            JSON string (hashed as UTF-8)
binary            hexadecimal
integers          JSON number; bigint needs a reader that keeps all 64 bits
boolean           JSON boolean
float, double     what Python's ``float`` reads: ``"0.1"``, ``"-0.0"``, ``"nan"``, ``"inf"``
date              ``"2024-02-29"``
timestamp         ``"2024-02-29T12:34:56.789012+00:00"``
decimal(10,2)     ``"-1234.50"``
any, when null    ``null``
================  ==================================================================
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = Path(__file__).with_name("xxhash64_vectors.json")

# xxHash64 has a tail of 1, 4 and 8 bytes and a main loop of 32: all lengths to 40, and two and three rounds.
LENGTHS = [*range(41), 63, 64, 65, 100]

PARSE: dict[str, Callable[[str], Any]] = {
    "binary": bytes.fromhex,
    "float": float,
    "double": float,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "decimal(10,2)": Decimal,
}

ASCII = "".join(chr(33 + i * 7 % 94) for i in range(max(LENGTHS)))
BYTES = bytes((i * 37 + 131) % 256 for i in range(max(LENGTHS)))

SINGLE: dict[str, list[Any]] = {
    "string": [
        *(ASCII[:n] for n in LENGTHS),
        *(
            "hello",
            "the quick brown fox",
            " ",
            "\0",
            "a\0",
            "ß",
            "é",
            "e\u0301",
            "日本語",
            "🙂",
            "a🙂b",
            "Ελλάδα",
            "🏳️‍🌈" * 3,
        ),
    ],
    "binary": [*(BYTES[:n].hex() for n in LENGTHS), "00", "0000", "ff" * 33],
    "tinyint": [0, 1, -1, 42, 127, -128],
    "smallint": [0, 1, -1, 300, 32767, -32768],
    "int": [0, 1, -1, 42, 65536, 2147483647, -2147483648],
    "bigint": [0, 1, -1, 42, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "boolean": [True, False],
    "float": ["0.0", "-0.0", "1.0", "-1.0", "0.1", "nan", "inf", "-inf", "1e-45", "1.1754944e-38", "3.4028235e+38"],
    "double": [
        "0.0",
        "-0.0",
        "1.0",
        "-1.0",
        "0.1",
        "nan",
        "inf",
        "-inf",
        "5e-324",
        "2.2250738585072014e-308",
        "1e+300",
    ],
    "date": ["1970-01-01", "1969-12-31", "2024-02-29", "1582-10-15", "0001-01-01", "9999-12-31"],
    "timestamp": [
        "1970-01-01T00:00:00+00:00",
        "1969-12-31T23:59:59.999999+00:00",
        "2024-02-29T12:34:56.789012+00:00",
        "1900-01-01T00:00:00+00:00",
        "9999-12-31T23:59:59.999999+00:00",
    ],
    "decimal(10,2)": ["0.00", "1.00", "-0.01", "-1234.50", "99999999.99", "-99999999.99"],
}

SEVERAL: list[tuple[list[str], list[list[Any]]]] = [
    (["string", "int"], [["a", 1], ["a", None], [None, 1], [None, None], ["", 0]]),
    (["int", "string"], [[1, "a"]]),
    (["string", "string"], [["ab", "c"], ["a", "bc"], ["abc", ""], ["abc", None], [None, "abc"]]),
    (["bigint", "bigint", "bigint"], [[1, 2, 3], [3, 2, 1], [1, None, 3], [-1, 2**63 - 1, -(2**63)]]),
    (["bigint", "int"], [[1, 1]]),
    (["double", "float", "boolean"], [["-0.0", "-0.0", False], ["nan", "nan", True], ["0.5", None, None]]),
    (
        ["date", "timestamp", "decimal(10,2)"],
        [["2024-02-29", "2024-02-29T00:00:00+00:00", "12.34"], [None, None, "0"]],
    ),
    (["binary", "string", "smallint", "tinyint"], [["00ff", "🙂", -5, 7], ["", "", 0, 0], [None, "x", None, 1]]),
]


def rows() -> list[tuple[list[str], list[Any]]]:
    """Every (types, values) pair of the file, rows of the same types side by side."""
    single = [([kind], [value]) for kind, values in SINGLE.items() for value in [*values, None]]
    return single + [(types, values) for types, many in SEVERAL for values in many]


def parse(kind: str, value: Any) -> Any:
    """The Python object that Spark takes for a value as the file writes it."""
    return PARSE[kind](value) if kind in PARSE and value is not None else value


def hashes(spark: SparkSession, types: list[str], many: list[list[Any]]) -> list[int]:
    """Spark's hash of each row of `many`, in order."""
    from pyspark.sql import functions as F

    columns = [f"c{i}" for i in range(len(types))]
    schema = ", ".join(["row int", *(f"{name} {kind}" for name, kind in zip(columns, types, strict=True))])
    data = [
        (i, *(parse(kind, value) for kind, value in zip(types, values, strict=True))) for i, values in enumerate(many)
    ]
    frame = spark.createDataFrame(data, schema)
    return [r["hash"] for r in frame.select("row", F.xxhash64(*columns).alias("hash")).orderBy("row").collect()]


def main() -> None:
    """Start Spark, hash every row, write the file."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    vectors = []
    for types, group in groupby(rows(), key=lambda row: row[0]):
        many = [values for _, values in group]
        for values, value_hash in zip(many, hashes(spark, types, many), strict=True):
            vectors.append({"types": types, "values": values, "hash": str(value_hash)})
    version = spark.version
    spark.stop()

    OUTPUT.write_text("[\n" + ",\n".join(json.dumps(v) for v in vectors) + "\n]\n", encoding="utf-8")
    print(f"{OUTPUT.name}: {len(vectors)} vectors from Spark {version}")


if __name__ == "__main__":
    main()
