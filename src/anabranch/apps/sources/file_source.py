"""A folder of files as a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from anabranch.apps.app import App
from anabranch.apps.balancing import ROW
from anabranch.apps.run.cause import file_name
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.sinks.folder import Folder
from anabranch.apps.sources.file_log import FileLog
from anabranch.apps.sources.file_rows import CORRUPT, REASON, FileRows, as_texts, in_expressions
from anabranch.apps.sources.reread import Reread
from anabranch.apps.sources.source import MALFORMED, Source, without_malformed
from anabranch.errors import ConfigError, InputError
from anabranch.location import absolute, is_local

FORMATS = ("text", "csv", "json", "parquet")
_SUFFIXES = {".txt": "text", ".text": "text", ".log": "text", ".csv": "csv", ".tsv": "csv"}
_SUFFIXES |= {".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".lz4")


# Names of files are not patterns. Spark's own option, which its stream of files sets for what it has listed.
_AS_THEY_ARE = {"__globPaths__": "false"}


@dataclass(frozen=True)
class FileSource(Source):
    """A folder of files: those that are there, and each that is added.

    A file is read once, so it must be whole when it gets its name: write it elsewhere and move it in. Malformed rows do
    not reach the application: they are counted, and `reread` finds them again.

    Parameters
    ----------
    path
        A folder, or a pattern such as ``logs/*.csv``, on any file system that Spark reads.
    format
        One of FORMATS; found from the files' endings unless given.
    batch
        Most files in a micro-batch.
    """

    path: str
    format: str | None = None
    batch: int | None = None
    _known: dict[str, FileRows] = field(default_factory=dict, init=False, repr=False, compare=False)

    place: ClassVar[tuple[str, ...]] = ("file",)
    rows: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"format must be one of {', '.join(FORMATS)}, got {self.format!r}")
        # Spark's stream of files takes no single one.
        if is_local(self.path) and Path(absolute(self.path)).is_file():
            raise ConfigError(f"--source must be a folder or a pattern, got the file {self.path!r}; name its folder")

    def open(self, spark: SparkSession) -> DataFrame:
        return self._stream(spark, self._look(spark, {}))

    def read(self, spark: SparkSession, app: App, columns: Mapping[str, str], *, strict: bool = False) -> DataFrame:
        rows = self._look(spark, columns)
        parsed = rows.parse(self._stream(spark, rows), app, columns)
        return app.read(without_malformed(parsed, REASON, strict=strict))

    def reread(
        self, spark: SparkSession, app: App, columns: Mapping[str, str], checkpoint: Checkpoint, batch: int
    ) -> Reread:
        """The malformed rows of a batch."""
        paths = FileLog(checkpoint).of_batch(batch)
        there = _there(paths)
        bad = self._bad(spark, app, columns, there)
        shown = bad.select(F.col(REASON).alias("reason"), *(F.col(ROW + name).alias(name) for name in _LETTER))
        gone = [file_name(path) for path in paths if path not in there]
        return Reread(shown, f"{len(gone):,} of its files were gone, such as {gone[0]}," if gone else "")

    def where(self, spark: SparkSession, app: App, columns: Mapping[str, str], example: Mapping[str, Any]) -> str:
        """Where a malformed row is: its file, and the number of the row, which another look at the file tells."""
        bad = self._bad(spark, app, columns, [example["file"]], alone=True)
        found = bad.where(F.col(ROW + "value").eqNullSafe(example["value"])).select(ROW + "number").first()
        return example["file"] if found is None else f"{example['file']}, row {found[0] + 1:,}"

    def _bad(
        self, spark: SparkSession, app: App, columns: Mapping[str, str], paths: Sequence[str], *, alone: bool = False
    ) -> DataFrame:
        """Malformed rows of these files, by the same expressions as in the stream; `alone`: numbered, of one file."""
        rows = self._known.get(self.path) or self._look(spark, columns)
        # Names of folders below it are columns; those of a pattern are not.
        base = {} if any(mark in self.path for mark in "*?[{") else {"basePath": self.path}
        options = self._options(rows.format) | base | _AS_THEY_ARE
        read = spark.read.format(rows.format).options(**options).schema(rows.schema)
        files = read.load(list(paths)) if paths else spark.createDataFrame([], rows.schema)
        ours = [rows.text().alias(ROW + "value"), _file(bool(paths)).alias(ROW + "file")]
        marked = files.coalesce(1) if alone else files
        marked = marked.select("*", *ours, *([F.monotonically_increasing_id().alias(ROW + "number")] * alone))
        # Spark would push the filter below the parser, and parse every row twice: not below an observation.
        parsed = rows.parse(marked, app, columns).observe(MALFORMED, F.count(REASON).alias("n"))
        key = next(field.name for field in app.chosen(rows.names, columns) if field.key or field.optional)
        return parsed.where(F.col(REASON).isNotNull()).withColumn(ROW + "key", F.col(key))

    def _look(self, spark: SparkSession, columns: Mapping[str, str]) -> FileRows:
        """Find out what columns there are."""
        chosen = self.format or format_of(self.path)
        try:
            found = self._found(spark, chosen, columns)
        except AnalysisException as error:
            raise self._refused(chosen, error) from None
        if found.names == [CORRUPT]:
            raise InputError(f"no line of {self.path!r} is a JSON object; check --source and --format")
        texts = chosen in ("csv", "json")
        schema = as_texts(found, in_expressions(found.names, columns)) if texts else found
        rows = self._known[self.path] = FileRows(chosen, schema, self._separator)
        return rows

    def _found(self, spark: SparkSession, chosen: str, columns: Mapping[str, str]) -> StructType:
        """Columns of the files that are there. Names of CSV are in its header; types only matter to expressions."""
        reader = spark.read.format(chosen).options(**self._options(chosen))
        found = reader.load(self.path).schema
        if chosen == "csv" and in_expressions(found.names, columns):
            return reader.option("inferSchema", "true").load(self.path).schema
        return found

    def _stream(self, spark: SparkSession, rows: FileRows) -> DataFrame:
        reader = spark.readStream.format(rows.format).options(**self._options(rows.format)).schema(rows.schema)
        limited = reader if self.batch is None else reader.option("maxFilesPerTrigger", self.batch)
        try:
            return limited.load(self.path)
        except AnalysisException as error:
            raise self._refused(rows.format, error) from None

    def _refused(self, chosen: str, error: AnalysisException) -> InputError:
        line = str(error).partition("\n")[0]
        return InputError(f"cannot read {self.path!r} as {chosen}: {line}; check --source and --format")

    def _options(self, chosen: str) -> dict[str, str]:
        if chosen not in ("csv", "json"):
            return {}
        options = {"columnNameOfCorruptRecord": CORRUPT}
        if chosen == "json":
            return options
        # Where Spark parses only the columns that are read, it sees no line that has too many: a line would be good
        # to the query and malformed when it is read again.
        return options | {"header": "true", "sep": self._separator, "columnPruning": "false"}

    @property
    def _separator(self) -> str:
        is_tsv = "://" not in self.path and any(suffix == ".tsv" for suffix in _suffixes(self.path))
        return "\t" if is_tsv else ","


def format_of(path: str) -> str:
    """Format of the files at a local path, from their endings."""
    if "://" in path or any(mark in path for mark in "*?["):
        raise ConfigError(f"the format of {path!r} is only found in local folders; add --format")
    if not Path(path).exists():
        raise InputError(f"there is no {path!r}; name a folder of files, or generator:zipf for generated tuples")
    suffixes = _suffixes(path)
    found = {_SUFFIXES[suffix] for suffix in suffixes if suffix in _SUFFIXES}
    if len(found) == 1:
        return found.pop()
    there = f"files ending in {', '.join(sorted(suffixes))}" if suffixes else "no files"
    raise InputError(f"the format of {path!r} must be clear from its files, got {there}; add --format")


def _suffixes(path: str) -> set[str]:
    """Endings of the files that Spark would read, without those of compression."""
    place = Path(path)
    files = (p for p in place.rglob("*") if p.is_file())
    shown = (p for p in files if not any(part[0] in "._" for part in p.relative_to(place).parts))
    stripped = (Path(p.stem) if p.suffix in _COMPRESSED else p for p in shown)
    return {p.suffix.lower() for p in stripped}


_LETTER = ("value", "key", "file")


def _file(known: bool) -> F.Column:  # type: ignore[name-defined]
    """The file that a row is from, as its user would write it."""
    if not known:
        return F.lit(None).cast("string")
    # Spark escapes what is special in addresses; a plus sign is itself there.
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(path, "^file:/+", "/")


def _there(paths: Sequence[str]) -> list[str]:
    """Those of these files that are still there."""
    folders = {path.rpartition("/")[0] for path in paths}
    names = {folder: set(Folder(file_name(folder)).names()) for folder in folders}
    return [path for path in paths if path.rpartition("/")[2] in names[path.rpartition("/")[0]]]
