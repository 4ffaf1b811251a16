"""Why a row does not give an application its fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from anabranch.apps.app import Field

_MOST = 100


def misfits(
    values: Mapping[Field, Column],
    typed: Mapping[Field, Column],
    needed: Collection[Field],
    names: Mapping[Field, str] | None = None,
) -> list[Column]:
    """Reasons why a row is malformed, each null where it is not.

    Parameters
    ----------
    values
        Fields as the row has them.
    typed
        The same as the application wants them; null where a value is not of the field's type.
    needed
        Fields without which a row cannot be used.
    names
        What to call a field, where that is not its name.
    """
    reasons = []
    called = {field: field.name for field in values} | dict(names or {})
    for field, value in values.items():
        if field in needed:
            reasons.append(F.when(value.isNull(), f"no value in {called[field]}"))
        if field.type != "string":
            bad = value.isNotNull() & typed[field].isNull()
            reasons.append(F.when(bad, is_not(called[field], field.type, value.cast("string"))))
    if values and all(field.optional for field in values):
        none = F.coalesce(*(value.cast("string") for value in values.values())).isNull()
        reasons.append(F.when(none, f"no value in {' or '.join(called.values())}"))
    return reasons


def is_not(name: str, type: str, text: Column) -> Column:
    """The reason of a value that is not of this type."""
    return F.concat(F.lit(f"{name} is not a {type}: "), F.left(text, F.lit(_MOST)))
