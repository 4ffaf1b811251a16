"""The heaviest keys of a worker, which it reports."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from anabranch.groupings import Report
from anabranch.spark.columns.key_columns import hashes_of_jvm
from anabranch.spark.workers.partial_states import TUPLES

_REPORTED = 1000


def heaviest(partial: pa.Table | None, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Hashes and counts of the heaviest keys, heaviest first; none of a type that only the JVM hashes."""
    counts = np.zeros(0, np.int64) if partial is None else partial[TUPLES].to_numpy()
    at = np.argpartition(-counts, _REPORTED)[:_REPORTED] if len(counts) > _REPORTED else np.arange(len(counts))
    hashes = None if partial is None else hashes_of_jvm(partial.select(list(keys)).take(pa.array(at)), keys)
    if hashes is None:
        none = Report()
        return none.hot_keys, none.hot_counts
    order = np.lexsort((hashes, -counts[at]))
    return hashes[order], counts[at][order]
