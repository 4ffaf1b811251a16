"""The adaptive edge packs rows as its router routes them, however many packs a task makes, without Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from anabranch.groupings import DynamicKeyGrouping, Plan, Router, Spillway
from anabranch.groupings.schemes.dynamic_key import DynamicKeyRouter
from anabranch.hashing import hash_keys
from anabranch.spark.edges import packs
from anabranch.spark.edges.adaptive import _Pack, _reverse_bits, router_of
from anabranch.spark.plans.ledger import Ledger
from anabranch.spark.plans.unwritten import UNWRITTEN
from anabranch.spark.settings import HASH, WORKER, QuerySettings
from anabranch.spark.task import NO_QUERY


def hashed(keys: np.ndarray) -> pa.Table:
    return pa.table({"row": pa.array(range(len(keys))), HASH: hash_keys(keys).view(np.int64)})


def routes_of(settings: QuerySettings, rows: pa.Table, size: int) -> tuple[list[int], int]:
    """Worker of each row, in the rows' order, and the number of packs."""
    made = list(_Pack(settings)(iter(rows.to_batches(max_chunksize=size))))
    routes = np.full(len(rows), -1)
    for packed in made:
        for worker, blob in zip(packed[WORKER].to_pylist(), packed[packs.ROWS].to_pylist(), strict=True):
            routes[pa.ipc.open_stream(blob).read_all()["row"].to_numpy()] = worker
    return routes.tolist(), len(made)


def test_time_goes_on_from_one_pack_of_a_task_to_the_next(tmp_path: Path, monkeypatch) -> None:
    """The pace is such that keys grow old within the batch: all packs at its beginning would split none."""
    monkeypatch.setattr(packs, "_LEAST", 500)
    monkeypatch.setattr(packs, "_LEAST_EACH", 1)
    grouping = DynamicKeyGrouping(teenage_s=1.0, old_s=2.0, warm_up_s=0.0)
    settings = QuerySettings(grouping, 10, "adaptive", str(tmp_path), keys=("key",))
    plan = Plan(sources=1, now=1000.0, step_s=0.01)
    Ledger(str(tmp_path)).settle_plan(NO_QUERY, 0, plan)
    rows = hashed(np.where(np.random.default_rng(0).random(4000) < 0.6, 0, np.arange(4000)))
    router = grouping.build(10, 0, 1024)
    router.begin_window()
    wanted = router.route(rows[HASH].to_numpy().view(np.uint64), plan.now, plan.step_s).tolist()
    times = []

    def told(self: Router, keys: np.ndarray, now: float, step_s: float) -> np.ndarray:
        times.append(now)
        return Router.route(self, keys, now, step_s)

    monkeypatch.setattr(DynamicKeyRouter, "route", told)
    routes, n_packs = routes_of(settings, rows, 100)
    assert n_packs == 8
    assert np.array_equal(routes, wanted)
    assert router.scale_outs > 2
    # This router would go on by itself, so that its routes alone do not show whether it is told the time.
    assert times == pytest.approx([1000.0 + 5.0 * pack for pack in range(8)])


@pytest.mark.parametrize("size", [1, 7, 100, 2000])
def test_routes_of_large_rows_do_not_depend_on_how_they_come_in_batches(tmp_path: Path, monkeypatch, size) -> None:
    """A chunk of the router ends with its bytes: here after some 50 rows, of 10,000 that it may have."""
    monkeypatch.setattr(packs, "_CHUNK_BYTES", 20_000)
    monkeypatch.setattr(packs, "_MOST_BYTES", 5_000)
    rng = np.random.default_rng(1)
    rows = hashed(np.where(rng.random(2000) < 0.5, 0, np.arange(2000)))
    rows = rows.append_column("text", pa.array(["x" * n for n in rng.integers(0, 800, 2000)]))
    routes, n_packs = routes_of(QuerySettings(Spillway(), 10, "adaptive", keys=("key",)), rows, size)
    assert 35 <= n_packs <= 45
    whole, _ = routes_of(QuerySettings(Spillway(), 10, "adaptive", keys=("key",)), rows, 500)
    assert np.array_equal(routes, whole)
    assert max(np.bincount(routes)) < 1.3 * 200


def test_an_edge_that_cannot_write_its_report_routes_as_it_would(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("in the way")
    rows = hashed(np.random.default_rng(1).integers(0, 50, 3000))
    grouping = DynamicKeyGrouping()
    routes, unwritten = [], []
    for ledger in (tmp_path / "ledger", tmp_path / "other"):
        settings = QuerySettings(grouping, 10, "adaptive", str(ledger), keys=("key",))
        routes.append(routes_of(settings, rows, 100)[0])
        unwritten.append(sum(sum(one[UNWRITTEN].to_pylist()) for one in _Pack(settings)(iter(rows.to_batches()))))
    assert np.array_equal(routes[0], routes[1])
    assert unwritten == [1, 0]


def test_tasks_are_told_apart_evenly_where_nobody_knows_how_many_there_are() -> None:
    assert [_reverse_bits(task) for task in (0, 1, 2, 3, 4, 1025)] == [0, 512, 256, 768, 128, 512]
    assert sorted(map(_reverse_bits, range(1024))) == [*range(1024)]


def test_the_source_of_a_task_is_its_number_among_those_that_reported() -> None:
    settings = QuerySettings(Spillway(), 4, "adaptive", seed=3, keys=("key",))
    known, unknown = (router_of(settings, 5, Plan(sources=sources)) for sources in (3, 0))
    assert (known.source, known.n_sources, known.seed) == (2, 3, 3)
    assert (unknown.source, unknown.n_sources) == (_reverse_bits(5), 1024)
    # A router that is kept from batch to batch stays that of its task, however many report.
    kept = router_of(QuerySettings(DynamicKeyGrouping(), 4, "adaptive", keys=("key",)), 5, Plan(sources=3), b"damaged")
    assert (kept.source, kept.n_sources) == (_reverse_bits(5), 1024)
