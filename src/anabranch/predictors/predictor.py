"""What every predictor offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from anabranch.arrays import U64


class Predictor(ABC):
    """Says which keys are hot now, one pass over the stream, bounded memory.

    A key is meant to be hot when its share of the tuples of the current window is at least 1 / (5 n_workers).
    """

    name: ClassVar[str]
    paper: ClassVar[str]

    @classmethod
    @abstractmethod
    def for_stream(cls, n_workers: int, window: int, seed: int = 0) -> Self:
        """The predictor with parameters chosen for so many workers and windows of so many tuples."""

    @abstractmethod
    def update(self, keys: U64) -> None:
        """Take in tuples, in order."""

    @abstractmethod
    def hot_keys(self) -> U64:
        """Keys that are hot now."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of state."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """Keys or counters in use."""


def hot_share(n_workers: int) -> float:
    """Share of the tuples from which a key is hot."""
    return 1 / (5 * n_workers)
