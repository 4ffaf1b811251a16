"""The process that Spark forks Python workers from, with everything loaded that they need.

Spark's own forks first, and each worker then imports numba and the rest by itself. That takes seconds per worker, and
on one machine all do it at once. Set as ``spark.python.daemon.module``, but only where every host has anabranch
installed or sent.
"""

from __future__ import annotations

import gc

import pyarrow as pa
from pyspark import daemon

from anabranch.aggregates import Count, Groups
from anabranch.groupings import KeyGrouping, Spillway
from anabranch.spark.edges.adaptive import load


def load_kernels() -> None:
    """Run what nearly every query runs, so that compiled code is in memory before the first fork."""
    for grouping in (KeyGrouping(), Spillway()):
        load(grouping, 4)
    groups, _ = Groups.of(pa.table({"key": ["a", "b"]}), ["key"])
    Count().add(groups)


if __name__ == "__main__":
    load_kernels()
    # A worker collects garbage after every task; what was loaded here is none, and looking through it takes longer than
    # a small task.
    gc.collect()
    gc.freeze()
    daemon.manager()
