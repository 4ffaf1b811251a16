"""Stateful steps: a key's state is where its tuples are, however tables change, and attempts leave no trace."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from pyspark.sql import functions as F

pytest.importorskip("pyspark")

from pyspark.sql import Row

from anabranch.aggregates import Count, Sum
from anabranch.chain import Placement, Reconfiguration, chain
from anabranch.chain.spark.hop_report import hop_reports
from anabranch.chain.spark.remember import Remember
from anabranch.chain.spark.settings import Operator, TaskSettings
from anabranch.chain.spark.step import Step
from anabranch.chain.spark.tables import Tables, placement_name, tables_of
from anabranch.errors import ConfigError, InputError
from anabranch.groupings import TableGrouping
from anabranch.hashing import hash_keys
from anabranch.spark import Ledger
from anabranch.spark.merging.blobs import decode, encode
from anabranch.spark.task import Task
from anabranch.spark.workers.partial_states import PartialStates

from ...spark.running import run, stream_of, write_files
from .test_chain import last, posts

SENT = "tag long, author long, likes double, surprise double"


def smooth(states: pa.Table, tuples: pa.Table) -> tuple[pa.Table, pa.Table]:
    """How far each tuple is from the smoothed ones of its tag before it: states that cannot be merged."""
    means = dict(zip(states["tag"].to_pylist(), states["mean"].to_pylist(), strict=True))
    surprises = []
    for tag, likes in zip(tuples["tag"].to_pylist(), tuples["likes"].to_pylist(), strict=True):
        surprises.append(likes - means.get(tag, 0.0))
        means[tag] = 0.75 * means.get(tag, 0.0) + 0.25 * likes
    new = pa.table({"tag": pa.array(means.keys(), pa.int64()), "mean": pa.array(means.values(), pa.float64())})
    return new, tuples.append_column("surprise", pa.array(surprises, pa.float64()))


def expected(batches: list[pa.Table]) -> dict[int, float]:
    """Surprises by author, one tuple after the other."""
    means: dict[int, float] = defaultdict(float)
    by_author = defaultdict(list)
    for batch in batches:
        for row in sorted(batch.to_pylist(), key=lambda row: row["likes"]):
            by_author[row["author"]].append(row["likes"] - means[row["tag"]])
            means[row["tag"]] = 0.75 * means[row["tag"]] + 0.25 * row["likes"]
    return {author: math.fsum(values) for author, values in by_author.items()}


@pytest.mark.spark
@pytest.mark.usefixtures("rocksdb")
def test_states_travel_with_their_keys_whenever_tables_change(spark, tmp_path):
    """Tables change in every batch: workers take states up and hand others over in the same one."""
    made = [posts(i, 600, shift=i) for i in range(4)]
    folder = write_files(tmp_path / "files", made)
    reconfiguration = Reconfiguration(every=1, n_servers=3)
    answers = (
        chain(stream_of(spark, folder), 3, ledger=str(tmp_path / "ledger"), reconfiguration=reconfiguration)
        .then("region", posts=Count())
        .map_with_state("tag", smooth, SENT, state="mean double", order_by=["likes"])
        .then("author", surprise=Sum("surprise"))
        .answers()
    )
    assert answers.columns == ["operator", "region", "author"]
    done = run(answers, tmp_path / "checkpoint")
    found = {key[0]: row[0][2] for key, row in last(done, "author").items()}
    assert found == {author: value.hex() for author, value in expected(made).items()}
    ledger = Ledger(str(tmp_path / "ledger"))
    assert [tables_of(ledger, done.query, batch).version for batch in range(4)] == [-1, 1, 2, 3]
    moved = [
        sum(one.flushed for one in hop_reports(ledger, done.query, batch) if one.operator == 1) for batch in range(4)
    ]
    assert moved[0] == 0 and min(moved[1:]) > 0


@pytest.mark.spark
@pytest.mark.usefixtures("rocksdb")
@pytest.mark.parametrize(("empty", "versions"), [(2, [-1, -1, 2, -1, 4]), (3, [-1, -1, 2, 2, 4])])
def test_no_state_is_lost_by_a_batch_in_which_no_worker_is_called(spark, tmp_path, empty, versions):
    """An empty file is a batch without partitions: that of the decision, or the one in which states are to arrive."""
    made = [posts(i, 600, shift=i) for i in range(5)]
    folder = tmp_path / "files"
    folder.mkdir()
    for number, table in enumerate(made):
        path = folder / f"{number}.csv"
        if number == empty:
            path.touch()
        else:
            csv.write_csv(table, path, csv.WriteOptions(include_header=False))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    schema = spark.createDataFrame(made[0]).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(folder))
    reconfiguration = Reconfiguration(every=2, n_servers=3)
    answers = (
        chain(stream, 3, ledger=str(tmp_path / "ledger"), reconfiguration=reconfiguration)
        .then("region", posts=Count())
        .map_with_state("tag", smooth, SENT, state="mean double", order_by=["likes"])
        .then("author", surprise=Sum("surprise"))
        .answers()
    )
    done = run(answers, tmp_path / "checkpoint")
    found = {key[0]: row[0][2] for key, row in last(done, "author").items()}
    assert found == {author: value.hex() for author, value in expected(made[:empty] + made[empty + 1 :]).items()}
    ledger = Ledger(str(tmp_path / "ledger"))
    assert [tables_of(ledger, done.query, batch).version for batch in range(5)] == versions


@pytest.mark.spark
def test_a_stateful_step_is_checked_before_a_query_starts(spark):
    df = spark.createDataFrame(posts(1, 10)).selectExpr("*", "array(tag) AS tags")
    flat = chain(df.drop("tags"), 2)
    named = chain(df.drop("tags").withColumn("name", F.collate(F.lit("a"), "UTF8_LCASE")), 2)
    for build, error, message in [
        (
            lambda: chain(df, 2).map_with_state("tag", smooth, SENT, state="mean double"),
            ConfigError,
            "tags of a stateful",
        ),
        (lambda: flat.map_with_state("tag", smooth, "x long", state="mean double"), ConfigError, "tag is missing"),
        (lambda: flat.map_with_state("nope", smooth, SENT, state="mean double"), InputError, "key nope is not"),
        (
            lambda: flat.map_with_state("tag", smooth, SENT, state="mean double", order_by=["at"]),
            InputError,
            "order_by has column at",
        ),
        (
            lambda: flat.map_with_state("tag", smooth, SENT, state="mean double", order_by="at"),
            InputError,
            "order_by has column at",
        ),
        (
            lambda: named.map_with_state("tag", smooth, SENT, state="mean double", order_by="name"),
            ConfigError,
            "column name of order_by has the collation UTF8_LCASE",
        ),
        (
            lambda: flat.map_with_state("tag", smooth, SENT, state="tag long, mean double"),
            ConfigError,
            "leave tag out of state",
        ),
        (
            lambda: flat.map_with_state("tag", smooth, SENT, state="double"),
            ConfigError,
            "must name columns, as in 'mean double', got 'double'",
        ),
        (
            lambda: flat.then("region", n=Count()).map_with_state("tag", smooth, SENT, state="mean double").answers(),
            ConfigError,
            "must come before an operator",
        ),
    ]:
        with pytest.raises(error, match=message):
            build()


class Value:
    """A value of a slot's state."""

    def __init__(self) -> None:
        self.value: Any = None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value

    def clear(self) -> None:
        self.value = None


