"""Where an application's rows come from: a folder that grows, the built-in generator, or a topic of Kafka."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.apps.app import App
from anabranch.apps.connection import Connection
from anabranch.errors import ConfigError, InputError
from anabranch.spark.generator import FORMAT, Generator
from anabranch.spark.generator_settings import GeneratorSettings
from anabranch.streams.named import parameters_of

FORMATS = ("text", "csv", "json", "parquet")
_SUFFIXES = {".txt": "text", ".text": "text", ".log": "text", ".csv": "csv", ".tsv": "csv"}
_SUFFIXES |= {".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_COMPRESSED = (".gz", ".bz2", ".zst", ".snappy", ".lz4")
_GENERATOR = "generator:"
KAFKA = "kafka://"
_SCHEME = KAFKA.partition("/")[0]
# The command line's names of the streams' parameters, and what a stream that is only named gets.
_SHORT = {"keys": "n_keys", "values": "n_values", "phases": "n_phases"}
_DEFAULTS = {"n_keys": "100000", "z": "1.2", "every": "100000", "skew_percent": "80"}
_DEFAULTS |= {"n_values": "6", "locality": "0.8"}
_ZEROS = {"k": 10**3, "M": 10**6, "G": 10**9}
MALFORMED = "anabranch_malformed"
_CORRUPT = "__anabranch_corrupt"


class Source(ABC):
    """Something that gives a streaming DataFrame."""

    @abstractmethod
    def open(self, spark: SparkSession) -> DataFrame:
        """The rows, as a stream; InputError where there are none to be had."""

    def read(self, spark: SparkSession, app: App, columns: Mapping[str, str]) -> DataFrame:
        """The application's tuples, as a stream; `columns` is as in `App.read`."""
        return app.read(self.open(spark), columns)

    def redacted(self, text: str) -> str:
        """The text without the secrets that the source was given."""
        return text


@dataclass(frozen=True)
class FileSource(Source):
    """A folder of files: those that are there, and each that is added.

    A file is read once, so it must be whole when it gets its name: write it elsewhere and move it in. Lines of JSON
    files that are no JSON objects are left out and counted; they stay where they are, in their files.

    Parameters
    ----------
    path
        A folder, a file or a pattern such as ``logs/*.csv``, on any file system that Spark reads.
    format
        One of FORMATS; found from the files' endings unless given.
    batch
        Most files in a micro-batch.
    """

    path: str
    format: str | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ConfigError(f"format must be one of {', '.join(FORMATS)}, got {self.format!r}")

    def open(self, spark: SparkSession) -> DataFrame:
        chosen = self.format or format_of(self.path)
        options = self._options(chosen)
        try:
            schema = spark.read.format(chosen).options(**options, inferSchema="true").load(self.path).schema
            if chosen == "json":
                if schema.names == [_CORRUPT]:
                    raise InputError(f"no line of {self.path!r} is a JSON object; check --source and --format")
                schema = schema if _CORRUPT in schema.names else schema.add(_CORRUPT, "string")
            reader = spark.readStream.format(chosen).options(**options).schema(schema)
            limited = reader if self.batch is None else reader.option("maxFilesPerTrigger", self.batch)
            rows = limited.load(self.path)
        except AnalysisException as error:
            line = str(error).partition("\n")[0]
            raise InputError(f"cannot read {self.path!r} as {chosen}: {line}; check --source and --format") from None
        return without_malformed(rows, _CORRUPT) if chosen == "json" else rows

    def _options(self, chosen: str) -> dict[str, str]:
        if chosen == "csv":
            return {"header": "true", "sep": "\t" if self._is_tsv() else ","}
        return {"columnNameOfCorruptRecord": _CORRUPT} if chosen == "json" else {}

    def _is_tsv(self) -> bool:
        return "://" not in self.path and any(suffix == ".tsv" for suffix in _suffixes(self.path))


@dataclass(frozen=True)
class GeneratorSource(Source):
    """The built-in generator, written ``generator:zipf?z=1.4&keys=100k&rate=50k``.

    Parameters
    ----------
    text
        The stream's name and, behind a question mark, its parameters and those of the generator; numbers may end in k,
        M or G.
    batch
        Most tuples in a micro-batch, unless `text` says so itself.
    """

    text: str
    batch: int | None = None

    def __post_init__(self) -> None:
        GeneratorSettings.of(self.options())

    def options(self) -> dict[str, str]:
        """Options of the data source.

        Examples
        --------
        >>> GeneratorSource("generator:zipf?z=1.4&keys=10k").options()
        {'stream': 'zipf', 'n_keys': '10000', 'z': '1.4'}
        """
        name, _, query = self.text.removeprefix(_GENERATOR).partition("?")
        accepted = parameters_of(name)
        options = {"stream": name} | {k: v for k, v in _DEFAULTS.items() if k in accepted}
        if self.batch is not None:
            options["batch"] = str(self.batch)
        given = parse_qsl(query, keep_blank_values=True)
        return options | {_SHORT.get(key, key): _expanded(value) for key, value in given}

    def open(self, spark: SparkSession) -> DataFrame:
        spark.dataSource.register(Generator)
        return spark.readStream.format(FORMAT).options(**self.options()).load()


def without_malformed(rows: DataFrame, reason: str) -> DataFrame:
    """The rows whose column `reason` is null, without it; the others are counted, and the query's progress says it."""
    counted = rows.observe(MALFORMED, F.count(reason).alias("n"), F.count(F.lit(1)).alias("records"))
    return counted.where(F.col(reason).isNull()).drop(reason)


def observed(progress: Mapping[str, Any]) -> Mapping[str, int] | None:
    """What `without_malformed` has counted in a batch: malformed rows as n, and records; None where nothing was."""
    found: Mapping[str, int] | None = dict(progress.get("observedMetrics") or {}).get(MALFORMED)
    return found


def source(
    text: str, *, format: str | None = None, batch: int | None = None, connection: Connection | None = None
) -> Source:
    """The source that a text names: ``generator:…``, ``kafka://…``, or a path."""
    if is_topic(text):
        from anabranch.apps.kafka import KafkaSource

        return KafkaSource(text, format, batch, connection or Connection())
    if text.startswith(_GENERATOR):
        if format is not None:
            raise ConfigError(f"the generator has no files, got format {format!r}; leave it out")
        return GeneratorSource(text, batch)
    return FileSource(text, format, batch)


def is_topic(text: str) -> bool:
    """Whether a text means a topic, be it written well or not: ``kafka:/…`` is no folder."""
    return text.lower().startswith(_SCHEME)


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
    files = [place] if place.is_file() else place.rglob("*")
    shown = (p for p in files if p.is_file() and not any(part[0] in "._" for part in p.relative_to(place).parts))
    stripped = (Path(p.stem) if p.suffix in _COMPRESSED else p for p in shown)
    return {p.suffix.lower() for p in stripped}


def _expanded(text: str) -> str:
    number = re.fullmatch(r"([0-9_.]+)([kMG])", text)
    return f"{float(number[1]) * _ZEROS[number[2]]:.0f}" if number else text
