"""W-Choices."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.groupings.grouping import Router
from anabranch.groupings.plan import Plan, Table, to_all
from anabranch.groupings.schemes.head import HeadGrouping, HeadRouter


@dataclass(frozen=True)
class WChoices(HeadGrouping):
    """Hot keys to the least loaded of all workers, the others to the better of two.

    When to use it: very high skew, where the few hot keys may have a replica on every worker.

    Guarantees
    ----------
    A key that was never hot has at most two replicas.

    Parameters
    ----------
    theta
        A key is hot when its share of the source's tuples is at least this; default 1 / (5 n_workers).
    capacity
        SpaceSaving counters per source; default max(1000, 10 n_workers).
    family
        Hash family of the candidates.

    Examples
    --------
    >>> import numpy as np
    >>> router = WChoices().build(n_workers=4)
    >>> sorted(router.route(np.zeros(8, dtype=np.uint64)).tolist())
    [0, 0, 1, 1, 2, 2, 3, 3]

    References
    ----------
    Nasir et al., "When two choices are not enough" (ICDE 2016), section IV.
    """

    name = "w-choices"
    paper = "Nasir et al. 2016 (W-C)"

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return HeadRouter(self, n_workers, source, n_sources, seed, epsilon=None)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """Hot keys to all workers; a tail key goes home, for a table cannot choose between two."""
        return to_all(plan.hot_keys[plan.hot_counts >= self.threshold(n_workers) * plan.tuples], n_workers)
