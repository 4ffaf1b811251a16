"""The edge of a chain's first operator, and what travels from one operator to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.arrays import I32, U64
from anabranch.chain.spark.settings import Operator, TaskSettings
from anabranch.chain.spark.tables import in_force
from anabranch.groupings import TableRouter
from anabranch.spark.columns.key_columns import key_hashes
from anabranch.spark.edges import packs
from anabranch.spark.merging.slot_numbers import slots_of
from anabranch.spark.settings import WORKER
from anabranch.spark.task import Task

# `slot` is where a row goes next. Tuples of `operator` have no `target`; states of it have the aggregator's slot there.
# A row without a blob is a tick, because a slot without input is not called.
ROWS = "slot int, target int, operator int, blob binary"


def routes(router: TableRouter, keys: U64, sender: int | None = None) -> I32:
    """Workers of tuples, from a source or from a worker of the operator before.

    From a source split keys begin their turns anew: where a tuple goes must not depend on other blobs.
    """
    if sender is not None:
        return router.route_from(keys, sender)
    router.begin_window()
    return router.route(keys)


class Enter:
    """The function that `mapInArrow` runs once per source and batch: rows in, a blob per worker out."""

    def __init__(self, operator: Operator, settings: TaskSettings) -> None:
        self.operator, self.settings = operator, settings
        self.slots = slots_of(settings.n_workers)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Blobs, and from one source a tick for every worker."""
        task = Task.current()
        router = in_force(self.settings, task)[1][0]
        n_workers = self.settings.n_workers
        for tuples in packs.in_chunks(batches, router.chunk, n_workers):
            workers = routes(router, key_hashes(tuples, self.operator.keys))
            packed = packs.packed(tuples, workers, n_workers, WORKER)
            yield self._rows(packed[WORKER].to_numpy(), packed[packs.ROWS])
        if task.partition == 0:
            yield self._rows(np.arange(n_workers), pa.nulls(n_workers, pa.binary()))

    def _rows(self, workers: NDArray[Any], blobs: pa.Array) -> pa.RecordBatch:
        slots = np.array(self.slots, dtype=np.int32)[workers]
        nothing, first = pa.nulls(len(slots), pa.int32()), pa.array(np.zeros(len(slots), np.int32))
        return pa.record_batch({"slot": pa.array(slots), "target": nothing, "operator": first, "blob": blobs})
