"""Where an application's rows come from: a folder that grows, the built-in generator, or a topic of Kafka."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.apps.app import App
from anabranch.apps.kafka.connection import Connection
from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.run.notes import Note, silent
from anabranch.errors import ConfigError
from anabranch.spark.data_sources import load
from anabranch.spark.generator.settings import GeneratorSettings
from anabranch.spark.generator.source import Generator

_GENERATOR = "generator:"
KAFKA = "kafka://"
_SCHEME = KAFKA.partition("/")[0]
MALFORMED = "anabranch_malformed"
STRICT = "anabranch: a malformed row ends a strict run"


class Source(ABC):
    """Something that gives a streaming DataFrame."""

    @abstractmethod
    def open(self, spark: SparkSession) -> DataFrame:
        """The rows, as a stream; InputError where there are none to be had."""

    def read(self, spark: SparkSession, app: App, columns: Mapping[str, str], *, strict: bool = False) -> DataFrame:
        """The application's tuples, as a stream.

        Parameters
        ----------
        columns
            As in `App.read`.
        strict
            Fail, with STRICT, at the first malformed row instead of leaving it out.
        """
        return app.read(self.open(spark), columns)

    def check(self, spark: SparkSession, checkpoint: Checkpoint, note: Note = silent) -> None:
        """See, before the query starts, that it can be read and has what the checkpoint goes on with.

        `note` takes what the user should know of it.
        """
        return None

    def check_running(self, checkpoint: Checkpoint) -> None:
        """See, while the query runs, that it is still the one that the checkpoint has read."""
        return None

    def redacted(self, text: str) -> str:
        """The text without the secrets that the source was given."""
        return text


@dataclass(frozen=True)
class GeneratorSource(Source):
    """The built-in generator, written ``generator:zipf(z=1.4, keys=100k, rate=50k)``.

    Parameters
    ----------
    text
        The stream's name and, in brackets, its parameters and those of the generator (`anabranch.spark.generator`).
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
        >>> GeneratorSource("generator:zipf(z=1.4)", batch=500).options()
        {'stream': 'zipf(z=1.4)', 'batch': '500'}
        """
        batch = {} if self.batch is None else {"batch": str(self.batch)}
        return {"stream": self.text.removeprefix(_GENERATOR), **batch}

    def open(self, spark: SparkSession) -> DataFrame:
        return load(spark, Generator, self.options(), streaming=True)


def without_malformed(rows: DataFrame, reason: str, *, strict: bool = False) -> DataFrame:
    """The rows whose column `reason` is null, without it; the others are counted, and the query's progress says it.

    A strict query fails at the first of the others.
    """
    counted = rows.observe(MALFORMED, F.count(reason).alias("n"), F.count(F.lit(1)).alias("records"))
    good = F.col(reason).isNull()
    kept = F.when(good, True).otherwise(F.raise_error(F.lit(STRICT)).cast("boolean")) if strict else good
    return counted.where(kept).drop(reason)


def observed(progress: Mapping[str, Any]) -> Mapping[str, int] | None:
    """What `without_malformed` has counted in a batch: malformed rows as n, and records; None where nothing was."""
    found: Mapping[str, int] | None = dict(progress.get("observedMetrics") or {}).get(MALFORMED)
    return found


def source(
    text: str, *, format: str | None = None, batch: int | None = None, connection: Connection | None = None
) -> Source:
    """The source that a text names: ``generator:…``, ``kafka://…``, or a path."""
    if is_topic(text):
        from anabranch.apps.kafka.ends import KafkaSource

        return KafkaSource(text, format, batch, connection or Connection())
    if text.startswith(_GENERATOR):
        if format is not None:
            raise ConfigError(f"the generator has no files, got format {format!r}; leave it out")
        return GeneratorSource(text, batch)
    from anabranch.apps.sources.file_source import FileSource

    return FileSource(text, format, batch)


def is_topic(text: str) -> bool:
    """Whether a text means a topic, written well or not: ``kafka:/…`` is not a folder."""
    return text.lower().startswith(_SCHEME)
