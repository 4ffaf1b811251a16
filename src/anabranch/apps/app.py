"""What an application is: columns in, balanced aggregates out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.aggregates import Aggregate
from anabranch.apps.balancing import Balancing, row_columns
from anabranch.apps.cause import why_not_read
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
    """

    name: str
    type: str
    aliases: tuple[str, ...] = ()
    optional: bool = False


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
        found = {field.name: self._found(field, rows, columns or {}) for field in self.fields}
        self.check_names(columns or {})
        chosen = [F.expr(found[f.name] or "").cast(f.type).alias(f.name) for f in self.fields if found[f.name]]
        try:
            return rows.select(*chosen, *row_columns(rows))
        except AnalysisException as error:
            reason = why_not_read(error, [name for name in rows.columns if name not in row_columns(rows)])
            raise InputError(f"{self.name} cannot read its columns: {reason}; see --column") from None

    @abstractmethod
    def aggregates(self, columns: list[str]) -> dict[str, Aggregate]:
        """Output columns by name, for tuples with these columns."""

    def check(self, balancing: Balancing) -> None:
        """Refuse what the application cannot do, before anything is started; by default it can do all."""
        return None

    def build(self, tuples: DataFrame, balancing: Balancing) -> DataFrame:
        """The answer: one row a key; of a stream, the rows that a micro-batch changed."""
        return balancing.balance(tuples, self.key).aggregate(**self.aggregates(tuples.columns))

    def metrics(self, ledger: str, progress: Mapping[str, Any]) -> BatchMetrics:
        """Figures of the batch that a `StreamingQueryProgress`, as a mapping, tells about."""
        return batch_metrics(ledger, progress)

    def _found(self, field: Field, rows: DataFrame, columns: Mapping[str, str]) -> str | None:
        if field.name in columns:
            return columns[field.name]
        for name in (field.name, *field.aliases):
            if name in rows.columns:
                return f"`{name}`"
        if field.optional:
            return None
        raise InputError(
            f"{self.name} needs a column {field.name}, and the source has {', '.join(rows.columns)}; "
            f"say which it is with --column {field.name}=COLUMN"
        )

    def check_names(self, columns: Mapping[str, str]) -> None:
        """Refuse a column for a field that the application does not have."""
        names = [field.name for field in self.fields]
        for name in columns:
            if name not in names:
                raise ConfigError(f"{self.name} reads {', '.join(names)}, got a column for {name!r}; leave it out")
