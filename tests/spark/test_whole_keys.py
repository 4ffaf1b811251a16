from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.errors import ConfigError
from anabranch.groupings import DistributionAwareKeyGrouping, Fish, KeyGrouping, OfflineGreedy, Spillway, WChoices
from anabranch.spark.settings import QuerySettings
from anabranch.spark.whole_keys import with_whole_keys

DEFAULT = QuerySettings(Spillway(), 4, "adaptive", "ledger", keys=("key",))


def whole(settings: QuerySettings, *asked: str, streaming: bool = False) -> QuerySettings:
    return with_whole_keys(settings, frozenset(asked), streaming=streaming)


def test_keys_are_placed_heaviest_first_unless_somebody_chose_otherwise():
    counted = whole(DEFAULT)
    # Counts are arrays, which do not equal each other.
    assert isinstance(counted.grouping, OfflineGreedy)
    assert replace(counted, grouping=DEFAULT.grouping) == replace(DEFAULT, edge="planned")
    learned = replace(DEFAULT, grouping=DistributionAwareKeyGrouping(), edge="planned")
    assert whole(DEFAULT, streaming=True) == learned


@pytest.mark.parametrize("grouping", [Spillway(), Fish(), WChoices()])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_grouping_that_splits_keys_is_refused(grouping, streaming):
    default = "distribution-aware" if streaming else "offline-greedy"
    with pytest.raises(ConfigError, match=rf"got {grouping.name}; leave grouping out for {default}$"):
        whole(replace(DEFAULT, grouping=grouping), "grouping", streaming=streaming)


@pytest.mark.parametrize("edge", ["adaptive", "local"])
def test_an_edge_without_a_placement_is_refused(edge):
    with pytest.raises(ConfigError, match=rf'offline-greedy on the planned edge, got edge="{edge}"; leave edge out'):
        whole(replace(DEFAULT, edge=edge), "edge")


def test_what_was_chosen_and_splits_no_key_runs_as_it_is():
    mine = replace(DEFAULT, grouping=DistributionAwareKeyGrouping(theta=0.1), edge="planned")
    assert whole(mine, "grouping", "edge", streaming=True) == whole(mine, "grouping", "edge") == mine
    hashed = replace(DEFAULT, grouping=KeyGrouping(), ledger=None)
    for edge in ("adaptive", "planned"):
        by_hash = replace(hashed, edge=edge)
        assert whole(by_hash, "grouping", "edge", streaming=True) == by_hash
    with pytest.raises(ConfigError, match='got edge="local"'):
        whole(replace(hashed, edge="local"), "grouping", "edge")


def test_a_stream_learns_its_placement_in_a_ledger():
    with pytest.raises(ConfigError, match=r"placed by what the first batch teaches; pass ledger=…"):
        whole(replace(DEFAULT, ledger=None), streaming=True)