class Map(dict[Any, Any]):
    """A map of a slot's state."""

    getValue, updateValue, removeKey = dict.get, dict.__setitem__, dict.__delitem__
    containsKey = dict.__contains__

    def iterator(self) -> Any:
        return iter(self.items())


class Slot:
    """What Spark does for a slot: an attempt at a batch works on a copy of the state, and may be committed."""

    def __init__(self, settings: TaskSettings, operators: tuple[Operator, ...], number: int) -> None:
        self.number, self.worker = number, Remember(operators, 0, settings)
        self.state: dict[str, Any] = {}

    def getMapState(self, name: str, *_: Any) -> Any:
        return self.state.setdefault(name, Map())

    def getValueState(self, name: str, *_: Any) -> Any:
        return self.state.setdefault(name, Value())

    def attempt(self, tuples: list[pa.Table], *, commit: bool) -> list[tuple[int, list[Any]]]:
        before = {name: Map(one) if isinstance(one, Map) else _copy(one) for name, one in self.state.items()}
        self.worker.init(self)  # type: ignore[arg-type]
        rows = [Row(slot=0, target=None, operator=0, blob=encode(one)) for one in tuples]
        slot = self.worker.own_slots[self.number]
        sent = [*self.worker.handleInputRows((slot,), iter(rows), None)]
        if not commit:
            self.state = before
        return sorted((row["slot"], decode(row["blob"]).to_pylist()) for row in sent if row["blob"] is not None)


