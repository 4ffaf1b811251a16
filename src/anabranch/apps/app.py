"""What an application is: columns in, balanced aggregates out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.aggregates import Aggregate
from anabranch.apps.balancing import Balancing, row_columns
from anabranch.apps.run.cause import why_not_read
from anabranch.errors import ConfigError, InputError
from anabranch.spark.progress import BatchMetrics, batch_metrics


@dataclass(frozen=True)
class Field:
    """One column that an application reads.

    Parameters
    ----------
    name
        What the application calls it.
    type
        Spark's name of the type that it is cast to.
    aliases
        Other names under which it is found in a source that has no column `name`.
    optional
        Whether the application does without it.
    key
        Whether rows are counted under it, so that a row without it cannot be used.
    """

    name: str
    type: str
    aliases: tuple[str, ...] = ()
    optional: bool = False
    key: bool = False


class App(ABC):
    """A keyed streaming application: it names its columns and aggregates, and leaves the rest to `balance`.

    A concrete application is a frozen dataclass. Its docstring's first line is what ``anabranch run`` lists.
    """

    name: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]]
    key: ClassVar[str]
    # Where only some rows are shown, those with the largest value of this column.
    heaviest: ClassVar[str]

    @classmethod
    def summary(cls) -> str:
        """First line of the documentation."""
        return (cls.__doc__ or "").strip().partition("\n")[0]

    def read(self, rows: DataFrame, columns: Mapping[str, str] | None = None) -> DataFrame:
        """The application's columns out of a source's, and those that tell its rows apart.

        Parameters
        ----------
        rows
            What the source delivers.
        columns
            For a field's name, the source's column or a SQL expression over its columns; a field that is not listed is
            looked for by its name and then by its aliases.
        """
        names = [name for name in rows.columns if name not in row_columns(rows)]
        found = self.chosen(names, columns or {})
        with self.reading(names):
            return rows.select(*(F.expr(e).cast(f.type).alias(f.name) for f, e in found.items()), *row_columns(rows))

    def chosen(self, names: Sequence[str], columns: Mapping[str, str]) -> dict[Field, str]:
        """For each field that a source with columns of these names has, the SQL expression that gives it."""
        self.check_names(columns)
        found = {field: self._found(field, names, columns) for field in self.fields}
        return {field: text for field, text in found.items() if text is not None}

    @contextmanager
    def reading(self, names: Sequence[str]) -> Iterator[None]:
        """Say in one line why Spark cannot read the fields out of columns of these names."""
        try:
            yield
        except AnalysisException as error:
            reason = why_not_read(error, names)
            raise InputError(f"{self.name} cannot read its columns: {reason}; see --column") from None

    @abstractmethod
    def aggregates(self, columns: list[str]) -> dict[str, Aggregate]:
        """Output columns by name, for tuples with these columns."""

    def check(self, balancing: Balancing, *, once: bool = False) -> None:
        """Refuse what the application cannot do, before anything is started; by default it can do all.

        Parameters
        ----------
        balancing
            How the tuples are spread.
        once
            Whether the run ends when it has read what is there.
        """
        return None

    def identity(self, balancing: Balancing) -> dict[str, Any]:
        """What a checkpoint is bound to: with other values its states would be read wrongly."""
        return {"app": self.name, "key": self.key, **balancing.identity()}

    def build(self, tuples: DataFrame, balancing: Balancing) -> DataFrame:
        """The answer: one row a key; of a stream, the rows that a micro-batch changed."""
        return balancing.balance(tuples, self.key).aggregate(**self.aggregates(tuples.columns))

    def metrics(self, ledger: str, progress: Mapping[str, Any]) -> BatchMetrics | None:
        """Figures of the batch that a `StreamingQueryProgress`, as a mapping, tells about; None without reports."""
        return batch_metrics(ledger, progress)

    def _found(self, field: Field, names: Sequence[str], columns: Mapping[str, str]) -> str | None:
        if field.name in columns:
            return columns[field.name]
        for name in (field.name, *field.aliases):
            if name in names:
                return f"`{name}`"
        if field.optional:
            return None
        raise InputError(
            f"{self.name} needs a column {field.name}, and the source has {', '.join(names)}; "
            f"say which it is with --column {field.name}=COLUMN"
        )

    def check_names(self, columns: Mapping[str, str]) -> None:
        """Refuse a column for a field that the application does not have."""
        names = [field.name for field in self.fields]
        for name in columns:
            if name not in names:
                raise ConfigError(f"{self.name} reads {', '.join(names)}, got a column for {name!r}; leave it out")
