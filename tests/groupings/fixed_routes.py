"""Digests of the routes of every grouping, and of the plans it makes, on three streams in three micro-batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anabranch import groupings
from anabranch.groupings import Grouping, Plan, Report, TableGrouping
from anabranch.groupings.plan import pack_plan
from anabranch.hashing import hash_keys
from anabranch.streams import Drifting, Stream, Zipf

N_WORKERS, N_SOURCES, N_BATCHES, SEED = 16, 2, 3, 7
_TUPLES = 30_000


def streams() -> dict[str, Stream]:
    """A skewed stream, a nearly uniform one, and one whose hot keys change."""
    return {
        "zipf-1.4": Zipf(n_tuples=_TUPLES, n_keys=5_000, z=1.4),
        "zipf-0.5": Zipf(n_tuples=_TUPLES, n_keys=500, z=0.5),
        "drifting": Drifting(n_tuples=_TUPLES, n_keys=2_000, z=1.2, every=5_000),
    }


def digests() -> dict[str, str]:
    """Digest of each grouping on each stream."""
    return {
        f"{grouping.name} on {name}": _digest(grouping, keys)
        for name, stream in streams().items()
        for keys in [_hashes(stream)]
        for grouping in _all(keys)
    }


def _hashes(stream: Stream) -> NDArray[np.uint64]:
    return np.concatenate([hash_keys(batch.column("key")) for batch in stream.batches(3)])


def _all(keys: NDArray[np.uint64]) -> Iterator[Grouping]:
    distinct, counts = np.unique(keys, return_counts=True)
    for name in groupings.names():
        if name == TableGrouping.name:
            yield TableGrouping(distinct[:300], np.arange(300) % N_WORKERS)
        else:
            yield groupings.named(name)().with_counts(distinct, counts)


def _digest(grouping: Grouping, keys: NDArray[np.uint64]) -> str:
    """What every source routes, batch by batch, each following the plan of the batch before, and the plans."""
    digest = hashlib.blake2b(digest_size=8)
    routers = [grouping.build(N_WORKERS, source, N_SOURCES, SEED) for source in range(N_SOURCES)]
    plan: Plan | None = None
    for batch, part in enumerate(np.array_split(keys, N_BATCHES)):
        tuples = np.zeros(N_WORKERS, dtype=np.int64)
        for source, router in enumerate(routers):
            router.begin_window()
            if plan is not None:
                router.follow(plan)
            workers = router.route(np.ascontiguousarray(part[source::N_SOURCES]), float(batch), 1e-4)
            digest.update(workers.tobytes())
            tuples += np.bincount(workers, minlength=N_WORKERS)
        worked = Report(worker_tuples=tuples, worker_seconds=tuples * 1e-5)
        plan = grouping.fold(plan, [*(router.report() for router in routers), worked])
        digest.update(pack_plan(plan))
    return digest.hexdigest()
