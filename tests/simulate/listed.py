"""A stream that is given tuple by tuple, in batches of any length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anabranch.hashing import MultiplyShift, hash_keys
from anabranch.streams import Stream

SOURCE_SEED = 0x50C3


@dataclass(frozen=True, eq=False)
class Listed(Stream):
    """Keys, and where given arrival times and a column ``origin``; `batch` tuples at a time, whatever is asked for."""

    name: ClassVar[str] = "listed"

    keys: np.ndarray
    ts: np.ndarray | None = None
    origin: np.ndarray | None = None
    batch: int = 1000

    @property
    def n_tuples(self) -> int:
        return len(self.keys)

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "batch": self.batch}

    def _read(self, seed: int, size: int, start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        columns = {"key": pa.array(self.keys)}
        if self.ts is not None:
            columns["ts"] = pa.array(self.ts)
        if self.origin is not None:
            columns["origin"] = pa.array(self.origin)
        whole = pa.RecordBatch.from_pydict(columns).slice(start, None if stop is None else stop - start)
        return (whole.slice(first, self.batch) for first in range(0, len(whole), self.batch))

    def hashes(self) -> list[int]:
        return hash_keys(self.keys).tolist()

    def sources(self, n_sources: int, source_key: str | None = None) -> list[int]:
        """Round robin, or by the hash of a column."""
        if source_key is None:
            return [i % n_sources for i in range(self.n_tuples)]
        column = self.keys if source_key == "key" else self.origin
        return MultiplyShift().first(hash_keys(column), n_sources, SOURCE_SEED).tolist()


def skewed(n_tuples: int, n_keys: int, seed: int, **columns: object) -> Listed:
    """Keys whose frequency falls with their number, none of them negligible."""
    uniform = np.random.default_rng(seed).random(n_tuples)
    return Listed(np.floor(n_keys * uniform**3).astype(np.int64), **columns)
