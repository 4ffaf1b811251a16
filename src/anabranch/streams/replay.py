"""Recorded streams."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import ConfigError, InputError
from anabranch.streams.replay_files import TO_UTF_8, count_rows, data_files, read_rows
from anabranch.streams.stream import Stream

# Seconds since 1970 reach it in the year 5138: numbers above are milliseconds or finer.
_MOST_SECONDS = 100_000_000_000
_FINER = (("milliseconds", 10**3), ("microseconds", 10**6), ("nanoseconds", 10**9))
_UNIT_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Replay(Stream):
    r"""The rows of a Parquet or CSV file, or of a folder of them, as a stream in row order.

    When to use it: for real keys. The seed is ignored.

    Guarantees
    ----------
    Files are read in the order of their names and never held in memory whole. A null key stays null.

    Parameters
    ----------
    path
        A ``.parquet``, ``.csv`` or ``.csv.gz`` file, or a folder of such files. CSV has a header line, and the types of
        its columns are told from the first megabyte.
    key
        The key column. It arrives as ``key``: integers as int64, everything else as text.
    timestamp
        The column that arrives as ``ts``, float64 seconds since the first row: a timestamp, a date, or a number of
        seconds up to 1e11, above which it would be a finer unit.
    columns
        Further columns, which arrive under their own names.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = folder + "/trades.csv"
    ...     with open(path, "w") as file:
    ...         _ = file.write("at,symbol,quantity\n2024-01-01 09:00:00,NABIL,10\n2024-01-01 09:00:30,NTC,20\n")
    ...     batch = next(Replay(path, key="symbol", timestamp="at", columns=("quantity",)).batches())
    >>> batch.to_pylist()
    [{'key': 'NABIL', 'ts': 0.0, 'quantity': 10}, {'key': 'NTC', 'ts': 30.0, 'quantity': 20}]
    """

    name: ClassVar[str] = "replay"

    path: str | os.PathLike[str]
    key: str
    timestamp: str | None = None
    columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise ConfigError(f"columns must be a sequence of names, got {self.columns!r}; write ({self.columns!r},)")
        object.__setattr__(self, "path", os.fspath(self.path))
        object.__setattr__(self, "columns", tuple(self.columns))
        names = self._output_names()
        for column in self.columns:
            if names.count(column) > 1:
                raise ConfigError(f"output columns must differ, got {column!r} twice; leave it out of columns")
        data_files(self.path)

    @property
    def n_tuples(self) -> int | None:
        """Rows by the metadata of Parquet files; None as soon as one file is CSV."""
        total = 0
        for file in data_files(self.path):
            rows = count_rows(file)
            if rows is None:
                return None
            total += rows
        return total

    def _read(self, seed: int, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        batches = _of_size(self._converted(size, start, stop), size)
        # The first batch is read here, so that most errors are raised by the call and not in the middle of a loop.
        return chain([first], batches) if (first := next(batches, None)) is not None else iter(())

    def _converted(self, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        files = data_files(self.path)
        inputs = [self.key, *([] if self.timestamp is None else [self.timestamp]), *self.columns]
        origin = None
        for batch in read_rows(files, list(dict.fromkeys(inputs)), size, start, stop):
            arrays = [_key(batch[self.key], self.key)]
            if self.timestamp is not None:
                if origin is None:
                    origin = _origin(next(read_rows(files, [self.timestamp], 1, 0, 1))[0], self.timestamp)
                arrays.append(_seconds_since(origin, batch[self.timestamp], self.timestamp))
            arrays.extend(batch[column] for column in self.columns)
            yield pa.RecordBatch.from_arrays(arrays, names=self._output_names())

    def _output_names(self) -> list[str]:
        return ["key", *([] if self.timestamp is None else ["ts"]), *self.columns]


def _key(values: pa.Array, column: str) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    wanted = pa.int64() if pa.types.is_integer(values.type) else pa.string()
    if values.type == wanted:
        return values
    try:
        return values.cast(wanted)
    except pa.ArrowException as error:
        if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            raise InputError(
                f"key column {column!r} holds bytes that are not UTF-8; convert the file, a CSV file with {TO_UTF_8}"
            ) from error
        raise InputError(
            f"key column {column!r} is {values.type}, which cannot become {wanted}; name a column of integers or text"
        ) from error


def _unit_s(type_: pa.DataType, column: str) -> float:
    if pa.types.is_timestamp(type_):
        return _UNIT_S[type_.unit]
    if pa.types.is_date32(type_):
        return 86_400.0
    if pa.types.is_date64(type_):
        return 1e-3
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return 1.0
    raise InputError(
        f"timestamp column {column!r} must be a timestamp, a date or a number of seconds, got {type_}; convert it"
    )


def _ticks(values: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type) or pa.types.is_uint64(values.type):
        return values.cast(pa.float64(), safe=False)
    # Dates of 32 bits cast to integers of 32 bits only.
    return (values.cast(pa.int32()) if pa.types.is_date32(values.type) else values).cast(pa.int64())


def _origin(values: pa.Array, column: str) -> float | int:
    _unit_s(values.type, column)
    origin = _ticks(values)[0].as_py()
    if origin is None or not math.isfinite(origin):
        raise InputError(f"timestamp column {column!r} is {origin} in the first row; remove rows without a timestamp")
    return origin  # type: ignore[no-any-return]


def _seconds_since(origin: float | int, values: pa.Array, column: str) -> pa.Array:
    unit_s = _unit_s(values.type, column)
    ticks = _ticks(values)
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        _check_seconds(ticks, column)
    # Subtracted as integers first: nanoseconds since 1970 do not fit into a double.
    elapsed = pc.subtract(ticks, origin).cast(pa.float64(), safe=False)
    return pc.multiply(elapsed, unit_s)


def _check_seconds(ticks: pa.Array, column: str) -> None:
    above = ticks.filter(pc.and_(pc.greater(ticks, _MOST_SECONDS), pc.is_finite(ticks)))
    if len(above):
        value = above[0].as_py()
        unit, factor = next((f for f in _FINER if value <= _MOST_SECONDS * f[1]), _FINER[-1])
        raise InputError(
            f"timestamp column {column!r} must be in seconds, got {value:.15g}, which looks like {unit}; "
            f"divide by {factor} or make it a timestamp"
        )


def _of_size(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `size`, except the last."""
    pending: list[pa.RecordBatch] = []
    n_pending = 0
    for batch in batches:
        taken = 0
        while n_pending + batch.num_rows - taken >= size:
            part = batch.slice(taken, size - n_pending)
            yield _joined([*pending, part])
            taken += part.num_rows
            pending, n_pending = [], 0
        if taken < batch.num_rows:
            pending.append(batch.slice(taken))
            n_pending += batch.num_rows - taken
    if pending:
        yield _joined(pending)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
