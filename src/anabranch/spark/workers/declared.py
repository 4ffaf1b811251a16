"""What a function of a user's returned, held to the schema that it was said to have."""

from __future__ import annotations

import pyarrow as pa

from anabranch.errors import InputError
from anabranch.spark.advice import type_of

_OF_PANDAS = "; return pyarrow.Table.from_pandas(…, preserve_index=False)"


def declared(made: object, schema: pa.Schema, what: str) -> pa.Table:
    """What a user's function returned, with the columns and types that it was said to have, which others rely on."""
    if not isinstance(made, pa.Table):
        remedy = _OF_PANDAS if type_of(made) == "pandas.DataFrame" else ""
        raise InputError(f"{what} must return a pyarrow.Table, got {type_of(made)}{remedy}")
    for name in schema.names:
        if made.column_names.count(name) != 1:
            columns = ", ".join(made.column_names)
            raise InputError(f"{what} must return the columns {', '.join(schema.names)}, each once, got {columns}")
    return pa.table([_cast(made[field.name], field, what) for field in schema], schema)


def _cast(column: pa.ChunkedArray, field: pa.Field, what: str) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise InputError(f"{what} must return {field.name} as {field.type}, got {column.type}: {error}") from None
