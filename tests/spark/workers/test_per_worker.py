"""What a function of `per_worker` returns, held to its schema; without Spark."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from anabranch.errors import InputError
from anabranch.groupings import Fish
from anabranch.spark.settings import QuerySettings
from anabranch.spark.workers.per_worker import PerWorker

SCHEMA = StructType([StructField("key", StringType()), StructField("n", LongType())])


ROWS = [pa.record_batch({"key": ["a"]})]


def applied(func) -> pa.Table:
    """What a worker makes of its rows."""
    worker = PerWorker(func, SCHEMA, QuerySettings(Fish(), 2, "adaptive", keys=("key",)), SCHEMA)
    return pa.Table.from_batches(worker(iter(ROWS)))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            pa.table({"key": ["a"], "n": [1]}).to_pandas(),
            r"must return a pyarrow.Table, got pandas.DataFrame; return pyarrow\.Table\.from_pandas",
        ),
        (None, "must return a pyarrow.Table, got NoneType$"),
        (pa.table({"key": ["a"], "n": [1.5]}), "must return n as int64, got double: Float value 1.5.* was truncated"),
        (
            pa.table({"key": ["a"], "n": ["1"]}),
            "must return n as int64, got string; cast the column or change the schema",
        ),
        (
            pa.table({"key": [7], "n": [1]}),
            "must return key as string, got int64; cast the column or change the schema",
        ),
        (pa.table({"key": ["a"]}), "must return the columns key, n, each once, got key$"),
    ],
)
def test_a_function_that_returns_something_else_is_named_with_the_column(returned, message):
    def total(table: pa.Table) -> pa.Table:
        return returned

    with pytest.raises(InputError, match=f"^the function total {message}") as raised:
        applied(total)
    assert "\n" not in str(raised.value)


def test_a_function_without_a_name_is_shown_as_it_is():
    with pytest.raises(InputError, match=r"^the function functools\.partial\(.*must return a pyarrow\.Table"):
        applied(partial(lambda nothing, table: nothing, None))


def test_columns_come_in_the_order_and_types_of_the_schema():
    given = pa.table({"other": [0], "n": pa.array([2.0]), "key": pa.array(["a"], pa.large_string())})
    assert applied(lambda table: given).equals(pa.table({"key": ["a"], "n": [2]}))
