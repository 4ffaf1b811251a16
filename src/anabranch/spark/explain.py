"""A balanced query in plain words."""

from __future__ import annotations

from pyspark.sql import DataFrame

from anabranch.printable import printable
from anabranch.spark.columns.keys import event_time
from anabranch.spark.columns.names import shown
from anabranch.spark.merging.output_mode import sees_modes
from anabranch.spark.settings import QuerySettings

_EDGES = {
    "adaptive": "adaptive: a router in each source task chooses the worker of every row, in Python",
    "planned": "planned: native expressions and a broadcast table choose the worker; no row leaves the JVM",
    "local": "local: rows stay where they are, whatever the grouping; nothing is shuffled but partial states",
}


def describe(df: DataFrame, settings: QuerySettings, why_edge: str = "", *, whole_keys_differ: bool = False) -> str:
    """What runs, what is shuffled, what is merged, what is learned."""
    each = "per key and batch" if df.isStreaming else "per key"
    worker = f"one partial state {each}, by Arrow tables{_work(settings)}"
    work = [("worker", worker), ("merged", _merged(df, settings))]
    if df.isStreaming:
        work.append(("output", _output(df, settings)))
    whole = [("whole", _WHOLE)] if whole_keys_differ else []
    return _text([*_routes(settings, why_edge), *work, *_rest(df, settings), *whole])


def describe_whole_keys(df: DataFrame, settings: QuerySettings) -> str:
    """The same for a function that sees every key whole."""
    worker = f"your function, over all rows of a worker at once{_work(settings)}"
    work = [("worker", worker), ("merged", "nothing: no key is split")]
    return _text([*_routes(settings), *work, *_rest(df, settings)])


def _text(lines: list[tuple[str, str]]) -> str:
    return "\n".join(f"{name:9} {printable(text)}" for name, text in lines)


def _routes(settings: QuerySettings, why_edge: str = "") -> list[tuple[str, str]]:
    """How rows come to workers."""
    grouping = settings.grouping
    lines = [("edge", _EDGES[settings.edge] + (f"; {why_edge}" if why_edge else ""))]
    if settings.edge != "local":
        lines.append(("grouping", f"{grouping.name}: {grouping.summary()}"))
        packed = ", many rows packed into one" if settings.edge == "adaptive" else ""
        lines.append(("shuffled", f"each row once, to {settings.n_workers} workers by repartitionById{packed}"))
    return lines


def _rest(df: DataFrame, settings: QuerySettings) -> list[tuple[str, str]]:
    """What is known from batch to batch, and what happens when tasks run again."""
    learned = [("learned", _learned(df, settings))] if settings.edge != "local" else []
    return [*learned, ("retry", _RETRY)] if df.isStreaming else learned


_WHOLE = "per_worker(…, whole_keys=True) places keys in another way; explain(whole_keys=True) tells"

_RETRY = (
    "behind a join, repartition or dedup the order of the rows is not fixed: a lost executor may then stop the query "
    "with an error about indeterminate output; nothing is lost, restart it from its checkpoint"
)


def _work(settings: QuerySettings) -> str:
    return f", and {settings.work_us:g} µs of emulated work per row" if settings.work_us else ""


def _merged(df: DataFrame, settings: QuerySettings) -> str:
    keys = ", ".join(map(shown, settings.keys))
    if settings.regime == "resident":
        every = "every batch" if settings.flush_every == 1 else f"every {settings.flush_every} batches"
        return f"states stay on their worker; by {keys}, {every}"
    if not df.isStreaming:
        return f"partial states by groupBy({keys})"
    return f"partial states of every batch by groupBy({keys}), in Spark's own state store"


def _output(df: DataFrame, settings: QuerySettings) -> str:
    """In which mode answers can be written: where Spark refuses one, its error does not say which to take."""
    if settings.regime == "resident":
        return "answers of aggregate in update mode only"
    if event_time(df.schema, settings.keys):
        return "answers of aggregate in append, update or complete mode, as in plain Spark"
    return (
        "answers of aggregate in update mode; in complete mode too where Spark merges all of them, which it does not "
        "for TopK, CollectN and states that name no merge: take update mode there, or an event-time window as a key"
        + ("" if sees_modes(df.sparkSession) else _UNSEEN)
    )


_UNSEEN = "; over Spark Connect nothing refuses append mode for them, which would write totals again in every batch"


def _learned(df: DataFrame, settings: QuerySettings) -> str:
    if not settings.grouping.learns:
        return "nothing: this grouping does not look at how often keys occur"
    if not df.isStreaming:
        exact = "from an exact count of this DataFrame, made first, which reads it once more"
        return exact if settings.edge == "planned" else "by each router while it routes"
    if settings.ledger is None:
        return "by each router anew in every batch; pass ledger=… to carry it on"
    return f"in the ledger {settings.ledger}: reports of one batch become the plan of the next"
