"""Reads rows of Parquet and CSV files batch by batch; every failure becomes an InputError of one line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from anabranch.errors import InputError

_PARQUET = ".parquet"
_CSV = (".csv", ".csv.gz")
TO_UTF_8 = "iconv -f latin1 -t utf-8"


def data_files(path: str | os.PathLike[str]) -> list[Path]:
    """The file itself, or the data files of a folder in the order of their names.

    Within a folder, hidden files and those with a leading underscore are left out, as Spark does with its markers.
    """
    found = Path(path)
    if found.is_dir():
        files = sorted(file for file in found.rglob("*") if _is_data(file.relative_to(found)) and file.is_file())
        if not files:
            raise InputError(f"folder {path} has no data file; put .parquet, .csv or .csv.gz files into it")
        return files
    if not found.exists():
        raise InputError(f"no file or folder {path}; check the path")
    if not _has_known_ending(found):
        raise InputError(f"the format of {path} is unknown; name a .parquet, .csv or .csv.gz file")
    return [found]


def count_rows(file: Path) -> int | None:
    """Rows by a Parquet file's metadata; None for CSV, which would have to be read."""
    if not _is_parquet(file):
        return None
    import pyarrow.parquet as pq

    with _readable(file):
        return int(pq.read_metadata(file).num_rows)


def read_rows(
    files: Sequence[Path], columns: Sequence[str], size: int, start: int, stop: int | None
) -> Iterator[pa.RecordBatch]:
    """Rows ``start`` to ``stop`` of the files in sequence, all with the types of the first batch.

    Whole Parquet files and row groups before `start` are skipped without being read. Raises InputError when the files
    have no row at all.
    """
    position = 0
    schema = None
    for file in files:
        if stop is not None and position >= max(stop, 1):
            return
        known = count_rows(file)
        if known is not None and position + known <= start:
            position += known
            continue
        for first, batch in _read_file(file, columns, size, start - position):
            schema = schema or batch.schema
            end = batch.num_rows if stop is None else min(batch.num_rows, stop - position - first)
            begin = min(max(start - position - first, 0), batch.num_rows)
            if begin < end:
                yield _with_schema(batch.slice(begin, end - begin), schema, file)
            known = first + batch.num_rows
            if end < batch.num_rows:
                return
        position += known or 0
    if position == 0:
        raise InputError(f"{files[0] if len(files) == 1 else files[0].parent} has no rows; name data with at least one")


def _has_known_ending(file: Path) -> bool:
    return file.name.lower().endswith((_PARQUET, *_CSV))


def _is_data(file: Path) -> bool:
    return _has_known_ending(file) and not any(part.startswith((".", "_")) for part in file.parts)


def _is_parquet(file: Path) -> bool:
    return file.name.lower().endswith(_PARQUET)


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        remedy = f"convert it, as with {TO_UTF_8}" if "invalid UTF8" in reason else "repair the file or leave it out"
        raise InputError(f"cannot read {file}: {reason}; {remedy}") from error


def _read_file(file: Path, columns: Sequence[str], size: int, skip: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches with the number of their first row; rows before `skip` may be left out."""
    with _readable(file):
        yield from (_read_parquet if _is_parquet(file) else _read_csv)(file, columns, size, skip)


def _read_parquet(file: Path, columns: Sequence[str], size: int, skip: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as source:
        _require_columns(file, columns, source.schema_arrow.names)
        first = 0
        group = 0
        while group < source.num_row_groups and first + source.metadata.row_group(group).num_rows <= skip:
            first += source.metadata.row_group(group).num_rows
            group += 1
        for batch in source.iter_batches(size, row_groups=range(group, source.num_row_groups), columns=list(columns)):
            yield first, batch.select(columns)
            first += batch.num_rows


def _read_csv(file: Path, columns: Sequence[str], size: int, skip: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    from pyarrow import csv

    parse = csv.ParseOptions(newlines_in_values=True)
    try:
        source = csv.open_csv(
            file, parse_options=parse, convert_options=csv.ConvertOptions(include_columns=list(columns))
        )
    except KeyError:
        # The error does not say which columns there are.
        with csv.open_csv(file, parse_options=parse) as header:
            _require_columns(file, columns, _header_names(file, header.schema))
        raise
    first = 0
    with source:
        for batch in source:
            yield first, batch
            first += batch.num_rows


def _header_names(file: Path, schema: pa.Schema) -> list[str]:
    try:
        return list(schema.names)
    except UnicodeDecodeError:
        raise InputError(f"cannot read {file}: its header is not UTF-8; convert it, as with {TO_UTF_8}") from None


def _require_columns(file: Path, wanted: Sequence[str], present: Sequence[str]) -> None:
    for column in wanted:
        if column not in present:
            other_separator = len(present) == 1 and any(mark in present[0] for mark in ";\t|")
            hint = "; is the separator a comma?" if other_separator else ""
            raise InputError(f"{file} has no column {column!r}; its columns are {', '.join(present)}{hint}")


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema, file: Path) -> pa.RecordBatch:
    if batch.schema.types == schema.types:
        return batch
    for column, found, wanted in zip(schema.names, batch.schema.types, schema.types, strict=True):
        try:
            batch = batch.set_column(batch.schema.get_field_index(column), column, batch[column].cast(wanted))
        except pa.ArrowException as error:
            raise InputError(
                f"column {column!r} of {file} is {found} where the files before have {wanted}; give it one type in all"
            ) from error
    return batch