def _copy(one: Value) -> Value:
    made = Value()
    made.value = one.value
    return made


STATES = pa.schema([("tag", pa.int64()), ("mean", pa.float64())])
SENDS = pa.schema([("tag", pa.int64()), ("likes", pa.float64()), ("surprise", pa.float64())])


def on(worker: int) -> Placement:
    """Tag 7 on a worker of the step."""
    nothing = np.zeros(0, np.uint64)
    tables = (TableGrouping(hash_keys([7]), [worker]), TableGrouping())
    return Placement(2, tables, (0.5,), np.zeros((2, 2)), (nothing, nothing))


def slots_of_step(settings: TaskSettings) -> list[Slot]:
    step = Step(smooth, STATES, SENDS, ("likes",))
    operators = (
        Operator("step", PartialStates(("tag",), ()), ("tag", "likes"), (), step),
        Operator("tag", PartialStates(("tag",), ()), ("tag", "surprise")),
    )
    return [Slot(settings, operators, number) for number in range(2)]


def settle(settings: TaskSettings, batch: int, tables: Tables) -> None:
    Ledger(str(settings.ledger)).settle("q", f"{batch:012d}/tables", tables.pack())


def test_attempts_that_fail_or_run_twice_leave_what_one_would(tmp_path, monkeypatch):
    """A key moves from worker 0 to worker 1 in batch 1; any attempt may run again, its rows in another order."""
    settings = TaskSettings(2, 2, str(tmp_path), steps=(0,), placement=on(0))
    slots, ledger = slots_of_step(settings), Ledger(str(tmp_path))
    ledger.settle("q", placement_name(1), on(1).pack())
    for batch, tables in enumerate([Tables(), Tables(version=1), Tables(version=1)]):
        settle(settings, batch, tables)

    def at(batch: int) -> None:
        monkeypatch.setattr(Task, "current", lambda: Task("q", batch, 0))

    def tuples(*likes: float) -> pa.Table:
        return pa.table({"tag": pa.array([7] * len(likes), pa.int64()), "likes": pa.array(likes, pa.float64())})

    at(0)
    slots[0].attempt([tuples(8.0)], commit=True)
    slots[1].attempt([], commit=True)
    at(1)
    # The tables of batch 1 move the key, but in that batch its tuples still come to worker 0.
    tries = [slots[0].attempt(one, commit=False) for one in ([tuples(4.0, 1.0)], [tuples(1.0), tuples(4.0)])]
    file = f"{1:012d}/moved-000-000000"
    left = ledger.found("q", file)
    assert slots[0].attempt([tuples(4.0), tuples(1.0)], commit=True) == tries[0] == tries[1]
    assert ledger.found("q", file) == left
    assert not slots[0].state["buckets"]
    slots[1].attempt([], commit=True)
    at(2)
    ((_, first),) = slots[1].attempt([tuples(3.0)], commit=False)
    ((_, again),) = slots[1].attempt([tuples(3.0)], commit=True)
    # 8 → 2, then 1 → 1.75, then 4 → 2.3125.
    assert first == again == [{"tag": 7, "surprise": 3.0 - 2.3125}]
    assert slots[0].attempt([], commit=True) == []
    # What was handed over is needed until the batch after it is committed, and its loss is noticed.
    at(2)
    ledger.remove("q", file)
    slots[1].state["awaited"].value = (1,)
    with pytest.raises(InputError, match=r"has lost 000000000001/moved-000-000000, states that moved in batch 1"):
        slots[1].attempt([], commit=False)
    slots[1].state["awaited"].value = None
    # Nor does it go on with other tables than those that its states lie by.
    at(3)
    with pytest.raises(InputError, match="has no tables of 3"):
        slots[1].attempt([], commit=False)
    settle(settings, 3, Tables())
    with pytest.raises(InputError, match="lie where the tables of batch 1 have them"):
        slots[1].attempt([], commit=False)


