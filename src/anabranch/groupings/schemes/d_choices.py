"""D-Choices."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import ConfigError
from anabranch.groupings.grouping import Router
from anabranch.groupings.schemes.head import HeadGrouping, HeadRouter


@dataclass(frozen=True)
class DChoices(HeadGrouping):
    """Hot keys to the least loaded of just enough candidates, the others to the better of two.

    When to use it: high skew with many workers, where two choices are too few and all workers cost too much memory.

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
    epsilon
        Tolerated imbalance, as a share of the tuples, when solving for the number of choices.

    Examples
    --------
    >>> import numpy as np
    >>> router = DChoices().build(n_workers=4)
    >>> sorted(router.route(np.zeros(8, dtype=np.uint64)).tolist())
    [0, 0, 1, 1, 2, 2, 3, 3]

    References
    ----------
    Nasir et al., "When two choices are not enough" (ICDE 2016), section IV. d is solved again after every twentieth of
    the tuples (at least 100, at most 10 000), not after each; it is at least 2. The paper's d hash functions may
    coincide; ours takes as many distinct candidates as they reach in expectation, n − n ((n − 1)/n)^d.
    """

    name = "d-choices"
    paper = "Nasir et al. 2016 (D-C)"

    epsilon: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.epsilon >= 0:
            raise ConfigError(f"epsilon must be at least 0, got {self.epsilon}")

    def _router(self, n_workers: int, source: int, n_sources: int, seed: int) -> Router:
        return HeadRouter(self, n_workers, source, n_sources, seed, epsilon=self.epsilon)
