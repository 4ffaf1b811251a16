"""A balanced query in plain words."""

from __future__ import annotations

from pyspark.sql import DataFrame

from anabranch.spark.settings import Settings

_EDGES = {
    "adaptive": "adaptive: a router in each source task chooses the worker of every row, in Python",
    "planned": "planned: native expressions and a broadcast table choose the worker; no row leaves the JVM",
    "local": "local: rows stay where they are, whatever the grouping; nothing is shuffled but partial states",
}


def describe(df: DataFrame, settings: Settings) -> str:
    """What runs, what is shuffled, what is merged, what is learned."""
    return "\n".join(f"{name:9} {text}" for name, text in _lines(df, settings))


def _lines(df: DataFrame, settings: Settings) -> list[tuple[str, str]]:
    grouping = settings.grouping
    local = settings.edge == "local"
    lines = [("edge", _EDGES[settings.edge])]
    if not local:
        lines.append(("grouping", f"{grouping.name}: {grouping.summary()}"))
        packed = ", many rows packed into one" if settings.edge == "adaptive" else ""
        lines.append(("shuffled", f"each row once, to {settings.n_workers} workers by repartitionById{packed}"))
    each = "a key and batch" if df.isStreaming else "a key"
    lines.append(("worker", f"one partial state {each}, by Arrow tables{_work(settings)}"))
    lines.append(("merged", _merged(df, settings)))
    if not local:
        lines.append(("learned", _learned(df, settings)))
    if df.isStreaming:
        lines.append(("retry", _RETRY))
    return lines


_RETRY = (
    "behind a join, repartition or dedup the order of the rows is not fixed: a lost executor may then stop the query "
    "with an error about indeterminate output; nothing is lost, restart it from its checkpoint"
)


def _work(settings: Settings) -> str:
    return f", and {settings.work_us:g} µs of emulated work a row" if settings.work_us else ""


def _merged(df: DataFrame, settings: Settings) -> str:
    keys = ", ".join(settings.keys)
    if settings.regime == "resident":
        every = "every batch" if settings.flush_every == 1 else f"every {settings.flush_every} batches"
        return f"states stay on their worker; by {keys}, {every}"
    if not df.isStreaming:
        return f"partial states by groupBy({keys})"
    return f"partial states of every batch by groupBy({keys}), in Spark's own state store"


def _learned(df: DataFrame, settings: Settings) -> str:
    if not settings.grouping.by_key or settings.grouping.name == "key":
        return "nothing: this grouping does not look at how often keys occur"
    if not df.isStreaming:
        exact = "from an exact count of this DataFrame, made first"
        return exact if settings.edge == "planned" else "by each router while it routes"
    if settings.ledger is None:
        return "by each router anew in every batch; pass ledger=… to carry it on"
    return f"in the ledger {settings.ledger}: reports of one batch become the plan of the next"
