from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from anabranch.apps import Balancing, Checkpoint
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import Fish, KeyGrouping, PartialKeyGrouping

BALANCING = Balancing(PartialKeyGrouping(), 4)


def test_a_checkpoint_keeps_its_name_and_lets_its_own_settings_in(tmp_path):
    checkpoint = Checkpoint(str(tmp_path / "a" / "b"))
    first = checkpoint.claim(BALANCING.identity())
    assert checkpoint.claim(BALANCING.identity()) == first
    assert Checkpoint(str(tmp_path / "c")).claim(BALANCING.identity()) != first


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (Balancing(KeyGrouping(), 4), "grouping partial-key, not key"),
        (Balancing(PartialKeyGrouping(choices=3), 4), r"parameters \(.*choices=2.*\), not \(.*choices=3"),
        (Balancing(PartialKeyGrouping(), 5), "workers 4, not 5"),
        (Balancing(PartialKeyGrouping(), 4, edge="local"), "edge default, not local"),
        (Balancing(PartialKeyGrouping(), 4, regime="resident"), "regime batch, not resident"),
    ],
)
def test_other_settings_are_refused_and_named(tmp_path, other, named):
    checkpoint = Checkpoint(str(tmp_path))
    checkpoint.claim(BALANCING.identity())
    with pytest.raises(ConfigError, match=f"was made with {named}.*; keep that, or start with a new checkpoint"):
        checkpoint.claim(other.identity())


def test_what_no_state_depends_on_may_change(tmp_path):
    checkpoint = Checkpoint(str(tmp_path))
    first = checkpoint.claim(Balancing(Fish(), 4).identity())
    assert checkpoint.claim(Balancing(Fish(), 4, work_us=5.0).identity()) == first


def test_a_checkpoint_of_another_program_is_refused(tmp_path):
    (tmp_path / "offsets").mkdir()
    with pytest.raises(ConfigError, match="was not made by anabranch run"):
        Checkpoint(str(tmp_path)).claim({})


def test_damaged_settings_are_an_error(tmp_path):
    (tmp_path / "anabranch.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        Checkpoint(str(tmp_path)).claim({})


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot "):
        Checkpoint(str(tmp_path / "file" / "below")).claim({})


def test_batches_that_are_done_are_counted(tmp_path):
    checkpoint = Checkpoint(str(tmp_path))
    assert checkpoint.batches() == 0
    (tmp_path / "commits").mkdir()
    for name in ("0", "1", "10", ".10.crc", "metadata"):
        (tmp_path / "commits" / name).write_text("")
    assert checkpoint.batches() == 11


def test_the_ledger_is_in_the_checkpoint_unless_told_and_the_same_from_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Checkpoint("state").ledger == str(tmp_path / "state" / "anabranch-ledger")
    assert Checkpoint("file:///state").ledger == "/state/anabranch-ledger"
    assert Checkpoint("state", "book").ledger == str(tmp_path / "book")


def test_a_checkpoint_that_python_does_not_reach_asks_for_a_ledger():
    with pytest.raises(ConfigError, match=r"ledger cannot be in the checkpoint.*nowhere://bucket.*with --ledger"):
        Checkpoint("nowhere://bucket/state").claim({})
    with pytest.raises(InputError, match="elsewhere://bucket is not a location that pyarrow or fsspec opens"):
        Checkpoint("nowhere://bucket/state", "elsewhere://bucket").claim({})


@pytest.mark.parametrize("text", ["", "[]", "null", '"id"', "{}", "\ud800"])
def test_settings_of_any_other_shape_are_an_error(tmp_path, text):
    (tmp_path / "anabranch.json").write_text(text, errors="surrogatepass")
    with pytest.raises(InputError, match=r"is damaged|cannot read"):
        Checkpoint(str(tmp_path)).claim({})