def test_a_step_that_returns_no_state_for_a_key_forgets_it(tmp_path, monkeypatch):
    """Its bucket, which is then empty, goes with it: the next tuple of the key begins anew."""
    settings = TaskSettings(2, 2, str(tmp_path), steps=(0,), placement=on(0))
    monkeypatch.setattr(Task, "current", lambda: Task("q", 0, 0))
    settle(settings, 0, Tables())
    slot = slots_of_step(settings)[0]
    known = pa.table({"tag": pa.array([7], pa.int64()), "likes": [8.0]})
    slot.attempt([known], commit=True)
    assert len(slot.state["buckets"]) == 1
    forgetful = replace(slot.worker.step, func=lambda states, tuples: (states.slice(0, 0), smooth(states, tuples)[1]))
    slot.worker.step = forgetful
    ((_, found),) = slot.attempt([known], commit=True)
    assert found == [{"tag": 7, "surprise": 8.0 - 2.0}]
    assert not slot.state["buckets"]
    ((_, found),) = slot.attempt([known], commit=True)
    assert found == [{"tag": 7, "surprise": 8.0}]


def test_another_number_of_workers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Task, "current", lambda: Task("q", 0, 0))
    settings = TaskSettings(2, 2, str(tmp_path), steps=(0,), placement=on(0))
    settle(settings, 0, Tables())
    slot = slots_of_step(settings)[0]
    slot.attempt([], commit=True)
    slot.worker.n_workers = 3
    with pytest.raises(ConfigError, match="lie on 2 workers, and the query now has 3"):
        slot.attempt([], commit=False)


@pytest.mark.parametrize(
    "bad",
    [
        lambda states, tuples: (pa.concat_tables([states, states]), tuples),
        lambda states, tuples: (states.set_column(0, "tag", pa.array([9] * states.num_rows, pa.int64())), tuples),
    ],
)
def test_a_step_returns_one_state_a_key_of_its_tuples(bad):
    tuples = pa.table({"tag": pa.array([7], pa.int64()), "likes": [1.0]})
    states = pa.table({"tag": pa.array([7], pa.int64()), "mean": [1.0]})
    step = Step(bad, STATES, tuples.schema)
    with pytest.raises(InputError, match="must return one state per key"):
        step(("tag",), states, tuples)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda states, tuples: tuples, "by tag must return two tables, states and tuples, got Table"),
        (lambda states, tuples: (None, tuples), "as states, must return a pyarrow.Table, got NoneType"),
        (
            lambda states, tuples: (states, tuples.to_pandas()),
            "as tuples, must return a pyarrow.Table, got pandas.DataFrame",
        ),
        (
            lambda states, tuples: (states.drop(["mean"]), tuples),
            "must return the columns tag, mean, each once, got tag",
        ),
        (
            lambda states, tuples: (states.set_column(1, "mean", pa.array(["abc"])), tuples),
            "as states, must return mean as double, got string: .*abc",
        ),
    ],
)
def test_a_function_returns_what_was_declared_or_is_told_what_it_returned(bad, message):
    tuples = pa.table({"tag": pa.array([7], pa.int64()), "likes": [1.0]})
    states = pa.table({"tag": pa.array([7], pa.int64()), "mean": [1.0]})
    with pytest.raises(InputError, match=message):
        Step(bad, STATES, tuples.schema)(("tag",), states, tuples)


def test_the_order_of_a_batch_does_not_depend_on_arrival_where_a_sort_sees_no_difference():
    step = Step(smooth, STATES, SENDS)
    nan = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    likes = np.concatenate([[0.0, -0.0], nan, [1.0]])
    rows = pa.table({"tag": np.zeros(5, np.int64), "likes": likes})
    wanted = step.ordered(rows)["likes"].to_numpy().tobytes()
    rng = np.random.default_rng(1)
    for _ in range(20):
        assert step.ordered(rows.take(pa.array(rng.permutation(5))))["likes"].to_numpy().tobytes() == wanted
