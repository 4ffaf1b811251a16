"""Time-adaptive Count-Min."""

from __future__ import annotations

from typing import Self

from anabranch.predictors.dyadic_count_min import DyadicCountMin
from anabranch.predictors.predictor import hot_share


class AdaptiveCountMin(DyadicCountMin):
    """A dyadic Count-Min whose counts of recent tuples weigh more, so that old errors fade.

    Guarantees
    ----------
    Every key with at least `share` of the tuples, weighted by recency, is found.

    References
    ----------
    Shrivastava, König, Bilenko, "Time adaptive sketches (Ada-sketches) for summarizing data streams" (SIGMOD 2016):
    pre-emphasis with exponential weights, de-emphasis when asked.
    """

    name = "adaptive-count-min"
    paper = "Shrivastava et al. 2016"

    @classmethod
    def for_stream(cls, n_workers: int, window: int, seed: int = 0) -> Self:
        """A tuple's weight halves every half window."""
        return cls(hot_share(n_workers), growth=2 ** (2 / window), seed=seed)
