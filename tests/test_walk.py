"""The walk in ARCHITECTURE.md: one row enters the files that the page names, in the page's order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import anabranch
from anabranch.aggregates import Count, Sum
from anabranch.groupings import PartialKeyGrouping, Spillway
from anabranch.hashing import hash_keys
from anabranch.simulate import Settings, simulate
from anabranch.streams import Zipf

SOURCE = Path(anabranch.__file__).parent
PAGE = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
# Every step asks them, so that they have no place in the order; the page names them below the tables.
ASIDE = re.findall(r"`([\w/*]+\.py)`", PAGE.partition("Any step may ask")[2].partition("The router")[0])


def on_page(walk: str, column: int) -> list[str]:
    """Files of a column of a table of the walk."""
    table = PAGE.partition(f"**{walk}")[2].partition("\n\n|")[2].partition("\n\n")[0]
    cells = [line.split("|")[column + 1] for line in table.splitlines() if re.match(r"\| \d", line)]
    return [file for cell in cells for file in re.findall(r"`([\w/]+\.py)`", cell)]


def entered(room: str, *steps: Callable[[], Any]) -> list[str]:
    """Files of a room in the order in which they are entered first, without what only makes an object."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        name = frame.f_code.co_name
        if event == "call" and (name == "__call__" or not name.startswith("__")) and path.is_relative_to(SOURCE / room):
            file = path.relative_to(SOURCE / room).as_posix()
            if file not in seen and not any(fnmatch(file, pattern) for pattern in ASIDE):
                seen.append(file)

    sys.setprofile(note)
    try:
        for step in steps:
            step()
    finally:
        sys.setprofile(None)
    return seen


def test_the_page_has_its_tables() -> None:
    assert len(ASIDE) == 8 and "columns/*.py" in ASIDE
    assert len(on_page("An adaptive stream", 1)) == 11 and len(on_page("An adaptive stream", 2)) == 8


def test_a_tuple_in_the_simulator() -> None:
    stream = Zipf(n_tuples=5_000, n_keys=100, z=1.0)
    simulate(stream, PartialKeyGrouping(), Settings(n_workers=4))
    files = entered("simulate", lambda: simulate(stream, PartialKeyGrouping(), Settings(n_workers=4)))
    assert files == on_page("The simulator", 1)


@pytest.fixture
def rows() -> pa.Table:
    """Rows with the hashes of their keys, as Spark hands them to the edge."""
    pytest.importorskip("pyspark")
    from anabranch.spark.settings import HASH

    keys = np.random.default_rng(0).zipf(1.5, 5000) % 50
    return pa.table({"key": keys, "v": keys, HASH: hash_keys(keys).view(np.int64)})


def partial_states() -> Any:
    from anabranch.spark.workers.partial_states import BoundAggregate, PartialStates

    named = {"n": Count(), "total": Sum("v")}
    types = {"v": pa.int64()}
    bounds = tuple(BoundAggregate(name, one, one.state(types)) for name, one in named.items())
    return PartialStates(("key",), bounds)


def tasks_of_a_batch(rows: pa.Table, ledger: Path) -> list[Callable[[], Any]]:
    """What the tasks of a batch of an adaptive stream run: plan, edge, worker."""
    from anabranch.spark.edges import packs
    from anabranch.spark.edges.adaptive import _Pack
    from anabranch.spark.plans.plan_source import _PlanReader
    from anabranch.spark.settings import QuerySettings
    from anabranch.spark.workers.worker import Worker

    settings = QuerySettings(Spillway(), 4, "adaptive", ledger=str(ledger), keys=("key",))
    packed: list[pa.RecordBatch] = []

    def route() -> None:
        packed.extend(_Pack(settings)(iter(rows.to_batches())))

    def work() -> None:
        blobs = (batch.select([packs.ROWS]) for batch in packed if batch.num_rows)
        counts = [batch.column(1).drop_null().to_numpy() for batch in Worker(partial_states(), settings)(blobs)]
        assert np.concatenate(counts).sum() == len(rows)

    return [lambda: list(_PlanReader(settings).read(None)), route, work]


def test_a_row_in_the_tasks_of_an_adaptive_stream(rows, tmp_path) -> None:
    for step in tasks_of_a_batch(rows, tmp_path / "first"):
        step()  # Kernels are compiled here: noting every call of the compiler would take minutes.
    assert entered("spark", *tasks_of_a_batch(rows, tmp_path / "second")) == on_page("An adaptive stream", 2)


def test_a_row_in_the_tasks_of_a_planned_batch(rows) -> None:
    from anabranch.spark.settings import QuerySettings
    from anabranch.spark.workers.worker import Worker

    settings = QuerySettings(Spillway(), 4, "planned", keys=("key",))
    work = Worker(partial_states(), settings)
    list(work(iter(rows.to_batches())))
    assert entered("spark", lambda: list(work(iter(rows.to_batches())))) == on_page("A planned batch", 2)


@pytest.mark.spark
def test_the_driver_makes_an_adaptive_stream_and_a_planned_batch(spark, tmp_path) -> None:
    from anabranch.spark import balance

    spark.range(10).selectExpr("id as key", "id as v").write.parquet(str(tmp_path / "rows"))
    batch = spark.read.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(batch.schema).parquet(str(tmp_path / "rows"))
    ledger = str(tmp_path / "ledger")

    def stream_query() -> None:
        balance(stream, "key", Spillway(), 4, ledger=ledger).aggregate(n=Count(), total=Sum("v"))

    def batch_query() -> None:
        balance(batch, "key", Spillway(), 4).aggregate(n=Count(), total=Sum("v"))

    stream_query()
    batch_query()
    assert entered("spark", stream_query) == on_page("An adaptive stream", 1)
    assert entered("spark", batch_query) == on_page("A planned batch", 1)
