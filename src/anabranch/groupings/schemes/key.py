"""Key grouping."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from anabranch.arrays import I32, U64
from anabranch.groupings.grouping import Grouping, Router
from anabranch.groupings.plan import Plan, Table, to_all
from anabranch.hashing import HashFamily, MultiplyShift


@dataclass(frozen=True)
class KeyGrouping(Grouping):
    """Each key to one worker by hash: least memory, worst balance.

    When to use it: without hot keys, or when a function cannot be merged.

    Guarantees
    ----------
    Every key has one replica.

    Examples
    --------
    >>> import numpy as np
    >>> KeyGrouping().build(n_workers=4).route(np.array([0, 2**62, 2**63], dtype=np.uint64)).tolist()
    [0, 1, 2]

    References
    ----------
    Partial key grouping paper, section II-A ("KG", "H"). Ours scales the hash instead of taking a modulo.
    """

    name = "key"
    paper = "baseline"
    learns = False
    splits_keys = False

    family: HashFamily = field(default=MultiplyShift())

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return _KeyRouter(self, n_workers, source, n_sources, seed)

    def table(self, plan: Plan, n_workers: int, seed: int = 0) -> Table:
        """Everything goes home: the table is empty."""
        return to_all(plan.hot_keys[:0], n_workers)


class _KeyRouter(Router):
    grouping: KeyGrouping

    def _route(self, keys: U64, now: float, out: I32) -> None:
        out[:] = self.grouping.family.first(keys, self.n_workers, self.seed)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _adopt(self, arrays: dict[str, NDArray[Any]]) -> None:
        pass
