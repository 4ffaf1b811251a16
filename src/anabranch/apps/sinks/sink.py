"""Where an application's answers go, batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.apps.run.checkpoint import Checkpoint
from anabranch.apps.sinks.folder import Folder
from anabranch.errors import ConfigError
from anabranch.printable import printable

BATCH = "batch"
_OWNER = "_anabranch_checkpoint"
_WRITING = "_anabranch_writing"


class Sink(ABC):
    """Takes the rows that a micro-batch changed. Spark may hand a batch in again after a failure."""

    def claim(self, checkpoint: str) -> None:
        """Refuse what belongs to another checkpoint, before the query starts."""
        return None

    def open(self, spark: SparkSession) -> None:
        """See that it can be written to, before the query starts."""
        return None

    def owned(self, spark: SparkSession, checkpoint: Checkpoint, query: str) -> Sink:
        """The sink, claimed for this query's answers; ConfigError where only Spark can see whose it is."""
        return self

    def redacted(self, text: str) -> str:
        """The text without the secrets that the sink was given."""
        return text

    @abstractmethod
    def write(self, rows: DataFrame, batch: int) -> None:
        """Take a batch; called on the driver. It must read all rows, or Spark's state is not complete."""


@dataclass(frozen=True)
class FolderSink(Sink):
    """Parquet files in ``<folder>/batch=N/``: the rows that batch N changed.

    Guarantees
    ----------
    A batch that is written again replaces its own files and no others. Whatever a crash leaves half-written has a name
    that readers skip, and is overwritten.

    Read it back with ``spark.read.parquet(folder)``, which adds the column ``batch``; `latest` gives each key's newest
    row.
    """

    uri: str

    def claim(self, checkpoint: str) -> None:
        folder = Folder(self.uri)
        owner = folder.read(_OWNER)
        foreign = owner is None and any(name[0] not in "._" for name in folder.names())
        if foreign or owner not in (None, checkpoint):
            raise ConfigError(
                f"sink {self.uri} holds the output of another query, whose batches would be mixed up with this one's; "
                "choose an empty folder, or that query's checkpoint"
            )
        folder.write(_OWNER, checkpoint)

    def batches(self) -> list[int]:
        """Batches that are there."""
        names = [name.removeprefix(f"{BATCH}=") for name in Folder(self.uri).names()]
        return sorted(int(name) for name in names if name.isdigit())

    def write(self, rows: DataFrame, batch: int) -> None:
        folder = Folder(self.uri)
        writing = f"{_WRITING}/{BATCH}={batch}"
        rows.write.mode("overwrite").parquet(folder.at(writing))
        folder.replace(f"{BATCH}={batch}", by=writing)


@dataclass(frozen=True)
class ConsoleSink(Sink):
    """Prints the heaviest rows that a batch changed.

    Parameters
    ----------
    heaviest
        Column to order by, largest first.
    show
        Takes the text of a table.
    rows
        Rows to print at most.
    """

    heaviest: str
    show: Callable[[str], None] = print
    rows: int = 20

    def write(self, rows: DataFrame, batch: int) -> None:
        # Sorting reads every row, as it must; collecting all of them would not fit where keys are many.
        top = rows.orderBy(F.desc(self.heaviest)).limit(self.rows + 1).collect()
        title = f"batch {batch}" + f", the first {self.rows} rows" * (len(top) > self.rows)
        self.show(_text_table(rows.columns, [[shown(value) for value in row] for row in top[: self.rows]], title))


@dataclass(frozen=True)
class MemorySink(Sink):
    """Keeps rows in the driver: `rows[batch]` is what a batch changed. For tests and small answers."""

    rows: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def write(self, rows: DataFrame, batch: int) -> None:
        self.rows[batch] = [row.asDict(recursive=True) for row in rows.collect()]

    def latest(self, key: str) -> dict[Any, dict[str, Any]]:
        """Each key's newest row."""
        return {row[key]: row for batch in sorted(self.rows) for row in self.rows[batch]}


def latest(spark: SparkSession, folder: str, key: str) -> DataFrame:
    """The answer so far: the newest row of each key in a `FolderSink`'s folder."""
    rows = spark.read.parquet(folder)
    others = [name for name in rows.columns if name != key]
    newest = rows.groupBy(key).agg(F.max_by(F.struct(*others), BATCH).alias("newest"))
    return newest.select(key, *(f"newest.{name}" for name in others)).drop(BATCH)


def shown(value: object) -> str:
    """A value in a table, on one line."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return printable(", ".join(" ".join(str(part) for part in entry) for entry in value))
    return printable(value)


def _text_table(columns: list[str], rows: list[list[str]], title: str) -> str:
    widths = [max(len(line[at]) for line in [columns, *rows]) for at in range(len(columns))]
    lines = (
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in [columns, *rows]
    )
    return "\n".join([title, *(line.rstrip() for line in lines), ""])
