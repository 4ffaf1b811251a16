from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from anabranch.apps import App, Balancing, Checkpoint, GeoTrends, Hashtags, Vwap
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import Fish, KeyGrouping, PartialKeyGrouping

VWAP = Vwap()
BALANCING = Balancing(PartialKeyGrouping(), 4)
RESIDENT = Balancing(PartialKeyGrouping(), 4, regime="resident")


def claim(checkpoint: Checkpoint, balancing: Balancing, app: App = VWAP) -> str:
    return checkpoint.claim(app.identity(balancing), balancing.routing())


def test_a_checkpoint_keeps_its_name_and_lets_its_own_settings_in(tmp_path):
    checkpoint = Checkpoint(str(tmp_path / "a" / "b"))
    first = claim(checkpoint, BALANCING)
    assert claim(checkpoint, BALANCING) == first
    assert claim(Checkpoint(str(tmp_path / "c")), BALANCING) != first


@pytest.mark.parametrize(
    ("app", "before", "other", "named"),
    [
        (Vwap(), BALANCING, RESIDENT, "regime batch, not resident"),
        (Vwap(), RESIDENT, BALANCING, "regime resident, not batch"),
        (Vwap(), RESIDENT, replace(RESIDENT, n_workers=5), "workers 4, not 5"),
        (GeoTrends(), Balancing(n_workers=4), Balancing(n_workers=5), "workers 4, not 5"),
        (GeoTrends(), Balancing(n_workers=4), Balancing(n_workers=4, seed=1), "seed 0, not 1"),
    ],
)
def test_settings_that_states_depend_on_are_refused_and_named(tmp_path, app, before, other, named):
    checkpoint = Checkpoint(str(tmp_path))
    claim(checkpoint, before, app)
    setting = named.partition(",")[0]
    with pytest.raises(ConfigError, match=f"was made with {named}, and its states .*; go on with {setting}, or start "):
        claim(checkpoint, other, app)
    assert claim(checkpoint, before, app)


def test_another_application_is_refused(tmp_path):
    claim(Checkpoint(str(tmp_path)), BALANCING)
    with pytest.raises(ConfigError, match="was made with app vwap, not hashtags"):
        claim(Checkpoint(str(tmp_path)), BALANCING, Hashtags())


def log(folder: Path, batch: int, offset: int) -> None:
    """What Spark keeps of a batch that is done."""
    for name, text in (("offsets", f'v1\n{{"batchTimestampMs":{batch}}}\n{{"logOffset":{offset}}}'), ("commits", "v1")):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / str(batch)).write_text(text)


def test_a_checkpoint_knows_how_many_batches_workers_hold(tmp_path):
    checkpoint, held = Checkpoint(str(tmp_path)), []
    assert checkpoint.held(3) == 0
    # Batch 4 read nothing, so it handed on what was held; batches 2 and 8 did because it was time.
    for batch, offset in enumerate([0, 1, 2, 3, 3, 4, 5, 6, 7]):
        log(tmp_path, batch, offset)
        held.append(checkpoint.held(3))
        assert checkpoint.held(1) == 0
    assert held == [1, 2, 0, 1, 0, 0, 1, 2, 0]


@pytest.mark.parametrize("before", [BALANCING, RESIDENT])
@pytest.mark.parametrize(
    "change",
    [{"grouping": KeyGrouping()}, {"grouping": PartialKeyGrouping(choices=3)}, {"edge": "planned"}, {"seed": 1}],
)
def test_other_routes_are_let_in_and_learned_anew(tmp_path, before, change):
    checkpoint, learned = Checkpoint(str(tmp_path)), tmp_path / "anabranch-ledger" / "query"
    first = claim(checkpoint, before)
    for balancing in (replace(before, **change), before):
        learned.mkdir(parents=True)
        assert claim(checkpoint, balancing) == first
        assert not learned.exists()


def test_another_number_of_workers_is_let_in_where_states_live_for_a_batch(tmp_path):
    checkpoint = Checkpoint(str(tmp_path))
    assert claim(checkpoint, BALANCING) == claim(checkpoint, replace(BALANCING, n_workers=3))


def test_what_neither_states_nor_routes_depend_on_may_change_and_nothing_is_forgotten(tmp_path):
    checkpoint, learned = Checkpoint(str(tmp_path)), tmp_path / "anabranch-ledger" / "query"
    first = claim(checkpoint, Balancing(Fish(), 4))
    learned.mkdir(parents=True)
    # The adaptive edge is the default of streams.
    assert claim(checkpoint, Balancing(Fish(), 4, edge="adaptive", work_us=5.0)) == first
    assert learned.exists()


def test_a_ledger_that_the_user_has_named_is_left_alone(tmp_path):
    checkpoint = Checkpoint(str(tmp_path / "state"), str(tmp_path / "book"))
    claim(checkpoint, BALANCING)
    (tmp_path / "book").mkdir()
    claim(checkpoint, replace(BALANCING, n_workers=3))
    assert (tmp_path / "book").exists()


def test_a_checkpoint_of_another_program_is_refused(tmp_path):
    (tmp_path / "offsets").mkdir()
    with pytest.raises(ConfigError, match="was not made by anabranch run"):
        Checkpoint(str(tmp_path)).claim({}, {})


def test_damaged_settings_are_an_error(tmp_path):
    (tmp_path / "anabranch.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        Checkpoint(str(tmp_path)).claim({}, {})


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot "):
        Checkpoint(str(tmp_path / "file" / "below")).claim({}, {})


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
        Checkpoint("nowhere://bucket/state").claim({}, {})
    with pytest.raises(InputError, match="elsewhere://bucket is not a location that pyarrow or fsspec opens"):
        Checkpoint("nowhere://bucket/state", "elsewhere://bucket").claim({}, {})


@pytest.mark.parametrize("text", ["", "[]", "null", '"id"', "{}", "\ud800"])
def test_settings_of_any_other_shape_are_an_error(tmp_path, text):
    (tmp_path / "anabranch.json").write_text(text, errors="surrogatepass")
    with pytest.raises(InputError, match=r"is damaged|cannot read"):
        Checkpoint(str(tmp_path)).claim({}, {})
