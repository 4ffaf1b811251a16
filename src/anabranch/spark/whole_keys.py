"""Settings under which no key is split."""

from __future__ import annotations

from dataclasses import replace

from anabranch.errors import ConfigError
from anabranch.groupings import DistributionAwareKeyGrouping, Grouping, OfflineGreedy, named, names
from anabranch.spark.settings import QuerySettings


def with_whole_keys(settings: QuerySettings, asked: frozenset[str], *, streaming: bool) -> QuerySettings:
    """The settings that place every key on one worker.

    Parameters
    ----------
    settings
        Of the balanced DataFrame.
    asked
        Those that the user has chosen; they are kept, or refused where they would split a key.
    streaming
        Whether it is a stream, whose keys cannot be counted beforehand.
    """
    default = DistributionAwareKeyGrouping() if streaming else OfflineGreedy()
    grouping = settings.grouping if "grouping" in asked else default
    _check_grouping(grouping, default)
    # What needs not be learned is the same on every edge that has an exchange.
    edge = "planned" if grouping.learns or settings.edge == "local" else settings.edge
    if "edge" in asked and settings.edge != edge:
        raise ConfigError(
            f'whole_keys=True places {grouping.name} on the planned edge, got edge="{settings.edge}"; leave edge out'
        )
    whole = replace(settings, grouping=grouping, edge=edge)
    if streaming and whole.needs_plan and whole.ledger is None:
        raise ConfigError("whole keys on a stream are placed by what the first batch teaches; pass ledger=…")
    return whole


def _check_grouping(grouping: Grouping, default: Grouping) -> None:
    if grouping.splits_keys:
        whole = ", ".join(name for name in names() if not named(name).splits_keys)
        raise ConfigError(
            f"whole_keys=True needs a grouping that splits no key ({whole}), got {grouping.name}; "
            f"leave grouping out for {default.name}"
        )
