"""Tables in force: which placement routes the tuples of a micro-batch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache

from anabranch import snapshot
from anabranch.chain.planning import Placement
from anabranch.chain.spark.settings import TaskSettings
from anabranch.errors import InputError, SnapshotError
from anabranch.groupings import TableRouter
from anabranch.spark.plans.ledger import Ledger, parse
from anabranch.spark.task import Task

# Of the placement that a chain starts with.
FIRST = -1
# How the names of files with states that were handed over begin.
MOVED = "moved-"


@dataclass(frozen=True)
class Tables:
    """Which placement is in force in a batch, and what the manager last thought of it.

    Parameters
    ----------
    version
        First batch in which the placement was in force; -1 for the one that the chain started with.
    previous
        The version before it, by which stateful steps still go in that first batch.
    trust
        How much of what plans promised came true so far, from 0 to 1.
    promised
        Locality that the placement promised when it was made, the mean over hops; not a number for the first.
    measured
        Locality that the tables in force had in the period before the last decision, on the servers that were known.
    moved
        Keys that the placement moved.
    split
        Keys that it splits.
    n_servers
        Servers that stand for hosts in a trial; see `Reconfiguration`.
    gain_s, cost_s
        Seconds that the last candidate was expected to save, and that moving state would have taken.
    """

    version: int = FIRST
    previous: int = FIRST
    trust: float = 1.0
    promised: float = float("nan")
    measured: float = float("nan")
    moved: int = 0
    split: int = 0
    gain_s: float = 0.0
    cost_s: float = 0.0
    n_servers: int | None = None

    def pack(self) -> bytes:
        """Bytes that `unpack` reads."""
        return snapshot.pack({"kind": "tables", **asdict(self)}, {})

    @classmethod
    def unpack(cls, data: bytes) -> Tables:
        """Tables from their bytes; SnapshotError when they are damaged or something else."""
        header, _ = snapshot.unpack(data)
        if header.pop("kind", None) != "tables":
            raise SnapshotError("these bytes hold no tables of a batch; pass Tables.pack()")
        return cls(**header)


def tables_of(ledger: Ledger, query: str, batch: int) -> Tables | None:
    """Tables of a batch; None when there are none or they are damaged."""
    data = ledger.found(query, f"{batch:012d}/tables")
    try:
        return None if data is None else parse(Tables.unpack, data)
    except SnapshotError:
        return None


def placement_of(settings: TaskSettings, query: str, version: int) -> Placement:
    """The placement of a version, on workers. One that is lost is as if there were none: every key goes by hash.

    With a stateful step that would be wrong, and is an error.
    """
    if version == FIRST or settings.ledger is None:
        return settings.first_placement()
    try:
        return parse(Placement.unpack, Ledger(settings.ledger).found(query, placement_name(version)) or b"")
    except SnapshotError:
        _require(not settings.steps, settings, placement_name(version))
        return settings.first_placement()


def placement_name(version: int) -> str:
    """Name of a placement's file in the ledger, under the query's."""
    return f"placement-{version:012d}"


def moved_name(batch: int, operator: int, sender: int) -> str:
    """Name of the file with the states that a worker of a stateful step handed over, under the query's."""
    return f"{batch:012d}/{MOVED}{operator:03d}-{sender:06d}"


def in_force(settings: TaskSettings, task: Task) -> tuple[Tables, list[TableRouter]]:
    """The tables of a task's batch, and a router for each operator; any of them gives the right answer of aggregates.

    Stateful steps go by the version before in the first batch of a new one, in which their states are handed over.
    """
    found = None if settings.ledger is None else tables_of(Ledger(settings.ledger), task.query, task.batch)
    _require(found is not None or not settings.steps or settings.ledger is None, settings, f"tables of {task.batch}")
    tables = found or Tables()
    routers = list(routers_of(settings, task.query, tables.version))
    if settings.steps and tables.version == task.batch:
        before = routers_of(settings, task.query, tables.previous)
        for step in settings.steps:
            routers[step] = before[step]
    return tables, routers


def _require(there: bool, settings: TaskSettings, what: str) -> None:
    if not there:
        raise InputError(
            f"the ledger {settings.ledger} has no {what}, and a stateful step cannot do without; restore the ledger"
        )


@lru_cache(maxsize=4)
def routers_of(settings: TaskSettings, query: str, version: int) -> list[TableRouter]:
    """Kept from task to task: a version never changes, and a router of tables learns nothing."""
    return placement_of(settings, query, version).routers()
