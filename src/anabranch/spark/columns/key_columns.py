"""Values of key columns as Spark compares them: which rows have the same key, and one hash for each key."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import U64
from anabranch.errors import InputError
from anabranch.hashing import hash_keys
from anabranch.spark.columns.types import array_of, canonical


def key_hashes(rows: pa.Table, keys: tuple[str, ...]) -> U64:
    """A hash of the key of each row, the same for all zeros, and for all NaNs."""
    return hashes_of(normal(rows.select(list(keys)), keys), keys)


def hashes_of(rows: pa.Table, keys: tuple[str, ...]) -> U64:
    """The same of keys that are `normal` already."""
    hashes = hashes_of_jvm(rows, keys)
    if hashes is not None:
        return hashes
    # Here any hash of the value will do.
    columns = _leaves(canonical(rows.select(list(keys))), keys)
    return hash_keys([repr(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)])


def hashes_of_jvm(rows: pa.Table, keys: tuple[str, ...]) -> U64 | None:
    """What Spark's `xxhash64` gives; None where a key is of a type that only the JVM hashes, such as an array."""
    try:
        return hash_keys(*_leaves(canonical(rows.select(list(keys))), keys))
    except InputError:
        return None


def normal(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """The table with one zero and one NaN in its key columns, however deep: to Spark they are one key."""
    for key in keys:
        if _has_floats(table.schema.field(key).type):
            at = table.schema.get_field_index(key)
            table = table.set_column(at, table.schema.field(at), _normal(array_of(table[key])))
    return table


def _normal(array: pa.Array) -> pa.Array:
    kind = array.type
    if not _has_floats(kind):
        return array
    if pa.types.is_floating(kind):
        positive = pc.add(array, pa.scalar(0.0, kind))
        return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), kind), positive)
    if pa.types.is_struct(kind):
        fields = [_normal(array.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    # A list: its offsets stay those of all its values, whatever part of them it shows.
    own = array.buffers()[: kind.num_buffers]
    return pa.Array.from_buffers(kind, len(array), own, offset=array.offset, children=[_normal(array.values)])


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return True
    return pa.types.is_nested(kind) and any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))


def _leaves(table: pa.Table, names: tuple[str, ...]) -> list[pa.Array]:
    """The columns with structs taken apart, as Spark hashes them: field by field."""
    out: list[pa.Array] = []
    for name in names:
        pending = [array_of(table[name])]
        while pending:
            array = pending.pop(0)
            if pa.types.is_struct(array.type):
                pending = [*array.flatten(), *pending]
            else:
                out.append(array)
    return out
