"""DStream's predictor."""

from __future__ import annotations

from typing import Self

from anabranch.arrays import U64
from anabranch.groupings import DStream
from anabranch.predictors.predictor import Predictor
from anabranch.sketches import CoinSynopsis


class Coin(Predictor):
    """Hot keys by coin flips: one tuple in 2^r touches a synopsis that declines at random.

    Parameters
    ----------
    synopsis
        The synopsis; `for_stream` chooses r and p as `DStream.for_stream` does.

    References
    ----------
    DStream, section III-B.
    """

    name = "coin"
    paper = "DStream"

    def __init__(self, synopsis: CoinSynopsis) -> None:
        self.synopsis = synopsis

    @classmethod
    def for_stream(cls, n_workers: int, window: int, seed: int = 0) -> Self:
        """R and p of `DStream.for_stream`."""
        chosen = DStream.for_stream(n_workers, window)
        return cls(CoinSynopsis(chosen.r, chosen.l, chosen.decline_rate(n_workers), chosen.zeta, seed))

    def update(self, keys: U64) -> None:
        self.synopsis.update(keys)

    def hot_keys(self) -> U64:
        return self.synopsis.hot_keys()

    @property
    def nbytes(self) -> int:
        return self.synopsis.nbytes

    @property
    def entries(self) -> int:
        return len(self.synopsis)
