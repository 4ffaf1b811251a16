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


def canonical(table: pa.Table) -> pa.Table:
    """The table with types that no setting of the session changes: time zones are UTC, and offsets have 32 bits."""
    fields = [field.with_type(_canonical(field.type)).with_nullable(True) for field in table.schema]
    schema = pa.schema(fields)
    return table if table.schema.equals(schema) else table.cast(schema)


def _canonical(kind: pa.DataType) -> pa.DataType:
    is_ = pa.types
    if is_.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.string()
    if is_.is_large_binary(kind) or is_.is_binary_view(kind):
        return pa.binary()
    if is_.is_list(kind):
        return pa.list_(_canonical_field(kind.value_field))
    if is_.is_map(kind):
        return pa.map_(_canonical_field(kind.key_field), _canonical_field(kind.item_field))
    if is_.is_struct(kind):
        return pa.struct([_canonical_field(field) for field in kind])
    return kind


def _canonical_field(field: pa.Field) -> pa.Field:
    return field.with_type(_canonical(field.type))


def array_of(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def spark_of(kind: pa.DataType) -> DataType:
    """Spark's type for a type of Arrow; a timestamp without a time zone stays one."""
    return from_arrow_type(kind, prefer_timestamp_ntz=True)
