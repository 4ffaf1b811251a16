"""Words and how often each came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.aggregates import Aggregate, Count
from anabranch.apps.app import App, Field
from anabranch.apps.balancing import row_columns
from anabranch.errors import InputError

# Letters, digits and what stands inside a word: "don't", "e_mail", "#spark".
_WORD = r"[#@]?[\p{L}\p{N}_]+(?:['’][\p{L}\p{N}_]+)*"


@dataclass(frozen=True)
class WordCount(App):
    """Counts words: of lines of text, or of a column that holds one word a row.

    When to use it: to see a skewed stream at work; every language has a few words that are most of all words.

    Guarantees
    ----------
    A word's count is the number of times it came, whatever grouping, edge and number of workers.

    Words of lines are lower-cased; a column of words (``word`` or ``key``) is taken as it is. Where there are columns
    ``word`` and ``line``, a row without a word has its line counted. Rows without either are left out.
    """

    name: ClassVar[str] = "word-count"
    fields: ClassVar[tuple[Field, ...]] = (
        Field("word", "string", aliases=("key",), optional=True),
        Field("line", "string", aliases=("value", "text"), optional=True),
    )
    key: ClassVar[str] = "word"
    heaviest: ClassVar[str] = "count"

    def read(self, rows: DataFrame, columns: Mapping[str, str] | None = None) -> DataFrame:
        found = super().read(rows, columns)
        others = row_columns(rows)
        if "line" not in found.columns:
            return found.where(F.col("word").isNotNull())
        if "word" not in found.columns:
            return found.select(words("line").alias("word"), *others)
        each = F.when(F.col("word").isNull(), _words("line")).otherwise(F.array("word"))
        return found.select(F.explode(each).alias("word"), *others)

    def chosen(self, names: Sequence[str], columns: Mapping[str, str]) -> dict[Field, str]:
        found = super().chosen(names, columns)
        if not found:
            raise InputError(
                f"word-count needs a column word or line, and the source has {', '.join(names)}; "
                "say which it is with --column word=COLUMN or --column line=COLUMN"
            )
        word, line = self.fields
        # Other columns that go by one of a line's names may be anything.
        both = not columns and {word.name, line.name} <= set(names)
        return found if both or word not in found else {word: found[word]}

    def aggregates(self, columns: list[str]) -> dict[str, Aggregate]:
        return {"count": Count()}


def words(line: str) -> F.Column:  # type: ignore[name-defined]
    """Every word of a column of text, one per row, in lower case."""
    return F.explode(_words(line))


def _words(line: str) -> F.Column:  # type: ignore[name-defined]
    return F.regexp_extract_all(F.lower(F.col(line)), F.lit(_WORD), F.lit(0))
