"""Distribution-aware key grouping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.arrays import I32, I64, U64
from anabranch.containers.key_table import KeyTable
from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Report, Table
from anabranch.groupings.schemes.offline_greedy import place_heaviest_first
from anabranch.hashing import MultiplyShift
from anabranch.hashing.family import reseed
from anabranch.sketches import SpaceSaving

# Buckets are hashed under a seed of their own, independent of a key's home.
_BUCKET_SEED = 0xB0CC


@dataclass(frozen=True)
class DistributionAwareKeyGrouping(Grouping):
    """Learn the heavy keys, then map them and buckets of the others to workers, heaviest first, for good.

    When to use it: when a key must not be split and the distribution does not change.

    Guarantees
    ----------
    After the learning phase every key has one worker, among routers that share their mapping.

    Parameters
    ----------
    learning
        Tuples of the learning phase; they are routed by hash.
    theta
        A key is heavy when its share is at least this; default 1 / (5 n_workers).
    factor
        Hash buckets per worker that the router was built for, for the other keys. With many more workers than that,
        some get no bucket.

    Examples
    --------
    >>> import numpy as np
    >>> router = DistributionAwareKeyGrouping(learning=4).build(n_workers=2)
    >>> learned = router.route(np.array([1, 1, 2, 2], dtype=np.uint64))
    >>> routes = router.route(np.array([1, 2, 1, 2], dtype=np.uint64))
    >>> bool(routes[0] != routes[1] and routes[0] == routes[2])
    True

    References
    ----------
    Rivetti et al., "Efficient key grouping for near-optimal load balancing in stream processing systems" (DEBS 2015).
    SpaceSaving with ⌈2 / theta⌉ counters. The public code drops the tuples of the learning phase; ours routes them by
    hash. The mapping is shared by `build_all`; a router built alone learns its own.
    """

    name = "distribution-aware"
    paper = "Rivetti et al. 2015 (R-DKG)"
    splits_keys = False

    learning: int = 100_000
    theta: float | None = None
    factor: float = 2.0

    def __post_init__(self) -> None:
        if self.learning < 1:
            raise ConfigError(f"learning must be at least 1 tuple, got {self.learning}")
        if self.theta is not None and not 0 < self.theta <= 1:
            raise ConfigError(f"theta must be above 0 and at most 1, got {self.theta}")
        if not self.factor > 0:
            raise ConfigError(f"factor must be above 0, got {self.factor}")

    @property
    def warm_up(self) -> tuple[int, float]:
        """The learning phase."""
        return self.learning, 0.0

    def threshold(self, n_workers: int) -> float:
        """Share from which a key is heavy."""
        return 1 / (5 * n_workers) if self.theta is None else self.theta

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _DistributionAwareRouter(self, n_workers, source, n_sources, seed)

    def build_all(self, n_sources: int, n_workers: int, seed: int = 0) -> list[Router]:
        """One router, repeated: all sources share the mapping."""
        return self._build_shared(n_sources, n_workers, seed)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """Heavy keys, heaviest first to the least loaded; once made, the mapping never changes."""
        if plan.table is not None and len(plan.table.keys):
            return plan.table
        heavy = plan.hot_counts >= self.threshold(n_workers) * plan.tuples
        keys, counts = plan.hot_keys[heavy], plan.hot_counts[heavy]
        # A bucket is what a worker's home keys weigh without the heavy ones: an equal share, as far as is known.
        rest = max(0, plan.tuples - int(counts.sum())) // n_workers
        workers = np.empty(len(keys), dtype=np.int32)
        place_heaviest_first(counts, np.full(n_workers, rest, dtype=np.int64), workers)
        return Table(keys, np.arange(len(keys) + 1), workers)


class _DistributionAwareRouter(Router):
    """`seen` holds the tuples so far; `buckets` first their counts, then, once learned, `mapping` their workers."""

    grouping: DistributionAwareKeyGrouping

    def __init__(
        self, grouping: DistributionAwareKeyGrouping, n_workers: int, source: int, n_sources: int, seed: int
    ) -> None:
        super().__init__(grouping, n_workers, source, n_sources, seed)
        self.sketch = SpaceSaving(math.ceil(2 / grouping.threshold(n_workers)))
        n_buckets = math.ceil(grouping.factor * n_workers)
        self.buckets = np.zeros(n_buckets, dtype=np.int64)
        self.mapping = np.zeros(n_buckets, dtype=np.int32)
        self.table = KeyTable()
        self.seen = np.zeros(1, dtype=np.int64)

    def _route(self, keys: U64, now: float, out: I32) -> None:
        left = max(0, self.grouping.learning - int(self.seen[0]))
        learned = keys[:left]
        if len(learned):
            out[:left] = MultiplyShift().first(learned, self.n_workers, self.seed)
            self.sketch.update(learned)
            self.buckets += np.bincount(self._bucket(learned), minlength=len(self.buckets))
        self.seen[0] += len(keys)
        if len(learned) and self.seen[0] >= self.grouping.learning:
            self._map()
        if left < len(keys):
            rest = keys[left:]
            homes = self.mapping[self._bucket(rest)]
            self.table.look_up(rest, homes, out[left:])

    def _bucket(self, keys: U64) -> I32:
        return MultiplyShift().first(reseed(keys, _BUCKET_SEED), len(self.buckets), self.seed)

    def _map(self) -> None:
        """Longest processing time first over heavy keys and the buckets of all others."""
        keys, counts, errors = self.sketch.top()
        heavy = counts - errors >= math.ceil(self.grouping.threshold(self.n_workers) * self.grouping.learning)
        keys, counts = keys[heavy], counts[heavy]
        light = self.buckets - np.bincount(self._bucket(keys), weights=counts, minlength=len(self.buckets)).astype(int)
        weights = np.concatenate([counts, np.maximum(light, 0)])
        order = np.argsort(-weights, kind="stable")
        workers = np.empty(len(weights), dtype=np.int32)
        placed = np.empty(len(weights), dtype=np.int32)
        place_heaviest_first(weights[order], np.zeros(self.n_workers, dtype=np.int64), placed)
        workers[order] = placed
        self.table = KeyTable()
        self.table.insert(keys, workers[: len(keys)])
        self.mapping = workers[len(keys) :].copy()

    def report(self) -> Report:
        keys, counts, _ = self.sketch.top()
        return Report(tuples=self.sketch.total, hot_keys=keys, hot_counts=counts)

    def _resize(self, previous: I64) -> None:
        """Another number of workers needs another mapping of what was learned."""
        if self.seen[0] >= self.grouping.learning:
            self._map()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        own = {name: getattr(self, name) for name in ("buckets", "mapping", "seen")}
        sketch = {f"sketch.{name}": array for name, array in self.sketch.arrays().items()}
        return {**own, **sketch, **self.table.arrays()}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.buckets, self.mapping, self.seen = arrays["buckets"], arrays["mapping"], arrays["seen"]
        self.sketch.restore({name: arrays[f"sketch.{name}"] for name in self.sketch.arrays()})
        self.table.adopt(arrays)
