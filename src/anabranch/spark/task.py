"""Where a task of a query is: which query, batch and partition."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

# A batch DataFrame has no query id and no batches.
NO_QUERY = "batch"


@dataclass(frozen=True)
class Task:
    """Query, micro-batch and partition of the running task."""

    query: str
    batch: int
    partition: int

    @classmethod
    def current(cls) -> Task:
        """The task that this Python worker is running."""
        context = TaskContext.get()
        if context is None:
            return cls(NO_QUERY, 0, 0)
        batch = context.getLocalProperty("streaming.sql.batchId")
        query = context.getLocalProperty("sql.streaming.queryId")
        return cls(query or NO_QUERY, int(batch or 0), context.partitionId())
