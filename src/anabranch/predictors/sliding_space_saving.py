"""SpaceSaving over sliding frames."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from anabranch.arrays import U64
from anabranch.errors import ConfigError
from anabranch.predictors.predictor import Predictor, hot_share
from anabranch.sketches import SpaceSaving


class SlidingSpaceSaving(Predictor):
    """SpaceSaving that starts anew every frame and remembers the counts of the frame before.

    Parameters
    ----------
    share
        Share of the tuples from which a key is hot.
    frame
        Tuples a frame.
    capacity
        Counters; default four times the keys that can be hot.

    References
    ----------
    Ben-Basat et al., "Heavy hitters in streams and sliding windows" (INFOCOM 2016), as the DStream paper describes it:
    a key's recent count is that of the current frame and what of the last frame the window still covers.
    """

    name = "sliding-space-saving"
    paper = "Ben-Basat et al. 2016"

    def __init__(self, share: float, frame: int, *, capacity: int | None = None) -> None:
        if not 0 < share <= 1:
            raise ConfigError(f"share must be above 0 and at most 1, got {share}")
        if frame < 1:
            raise ConfigError(f"frame must be at least 1, got {frame}")
        self.share, self.frame = share, frame
        self.capacity = math.ceil(4 / share) if capacity is None else capacity
        self.current = SpaceSaving(self.capacity)
        self.previous = SpaceSaving(self.capacity)

    @classmethod
    def for_stream(cls, n_workers: int, window: int, seed: int = 0) -> Self:
        """Frames of one window."""
        return cls(hot_share(n_workers), window)

    def update(self, keys: U64) -> None:
        done = 0
        while done < len(keys):
            if self.current.total >= self.frame:
                self.previous, self.current = self.current, SpaceSaving(self.capacity)
            end = min(len(keys), done + self.frame - self.current.total)
            self.current.update(keys[done:end])
            done = end

    def hot_keys(self) -> U64:
        left = max(0.0, 1 - self.current.total / self.frame)
        both = [(self.current.top(), 1.0), (self.previous.top(), left)]
        keys = np.concatenate([top[0] for top, _ in both])
        counts = np.concatenate([top[1] * weight for top, weight in both])
        distinct, inverse = np.unique(keys, return_inverse=True)
        recent = np.zeros(len(distinct))
        np.add.at(recent, inverse, counts)
        total = self.current.total + left * self.previous.total
        return distinct[recent >= max(1.0, self.share * total)]

    @property
    def nbytes(self) -> int:
        return self.current.nbytes + self.previous.nbytes

    @property
    def entries(self) -> int:
        return 2 * self.capacity
