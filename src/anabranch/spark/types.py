"""Types of Arrow and of Spark, each from the other, alike in every release of Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType


def arrow_of(kind: DataType) -> pa.DataType:
    """Arrow's type for a type of Spark; timestamps are in UTC."""
    try:
        return to_arrow_type(kind, timezone="UTC")
    except TypeError:  # before 4.3, where UTC is the default and has no parameter of this name
        return to_arrow_type(kind)


def spark_of(kind: pa.DataType) -> DataType:
    """Spark's type for a type of Arrow; a timestamp without a time zone stays one."""
    return from_arrow_type(kind, prefer_timestamp_ntz=True)
